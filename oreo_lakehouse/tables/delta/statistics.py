"""File statistics of a Delta table as block metadata.

They are read by delta-rs where the log can be read without a JVM, which takes a tenth of the time, and by Spark
otherwise. Both ways end in the same Arrow table, and one function makes `Blocks` of it:

- `path`, `size`, `records` (as written, NULL where not known), `deleted` (by deletion vectors),
- `min`, `max`, `nulls`: structs by physical column name; `partition`: a struct by logical name.

Delta cuts timestamps to milliseconds and strings to 32 characters, has no bounds of booleans and binaries, and shows a
largest NaN as such. What is missing stays unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable as RustTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from oreo_lakehouse.layouts.blocks import Blocks, ColumnStats
from oreo_lakehouse.predicates.values import Array, Kind, encode
from oreo_lakehouse.tables.delta.log import Log, partition_columns, schema_of

if TYPE_CHECKING:
    import numpy.typing as npt

_KINDS: dict[type[DataType], Kind] = {
    BooleanType: Kind.BOOLEAN,
    ByteType: Kind.INTEGER,
    ShortType: Kind.INTEGER,
    IntegerType: Kind.INTEGER,
    LongType: Kind.INTEGER,
    FloatType: Kind.FLOAT,
    DoubleType: Kind.FLOAT,
    DecimalType: Kind.DECIMAL,
    StringType: Kind.STRING,
    BinaryType: Kind.BINARY,
    DateType: Kind.DATE,
    TimestampType: Kind.TIMESTAMP,
    TimestampNTZType: Kind.TIMESTAMP_NTZ,
}
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
"""Microseconds that a bound cut to milliseconds may lack."""
_LATEST = np.iinfo(np.int64).max
_BYTES_PER_ROW = 100
"""A guess for files without statistics in a table that has none at all."""


def kind_of_type(dtype: DataType) -> Kind:
    """The kind of a Spark type; a collated string is ordered by rules that nobody here knows."""
    if isinstance(dtype, StringType) and dtype.simpleString() != "string":
        return Kind.OTHER
    return _KINDS.get(type(dtype), Kind.OTHER)


def read_blocks(log: Log, snapshot: Any) -> Blocks:
    """One block a live file of the snapshot."""
    files = rust_files(log, snapshot)
    return to_blocks(spark_files(log, snapshot) if files is None else files, snapshot)


def rust_files(log: Log, snapshot: Any) -> pa.Table | None:
    """The live files by delta-rs, or None where it cannot tell: not a local path, or a feature that it lacks."""
    path = log.location
    if not path.startswith("file:") or "deletionVectors" in str(snapshot.protocol().json()):
        return None  # delta-rs counts the rows of a file as written, not what its deletion vector leaves
    try:
        table = RustTable(path.removeprefix("file:"), version=int(snapshot.version()))
        found = pa.table(table.get_add_actions(flatten=False))
    except Exception:  # whatever delta-rs stumbles over, Spark can read
        return None
    names = {"path": "path", "size_bytes": "size", "num_records": "records", "null_count": "nulls"}
    columns = {names.get(name, name): found[name] for name in found.column_names}
    columns["deleted"] = pa.array(np.zeros(len(found), np.int64))
    return pa.table(columns)


def spark_files(log: Log, snapshot: Any) -> pa.Table:
    """The live files by Spark, from the log's own JSON."""
    schema, partitions = schema_of(snapshot), partition_columns(snapshot)
    stored = [field for field in schema.fields if field.name not in partitions]
    bounded = [f for f in stored if kind_of_type(f.dataType) not in (Kind.OTHER, Kind.BINARY, Kind.BOOLEAN)]
    bounds = StructType([StructField(_physical(f), f.dataType) for f in bounded])
    counts = StructType([StructField(_physical(f), LongType()) for f in stored if _atomic(f)])
    shape = StructType([StructField("numRecords", LongType())])
    for name, struct in (("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)):
        if struct.fields:
            shape.add(name, struct)
    with log.session({"spark.sql.session.timeZone": "UTC"}) as session:
        files = DataFrame(snapshot.allFiles().toDF(), session)
        stats = files.withColumn("stats", sf.from_json("stats", shape))
        columns = {
            "path": sf.col("path"),
            "size": sf.col("size"),
            "records": sf.col("stats.numRecords"),
            "deleted": sf.coalesce(sf.col("deletionVector.cardinality"), sf.lit(0)),
        }
        if bounds.fields:
            columns |= {"min": sf.col("stats.minValues"), "max": sf.col("stats.maxValues")}
        if counts.fields:
            columns["nulls"] = sf.col("stats.nullCount")
        if partitions:
            typed = [_partition_value(schema[name]) for name in partitions]
            columns["partition"] = sf.struct(*typed)
        return stats.select(*[column.alias(name) for name, column in columns.items()]).toArrow()


def _partition_value(field: StructField) -> Any:
    text = sf.col("partitionValues").getItem(_physical(field))  # an empty text means NULL in Delta
    return sf.nullif(text, sf.lit("")).cast(field.dataType).alias(field.name)


def _physical(field: StructField) -> str:
    """Statistics go by the name in the data files, which column mapping keeps through renames."""
    return str(field.metadata.get("delta.columnMapping.physicalName", field.name))


def _atomic(field: StructField) -> bool:
    return kind_of_type(field.dataType) is not Kind.OTHER


def to_blocks(files: pa.Table, snapshot: Any) -> Blocks:
    """Block metadata of the files that `rust_files` or `spark_files` found."""
    sizes = files["size"].to_numpy().astype(np.int64)
    deleted = files["deleted"].to_numpy().astype(np.int64)
    rows = _rows(files["records"], sizes, deleted)
    partitions = partition_columns(snapshot)
    columns: dict[str, ColumnStats] = {}
    for field in schema_of(snapshot).fields:
        kind = kind_of_type(field.dataType)
        if kind is Kind.OTHER:
            continue
        if field.name in partitions:
            stats = _exact(kind, _child(files, "partition", field.name), rows)
        else:
            low, high, nulls = (_child(files, part, _physical(field)) for part in ("min", "max", "nulls"))
            stats = _bounded(kind, low, high, nulls, deleted)
        if stats is not None:
            columns[field.name] = stats
    return Blocks(rows, columns, sizes)


def _rows(records: pa.ChunkedArray, sizes: Array, deleted: Array) -> npt.NDArray[np.int64]:
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
    deleted: Array,
) -> ColumnStats | None:
    if low is None and high is None and nulls is None:
        return None
    lower, no_lower = _values(kind, low, len(deleted))
    upper, no_upper = _values(kind, high, len(deleted))
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
        upper = np.minimum(upper, _LATEST - _CUT) + _CUT
    counts, no_counts = _values(Kind.INTEGER, nulls, len(deleted))
    # A deletion vector may have removed NULLs or other rows: how many is not told.
    counts = np.where(no_counts | (deleted > 0), -1, counts)
    return ColumnStats(kind, lower, upper, ~no_lower, ~no_upper, counts)


def _exact(kind: Kind, values: pa.Array | None, rows: Array) -> ColumnStats | None:
    """A partition column has one value a file. Timestamps are left out: their text depends on the writer's zone."""
    if values is None or kind in (Kind.TIMESTAMP, Kind.BINARY):
        return None
    value, missing = _values(kind, values, len(rows))
    return ColumnStats(kind, value, value, ~missing, ~missing, np.where(missing, rows, 0).astype(np.int64))


def _values(kind: Kind, column: pa.Array | None, n: int) -> tuple[Array, npt.NDArray[np.bool_]]:
    if column is None:
        return np.zeros(n, kind.dtype), np.ones(n, np.bool_)
    return encode(column.cast(_ARROW.get(kind, column.type)))
