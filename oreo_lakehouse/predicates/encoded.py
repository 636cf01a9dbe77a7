"""Rows in a form that compares fast: every column as ranks among its own sorted values.

Ranks are integers whatever the kind, so that tests on rows, minima, maxima and counts all run on the same arrays, and a
dozen candidate layouts share one encoding of a sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oreo_lakehouse.predicates.values import Array, Kind, Value, encode, kind_of, python_value

Ranks = npt.NDArray[np.int32]
NULL = np.int32(-1)


@dataclass(frozen=True)
class EncodedColumn:
    """`ranks[row]` is the position of the row's value in the sorted `values`, or NULL (-1)."""

    kind: Kind
    values: Array
    ranks: Ranks

    @cached_property
    def has_nulls(self) -> bool:
        return bool((self.ranks == NULL).any())

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """How many rows have each value."""
        return np.bincount(self.ranks[self.ranks != NULL], minlength=len(self.values)).astype(np.int64)

    def value(self, rank: int) -> Value:
        """The value of a rank in its Python form."""
        return python_value(self.kind, self.values[rank])


class EncodedRows:
    """An Arrow table whose columns are encoded when first asked for."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.kinds: dict[str, Kind] = {field.name: kind_of(field.type) for field in table.schema}
        self._columns: dict[str, EncodedColumn] = {}

    def __len__(self) -> int:
        return self.table.num_rows

    def column(self, name: str) -> EncodedColumn | None:
        """The column's ranks; None if there is no such column or its values do not compare."""
        if self.kinds.get(name, Kind.OTHER) is Kind.OTHER:
            return None
        if name not in self._columns:
            self._columns[name] = encode_column(self.table[name])
        return self._columns[name]


def encode_column(column: pa.ChunkedArray | pa.Array) -> EncodedColumn:
    """Rank a column's values.

    >>> encode_column(pa.array(["b", None, "a", "b"])).ranks
    array([ 1, -1,  0,  1], dtype=int32)
    """
    chunk = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = kind_of(chunk.type)
    if pa.types.is_string_view(chunk.type) or pa.types.is_binary_view(chunk.type):
        chunk = chunk.cast(pa.large_string() if kind is Kind.STRING else pa.large_binary())  # views have few kernels
    if not pa.types.is_dictionary(chunk.type):
        chunk = chunk.dictionary_encode()
    values, value_is_null = encode(chunk.dictionary)
    at, is_null = encode(chunk.indices)
    unique, inverse = np.unique(values[~value_is_null], return_inverse=True)
    ranks = np.full(len(values) + 1, NULL)
    ranks[:-1][~value_is_null] = inverse
    at[is_null] = len(values)
    return EncodedColumn(kind, unique, ranks[at])
