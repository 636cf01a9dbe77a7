"""A generator as a user would write it: one class, and the function that its entry point names."""

import numpy as np

from oreo_lakehouse.layouts.layout import Layout, register_layout


class TwoHalves(Layout):
    """Rows whose column is below a value, and the others."""

    kind = "by-city"
    blocks = 2

    def __init__(self, column, value):
        self.columns, self.value = (column,), value

    def assign(self, rows):
        return np.array(
            [int(not (cell is not None and cell < self.value)) for cell in rows[self.columns[0]].to_pylist()], np.int32
        )

    def sql(self):
        return f"CASE WHEN `{self.columns[0]}` < '{self.value}' THEN 0 ELSE 1 END"

    def describe(self):
        return f"two halves of {self.columns[0]}"

    def _content(self):
        return {"column": self.columns[0], "value": self.value}


register_layout(TwoHalves.kind, lambda document: TwoHalves(document["column"], document["value"]))


def by_city(sample, workload, k, mode, weights):
    """The signature of every generator."""
    del workload, k, mode, weights
    cities = sorted(city for city in sample.rows.table["city"].unique().to_pylist() if city is not None)
    return TwoHalves("city", cities[len(cities) // 2])
