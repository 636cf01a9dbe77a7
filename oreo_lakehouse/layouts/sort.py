"""Sort: k blocks of equal size along the order of one or more columns, NULLs last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from oreo_lakehouse.layouts.layout import register_layout
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.tree import Branch, Tree, TreeLayout
from oreo_lakehouse.predicates.encoded import NULL, EncodedColumn
from oreo_lakehouse.predicates.tree import And, Compare, IsNull, Op, Or, Predicate


class SortLayout(TreeLayout):
    """Rows ordered by `columns` and cut into blocks; its tree is balanced."""

    kind: ClassVar[str] = "sort"
    title: ClassVar[str] = "sorted by"

    @property
    def order(self) -> tuple[str, ...]:
        return self.columns


register_layout(SortLayout.kind, SortLayout.from_json)


def sort_layout(sample: Sample, columns: Sequence[str], k: int) -> SortLayout:
    """At most k blocks along `columns`, each within one row of the others except where many rows are equal.

    >>> import pyarrow as pa
    >>> layout = sort_layout(Sample(pa.table({"a": [4, 1, None, 3]})), ["a"], 2)
    >>> layout.assign(pa.table({"a": [4, 1, None, 3]})).tolist(), layout.sql()
    ([1, 0, 1, 0], "CASE WHEN `a` < CAST('4' AS BIGINT) THEN 0 ELSE 1 END")
    """
    encoded = {name: column for name in columns if (column := sample.rows.column(name)) is not None}
    names = tuple(encoded)
    if not names or not len(sample):
        return SortLayout(names, None)
    # NULL becomes the highest rank, so that NULLs come last in every column.
    ranks = np.stack([np.where(c.ranks == NULL, len(c.values), c.ranks) for c in encoded.values()])
    ordered = ranks[:, np.lexsort(ranks[::-1])]
    starts = np.flatnonzero(np.append(True, (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)))
    wanted = np.arange(1, k) * len(sample) // max(k, 1)
    nearest = np.unique(_nearest(starts, wanted))
    cuts = [_before(list(encoded.items()), ordered[:, at - 1], ordered[:, at]) for at in nearest if at > 0]
    return SortLayout(names, _balanced(cuts))


def _nearest(starts: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """For each wanted boundary, the nearest place where a new value starts."""
    right = np.minimum(np.searchsorted(starts, wanted), len(starts) - 1)
    left = np.maximum(right - 1, 0)
    return np.where(wanted - starts[left] < starts[right] - wanted, starts[left], starts[right])


def _before(columns: Sequence[tuple[str, EncodedColumn]], last: np.ndarray, first: np.ndarray) -> Predicate:
    """`row < first` in the order of the columns, by as few of them as tell `last` from `first`."""
    (name, column), rest = columns[0], columns[1:]
    below, equal = _less(name, column, int(first[0])), _equal(name, column, int(first[0]))
    if last[0] != first[0]:
        return below
    return Or((below, And((equal, _before(rest, last[1:], first[1:])))))


def _less(name: str, column: EncodedColumn, rank: int) -> Predicate:
    if rank == len(column.values):
        return IsNull(name, negated=True)
    return Compare(name, Op.LT, column.kind, column.value(rank))


def _equal(name: str, column: EncodedColumn, rank: int) -> Predicate:
    if rank == len(column.values):
        return IsNull(name)
    return Compare(name, Op.EQ, column.kind, column.value(rank))


def _balanced(cuts: Sequence[Predicate]) -> Tree:
    """Ascending boundaries as a tree of logarithmic depth."""
    if not cuts:
        return None
    middle = len(cuts) // 2
    return Branch(cuts[middle], _balanced(cuts[:middle]), _balanced(cuts[middle + 1 :]))
