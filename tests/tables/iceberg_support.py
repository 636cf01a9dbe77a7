"""What Iceberg's tests share: making tables, laying them out step by step, and looking at the result."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from lake import BID, lay_out

from oreo_lakehouse.jvm import java_session, jvm
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.sort import sort_layout
from oreo_lakehouse.tables.certificate import certify
from oreo_lakehouse.tables.contract import RowCertificate
from oreo_lakehouse.tables.iceberg import IcebergTable
from oreo_lakehouse.tables.iceberg.manifests import local_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from oreo_lakehouse.layouts.layout import Layout

MERGE_ON_READ = {f"write.{what}.mode": "merge-on-read" for what in ("delete", "update", "merge")}


def numbers(spark: SparkSession, start: int, count: int, files: int = 1) -> DataFrame:
    """Rows whose `k` is scattered over 0..99 in every file, while `id` goes from file to file."""
    return spark.range(start, start + count, 1, files).selectExpr(
        "id", "CAST(pmod(hash(id), 100) AS INT) k", "concat('s', id) s"
    )


def make_table(
    spark: SparkSession,
    name: str,
    version: int = 2,
    partitioned: str = "",
    properties: dict[str, str] | None = None,
    files: int = 3,
    rows: int = 300,
) -> IcebergTable:
    """A table (id BIGINT, k INT, s STRING) of `files` files with `rows` rows each, every file over all of `k`."""
    settings = {"format-version": str(version)} | (properties or {})
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in settings.items())
    spark.sql(f"CREATE TABLE {name} (id BIGINT, k INT, s STRING) USING iceberg {partitioned} TBLPROPERTIES ({listed})")
    numbers(spark, 0, files * rows, files).writeTo(name).append()
    return IcebergTable.for_name(spark, name)


def by(table: IcebergTable, *columns: str, blocks: int = 4) -> Layout:
    """Blocks along the columns."""
    return sort_layout(Sample(table.sample(1000, seed=1, columns=columns)), columns, blocks)


def lay_out_by(table: IcebergTable, *columns: str, blocks: int = 4) -> int:
    """A whole layout by the columns' order; the version that it became."""
    return lay_out(table, by(table, *columns, blocks=blocks))


def rows_of(spark: SparkSession, name: str) -> RowCertificate:
    """The certificate of what any reader sees, the BID left out."""
    spark.catalog.refreshTable(name)
    return certify(spark.table(name), exclude=[BID])


def values(spark: SparkSession, query: str) -> list[Any]:
    """A query's rows as tuples."""
    return [tuple(row) for row in spark.sql(query).collect()]


def java_table(spark: SparkSession, name: str) -> Any:
    """Iceberg's own handle, for what SQL cannot do."""
    return jvm(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergTable(java_session(spark), name)


def delete_by_equality(spark: SparkSession, name: str, column: str, keys: list[int]) -> None:
    """Commit an equality delete file, as Flink does and Spark never does."""
    table = java_table(spark, name)
    table.refresh()
    field = table.schema().findField(column).fieldId()
    kept = pa.schema([pa.field(column, pa.int64(), metadata={"PARQUET:field_id": str(field)})])
    path = f"{table.location()}/data/equality-{uuid.uuid4().hex}.parquet"
    pq.write_table(pa.table([pa.array(keys, pa.int64())], schema=kept), local_path(path))
    ids = spark.sparkContext._gateway.new_array(spark.sparkContext._gateway.jvm.int, 1)
    ids[0] = field
    deletes = (
        jvm(spark)
        .org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec())
        .ofEqualityDeletes(ids)
        .withPath(path)
        .withFormat("parquet")
        .withFileSizeInBytes(Path(local_path(path)).stat().st_size)
        .withRecordCount(len(keys))
        .build()
    )
    table.newRowDelta().addDeletes(deletes).commit()


def java_new(spark: SparkSession, made: Any, *arguments: Any) -> Any:
    """An object of a class that was compiled at run time."""
    given = spark.sparkContext._gateway.new_array(jvm(spark).java.lang.Object, len(arguments))
    for i, argument in enumerate(arguments):
        given[i] = argument
    return made.getConstructors()[0].newInstance(given)
