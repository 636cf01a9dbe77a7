"""Engines that know nothing of us read a laid-out table with equal results, and open fewer files."""

from __future__ import annotations

import re
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


def test_duckdb_skips_by_a_layout_and_answers_as_spark_does(spark: SparkSession, place: Place) -> None:
    for extension in ("avro", "iceberg"):
        duckdb_extensions.import_extension(extension)
    connection = duckdb.connect()
    connection.execute("LOAD avro")
    connection.execute("LOAD iceberg")
    name = f"{place.iceberg}.t"
    table = make_table(spark, name, files=8, rows=200)

    def opened() -> list[int]:
        location = table._load().operations().current().metadataFileLocation()
        files: list[int] = []
        for where in ("true", *QUERIES):
            query = f"SELECT count(*), sum(id), max(s) FROM {{}} WHERE {where}"
            scan = query.format(f"iceberg_scan('{location}')")
            assert connection.execute(scan).fetchall() == values(spark, query.format(name))
            plan = connection.execute(f"EXPLAIN ANALYZE {scan}").fetchall()[0][1]
            files.append(int(re.findall(r"Total Files Read: (\d+)", plan)[0]))
        return files

    assert opened() == [8, 8, 8, 8, 8]
    lay_out_by(table, "k", blocks=8)
    everything, *skipping = opened()
    assert everything == 8
    assert sum(skipping) <= 2 * len(QUERIES)


def _plain(where: str) -> str:
    """BETWEEN is not in pyiceberg's grammar."""
    return "k >= 70 AND k <= 75" if "BETWEEN" in where else where
