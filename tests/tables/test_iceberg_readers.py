"""Engines that know nothing of us read a laid-out table with equal results, and open fewer files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import duckdb_extensions
from iceberg_support import lay_out_by, make_table, values
from pyiceberg.catalog.sql import SqlCatalog

if TYPE_CHECKING:
    from conftest import Place
    from pyspark.sql import SparkSession

QUERIES = ["k = 50", "k < 10", "k BETWEEN 70 AND 75", "k IN (3, 99)"]


def spark_files(spark: SparkSession, name: str, where: str) -> int:
    """How many files Spark's own scan would open."""
    plan = spark.table(name).where(where)._jdf.queryExecution().executedPlan()
    scan = plan.collectLeaves().apply(0)
    return sum(part.taskGroup().tasks().size() for part in scan.batch().planInputPartitions())


def test_spark_and_pyiceberg_skip_by_a_layout_and_answer_as_before(
    spark: SparkSession, place: Place, warehouse: Path
) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name, files=8, rows=200)
    catalog = SqlCatalog("iceberg", uri=f"sqlite:///{warehouse}/_iceberg.db", warehouse=str(warehouse))

    def answers() -> tuple[list[int], list[int], list[int]]:
        read = catalog.load_table(name.partition(".")[2])
        planned, counted, opened = [], [], []
        for where in QUERIES:
            scan = read.scan(row_filter=_plain(where), selected_fields=("id", "k", "s"))
            planned.append(len(list(scan.plan_files())))
            opened.append(spark_files(spark, name, where))
            found = sorted(scan.to_arrow().to_pylist(), key=lambda row: row["id"])
            expected = [row.asDict() for row in spark.table(name).where(where).select("id", "k", "s").collect()]
            assert found == sorted(expected, key=lambda row: row["id"])
            counted.append(len(found))
        return planned, opened, counted

    planned, opened, counted = answers()
    assert planned == opened == [8, 8, 8, 8]
    lay_out_by(table, "k", blocks=8)
    planned_after, opened_after, counted_after = answers()
    assert counted_after == counted
    assert planned_after == opened_after
    assert sum(planned_after) <= 2 * len(QUERIES)


def test_duckdb_reads_a_laid_out_table_with_equal_results(spark: SparkSession, place: Place) -> None:
    for extension in ("avro", "iceberg"):
        duckdb_extensions.import_extension(extension)
    name = f"{place.iceberg}.t"
    table = make_table(spark, name)
    lay_out_by(table, "k")
    location = table._load().operations().current().metadataFileLocation()
    connection = duckdb.connect()
    connection.execute("LOAD avro")
    connection.execute("LOAD iceberg")
    for where in ("true", *QUERIES):
        query = f"SELECT count(*), sum(id), max(s) FROM {{}} WHERE {where}"
        found = connection.execute(query.format(f"iceberg_scan('{location}')")).fetchall()
        assert found == values(spark, query.format(name))


def _plain(where: str) -> str:
    """BETWEEN is not in pyiceberg's grammar."""
    return "k >= 70 AND k <= 75" if "BETWEEN" in where else where
