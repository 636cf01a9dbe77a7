"""Engine-neutral values: what a literal, a file statistic and a row's cell look like here, and how Arrow becomes them.

Every value belongs to a `Kind` and has exactly one Python form, so that a literal from a query, a bound from a file and
a cell from a sample compare without asking where they came from:

| kind                     | Python form                    | array form |
|--------------------------|--------------------------------|------------|
| boolean                  | bool                           | int64      |
| integer (8 to 64 bits)   | int                            | int64      |
| float (32, 64 bits)      | float, NaN above everything    | float64    |
| decimal                  | Decimal                        | object     |
| string                   | str, ordered by code point     | object     |
| binary                   | bytes                          | object     |
| date                     | int, days since 1970-01-01     | int64      |
| timestamp, timestamp_ntz | int, microseconds (UTC / wall) | int64      |
| other                    | none: never compared           | -          |

Code point order of `str` is byte order of UTF-8, which is how Spark, Delta and Iceberg compare uncollated strings.
Spark and Iceberg's Spark reader treat NaN as larger than any number and equal to itself; numpy's sort and searchsorted
do the same.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Value: TypeAlias = bool | int | float | Decimal | str | bytes
Array: TypeAlias = npt.NDArray[Any]


class Kind(StrEnum):
    """The family of types within which values compare."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    OTHER = "other"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy type that holds values of this kind."""
        if self is Kind.FLOAT:
            return np.dtype(np.float64)
        if self in (Kind.DECIMAL, Kind.STRING, Kind.BINARY, Kind.OTHER):
            return np.dtype(object)
        return np.dtype(np.int64)


def kind_of(arrow_type: pa.DataType) -> Kind:
    """The kind of an Arrow type; what has no order that engines agree on is `OTHER`.

    >>> kind_of(pa.int16()), kind_of(pa.timestamp("us", tz="UTC")), kind_of(pa.list_(pa.int8()))
    (<Kind.INTEGER: 'integer'>, <Kind.TIMESTAMP: 'timestamp'>, <Kind.OTHER: 'other'>)
    """
    types = pa.types
    if types.is_dictionary(arrow_type):
        return kind_of(arrow_type.value_type)
    if types.is_timestamp(arrow_type):
        return Kind.TIMESTAMP_NTZ if arrow_type.tz is None else Kind.TIMESTAMP
    if types.is_uint64(arrow_type):
        return Kind.OTHER  # half of its values do not fit the array form
    for test, kind in (
        (types.is_boolean, Kind.BOOLEAN),
        (types.is_integer, Kind.INTEGER),
        (types.is_floating, Kind.FLOAT),
        (types.is_decimal, Kind.DECIMAL),
        (types.is_string, Kind.STRING),
        (types.is_large_string, Kind.STRING),
        (types.is_string_view, Kind.STRING),
        (types.is_binary, Kind.BINARY),
        (types.is_large_binary, Kind.BINARY),
        (types.is_binary_view, Kind.BINARY),
        (types.is_fixed_size_binary, Kind.BINARY),
        (types.is_date, Kind.DATE),
    ):
        if test(arrow_type):
            return kind
    return Kind.OTHER


def encode(column: pa.ChunkedArray | pa.Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """An Arrow column as (values, is_null): values in their array form, an arbitrary filler where null.

    >>> encode(pa.array([3, None, 1]))
    (array([3, 0, 1]), array([False,  True, False]))
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = kind_of(column.type)
    nulls = np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
    if kind is Kind.OTHER:
        return np.full(len(column), None, dtype=object), nulls
    if kind in (Kind.DECIMAL, Kind.STRING, Kind.BINARY):
        filler: Value = {Kind.DECIMAL: Decimal(0), Kind.STRING: "", Kind.BINARY: b""}[kind]
        values = np.empty(len(column), dtype=object)
        values[:] = column.to_pylist()
        values[nulls] = filler
        return values, nulls
    if kind is Kind.DATE:
        column = column.cast(pa.date32()).cast(pa.int32())
    elif kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
        # Spark has microseconds only; finer ones are cut as it would cut them, not refused.
        column = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.int64())
    filled = pc.fill_null(column, False if kind is Kind.BOOLEAN else 0)
    return filled.to_numpy(zero_copy_only=False).astype(kind.dtype), nulls


def python_value(kind: Kind, element: Any) -> Value:
    """An element of an array in its kind's Python form."""
    value = element.item() if isinstance(element, np.generic) else element
    return bool(value) if kind is Kind.BOOLEAN else value
