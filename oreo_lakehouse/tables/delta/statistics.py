"""A Delta table's live files with their statistics, as one Arrow table.

They are read by delta-rs where the log can be read without a JVM, which takes a fraction of the time, and by Spark
otherwise. Both give the same listing, which `fileblocks.py` describes and turns into `Blocks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField, StructType

from oreo_lakehouse.errors import TableError
from oreo_lakehouse.jvm import error_reason
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.tables.delta.fileblocks import kind_of_field, physical_name, to_blocks
from oreo_lakehouse.tables.delta.listing import rust_listing
from oreo_lakehouse.tables.delta.log import Log, partition_columns, schema_of

if TYPE_CHECKING:
    from pyspark.sql import Column

    from oreo_lakehouse.layouts.blocks import Blocks

_UNBOUNDED = (Kind.OTHER, Kind.BINARY, Kind.BOOLEAN)


def read_blocks(log: Log, snapshot: Any) -> Blocks:
    """One block a live file of the snapshot."""
    files = None
    # delta-rs counts a file's rows as written, not what its deletion vector leaves.
    if log.location.startswith("file:") and "deletionVectors" not in str(snapshot.protocol().json()):
        files = rust_listing(log.location.removeprefix("file:"), int(snapshot.version()))
    if files is None:
        files = spark_listing(log, snapshot)
    return to_blocks(files, schema_of(snapshot), partition_columns(snapshot))


def spark_listing(log: Log, snapshot: Any) -> pa.Table:
    """The live files by Spark, from the JSON in the log."""
    schema, partitions = schema_of(snapshot), partition_columns(snapshot)
    counted = [f for f in schema.fields if f.name not in partitions and kind_of_field(f) is not Kind.OTHER]
    bounds = [StructField(physical_name(f), f.dataType) for f in counted if kind_of_field(f) not in _UNBOUNDED]
    counts = [StructField(physical_name(f), LongType()) for f in counted]
    structs = {"min": ("minValues", bounds), "max": ("maxValues", bounds), "nulls": ("nullCount", counts)}
    shape = StructType([StructField("numRecords", LongType())])
    columns: dict[str, Column] = {
        "path": sf.col("path"),
        "size": sf.col("size"),
        "records": sf.col("parsed.numRecords"),
        "deleted": sf.coalesce(sf.col("deletionVector.cardinality"), sf.lit(0)),
    }
    for name, (key, fields) in structs.items():
        if fields:
            shape.add(key, StructType(fields))
            columns[name] = sf.col(f"parsed.{key}")
    if partitions:
        columns["partition"] = sf.struct(*[_partition_value(schema[name]) for name in partitions])
    try:
        with log.session({"spark.sql.session.timeZone": "UTC"}) as session:
            files = DataFrame(snapshot.allFiles().toDF(), session).withColumn("parsed", sf.from_json("stats", shape))
            return files.select(*[column.alias(name) for name, column in columns.items()]).toArrow()
    except Exception as error:
        raise TableError(f"cannot read the file statistics of {log.sql_name}: {error_reason(error)}") from error


def _partition_value(field: StructField) -> Column:
    text = sf.col("partitionValues").getItem(physical_name(field))
    if kind_of_field(field) in (Kind.OTHER, Kind.TIMESTAMP, Kind.BINARY):
        return text.alias(field.name)
    return sf.nullif(text, sf.lit("")).cast(field.dataType).alias(field.name)  # an empty text means NULL in Delta
