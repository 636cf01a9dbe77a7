"""From a listing of Delta files and their statistics to block metadata, on the safe side.

A listing is an Arrow table with `path`, `size`, `records` (as written, NULL where not known), `deleted` (by deletion
vectors), structs `min`, `max`, `nulls` by physical column name, and a struct `partition` by logical name.

What Delta's statistics do not tell, and what is done about it:

- Timestamps are cut to milliseconds: an upper bound gains 999 µs. Strings are cut, and remain bounds.
- Spark's largest value is NaN where there is one. Other writers leave NaN out, so their upper bounds of floats say
  nothing; and they write decimals with the digits of a double, so their bounds of decimals are widened by its error.
- A deletion vector leaves the bounds true, but how many NULLs it removed is not known.
- What is missing stays unknown.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from oreo_lakehouse.history import sparktypes
from oreo_lakehouse.layouts.blocks import Blocks, Bools, ColumnStats, Ints
from oreo_lakehouse.predicates.values import Array, Kind, encode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pyspark.sql.types import DataType, StructField, StructType

    from oreo_lakehouse.tables.factpass import FactColumn

_ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.STRING: pa.large_string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.TIMESTAMP_NTZ: pa.timestamp("us"),
}
_CUT = 999
_LATEST = np.iinfo(np.int64).max
_DOUBLE_ERROR = Decimal(2) ** -52
_BY_SPARK = re.compile(r"(^|/)oreo-[^/]*$|\.c\d{3,}\.[a-z0-9.]*parquet$")
"""Names of files that Spark certainly wrote: ours, and those of partitioned tables."""
_SPARK_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark keeps what a string column was declared as."""
_BYTES_PER_ROW = 100
"""A guess for files without statistics in a table that has none at all."""


def kind_of_type(dtype: DataType) -> Kind:
    """The kind of a Spark type; a collated string is ordered by rules that nobody here knows."""
    return sparktypes.kind_of_type(dtype.simpleString())


def kind_of_field(field: StructField) -> Kind:
    """The kind of a column. Spark pads what is compared with a CHAR(n), so its stored text has an order of its own."""
    declared = str(field.metadata.get(_SPARK_TYPE, ""))
    return Kind.OTHER if declared.lower().startswith("char") else kind_of_type(field.dataType)


def physical_name(field: StructField) -> str:
    """Statistics go by the name in the data files, which column mapping keeps through renames."""
    return str(field.metadata.get("delta.columnMapping.physicalName", field.name))


class FileColumn(NamedTuple):
    """A column of the table, and its name in the data files."""

    name: str
    physical: str
    kind: Kind


def fact_columns(schema: StructType) -> list[FactColumn]:
    """The top-level columns, for file facts."""
    from oreo_lakehouse.tables.factpass import FactColumn  # not above: it loads Spark

    return [FactColumn(field.name, physical_name(field), kind_of_field(field)) for field in schema.fields]


def to_blocks(files: pa.Table, schema: StructType, partitions: Collection[str]) -> Blocks:
    """One block a file of the listing."""
    columns = [FileColumn(f.name, physical_name(f), kind_of_field(f)) for f in schema.fields]
    return blocks_of(files, columns, partitions)


def blocks_of(files: pa.Table, fields: Iterable[FileColumn], partitions: Collection[str]) -> Blocks:
    """The same, for columns that nobody needs Spark to describe."""
    fields = tuple(fields)
    sizes = files["size"].to_numpy().astype(np.int64)
    deleted = files["deleted"].to_numpy().astype(np.int64)
    rows = _rows(files["records"], sizes, deleted)
    names: tuple[str, ...] = tuple(files["path"].to_pylist())
    trusted = np.fromiter((_BY_SPARK.search(name) is not None for name in names), np.bool_, len(names))
    columns: dict[str, ColumnStats] = {}
    for name, physical, kind in fields:
        if kind is Kind.OTHER:
            continue
        if name in partitions:
            stats = _exact(kind, _child(files, "partition", name), rows)
        else:
            low, high, nulls = (_child(files, part, physical) for part in ("min", "max", "nulls"))
            stats = _bounded(kind, low, high, nulls, deleted, trusted)
        if stats is not None:
            columns[name] = stats
    return Blocks(rows, columns, sizes, names=names, partitions=_partition_texts(files, fields, partitions))


def _partition_texts(files: pa.Table, fields: Iterable[FileColumn], partitions: Collection[str]) -> tuple[str, ...]:
    """Each file's partition. Columns whose text depends on who reads it tell nothing of the partition."""
    parts: list[list[str]] = []
    for name, _, kind in fields:
        values = _child(files, "partition", name) if name in partitions else None
        if values is not None and kind not in (Kind.OTHER, Kind.TIMESTAMP, Kind.BINARY):
            parts.append([f"{name}={'null' if value is None else value}" for value in values.to_pylist()])
    return tuple("/".join(part) for part in zip(*parts, strict=True))


def _rows(records: pa.ChunkedArray, sizes: Ints, deleted: Ints) -> Ints:
    written, unknown = encode(records.cast(pa.int64()))
    if unknown.any():
        known = ~unknown
        share = written[known].sum() / max(1, sizes[known].sum()) if known.any() else 1 / _BYTES_PER_ROW
        written = np.where(unknown, np.maximum(1, np.round(sizes * share)), written).astype(np.int64)
    return np.maximum(written - deleted, 0)


def _child(files: pa.Table, struct: str, name: str) -> pa.Array | None:
    index = files[struct].type.get_field_index(name) if struct in files.column_names else -1
    return files[struct].combine_chunks().flatten()[index] if index >= 0 else None  # NULL where the struct is


def _bounded(
    kind: Kind,
    low: pa.Array | None,
    high: pa.Array | None,
    nulls: pa.Array | None,
    deleted: Ints,
    trusted: Bools,
) -> ColumnStats | None:
    if low is None and high is None and nulls is None:
        return None
    lower, no_lower = _values(kind, low, len(deleted))
    upper, no_upper = _values(kind, high, len(deleted))
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
        upper = np.minimum(upper, _LATEST - _CUT) + _CUT
    elif kind is Kind.FLOAT:
        upper = np.where(trusted, upper, np.nan)
    elif kind is Kind.DECIMAL and not trusted.all():
        lower, upper = _widened(lower, trusted, -_DOUBLE_ERROR), _widened(upper, trusted, _DOUBLE_ERROR)
    counts, no_counts = _values(Kind.INTEGER, nulls, len(deleted))
    counts = np.where(no_counts | (deleted > 0), -1, counts)
    return ColumnStats(kind, lower, upper, ~no_lower, ~no_upper, counts)


def _widened(bounds: Array, exact: Bools, error: Decimal) -> Array:
    moved = np.empty(len(bounds), dtype=object)
    moved[:] = [v if sure else v + abs(v) * error for v, sure in zip(bounds, exact, strict=True)]
    return moved


def _exact(kind: Kind, values: pa.Array | None, rows: Ints) -> ColumnStats | None:
    """A partition column has one value a file. Timestamps are left out: their text depends on the writer's zone."""
    if values is None or kind in (Kind.TIMESTAMP, Kind.BINARY):
        return None
    value, missing = _values(kind, values, len(rows))
    return ColumnStats(kind, value, value, ~missing, ~missing, np.where(missing, rows, 0).astype(np.int64))


def _values(kind: Kind, column: pa.Array | None, n: int) -> tuple[Array, Bools]:
    if column is None:
        return np.zeros(n, kind.dtype), np.ones(n, np.bool_)
    return encode(column.cast(_ARROW.get(kind, column.type)))
