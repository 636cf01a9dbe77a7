"""The certificate sees every change of a row's values and nothing else; arranging changes order and files only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from oreo_lakehouse.layouts.layout import Bids, Layout
from oreo_lakehouse.tables.arrange import arrange, numbered, rows_per_file
from oreo_lakehouse.tables.certificate import certify, hash_expression, observed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Mod3(Layout):
    kind = "mod3"
    blocks = 3
    columns = ("id",)

    def assign(self, rows: pa.Table) -> Bids:
        return (rows["id"].to_numpy() % 3).astype("int32")

    def sql(self) -> str:
        return "cast(id % 3 as int)"

    def describe(self) -> str:
        return "id modulo 3"

    def _content(self) -> dict[str, Any]:
        return {}


def test_the_checksum_is_the_exact_sum_of_the_rows_hashes(spark: SparkSession) -> None:
    rows = spark.range(3000).selectExpr("id", "cast(id as string) s")
    hashes = [row[0] for row in rows.select(hash_expression(rows)).collect()]
    assert min(hashes) < 0 < max(hashes)
    for some in (rows, rows.where("id < 1"), rows.where("id < 0")):
        found = certify(some)
        assert found.checksum == str(sum(hashes[: found.rows]))


@pytest.mark.parametrize(
    ("column", "before", "after"),
    [
        ("a int, b int", "(1, null)", "(null, 1)"),
        ("a int, b int", "(1, 2)", "(2, 1)"),
        ("s string, t string", "('ab', 'c')", "('a', 'bc')"),
        ("s string, t string", "('', null)", "(null, '')"),
        ("s string collate UTF8_LCASE", "('a')", "('A')"),
        ("s struct<x:int,y:int>", "(named_struct('x', 1, 'y', null))", "(named_struct('x', null, 'y', 1))"),
        ("s struct<x:int>", "(null)", "(named_struct('x', null))"),
        ("l array<int>", "(array(1, null))", "(array(null, 1))"),
        ("l array<int>", "(array())", "(null)"),
        ("l array<int>, r array<int>", "(array(1), array(2))", "(array(1, 2), array())"),
        ("m map<string,int>", "(map('a', 1))", "(map('a', null))"),
        ("a int", "(1), (1)", "(1)"),
        ("a int", "(1), (4)", "(2), (3)"),
    ],
)
def test_a_changed_value_changes_the_certificate(spark: SparkSession, column: str, before: str, after: str) -> None:
    def of(values: str) -> Any:
        names = ", ".join(part.split()[0] for part in column.split(", "))
        rows = spark.sql(f"select * from values {values} as v({names})")
        return certify(rows.to(spark.createDataFrame([], column).schema))

    assert of(before) == of(before)
    assert of(before) != of(after)


def test_order_of_rows_and_columns_and_excluded_columns_do_not_matter(spark: SparkSession) -> None:
    rows = spark.range(100).selectExpr("id", "id % 7 v", "map('k', id) m", "rand(3) r")
    want = certify(rows, exclude=["r"])
    other = rows.orderBy(sf.desc("id")).select("r", "m", "id", "v").withColumn("r", sf.lit(0))
    assert certify(other, exclude=["r"]) == want
    assert want.rows == 100


def test_no_rows_have_a_certificate_too(spark: SparkSession) -> None:
    assert certify(spark.range(0)).checksum == "0"


def test_the_observed_certificate_equals_the_one_by_a_pass(spark: SparkSession, tmp_path: Any) -> None:
    rows = spark.range(1000).selectExpr("id", "cast(id as string) s", "id % 5 v")
    watched, read = observed(numbered(rows, Mod3(), "bid"), ["s", "bid"], "input")
    arrange(watched, Mod3(), "bid").write.parquet(str(tmp_path / "out"))
    assert spark.read.parquet(str(tmp_path / "out")).columns == [*rows.columns, "bid"]
    assert read() == certify(rows, ["s"])


@pytest.mark.parametrize("bid_column", ["_oreo_bid", ""])
def test_every_block_is_one_sorted_partition(spark: SparkSession, bid_column: str) -> None:
    rows = spark.range(99, -1, -1).selectExpr("id", "id % 2 p")
    made = arrange(numbered(rows, Mod3(), bid_column), Mod3(), bid_column, ["p"])
    parts = made.withColumn("at", sf.spark_partition_id()).collect()
    assert [r["at"] for r in sorted(parts, key=lambda r: r["id"])] == [i % 3 for i in range(100)]
    assert [(r["at"], r["p"], r["id"]) for r in parts] == sorted((r["at"], r["p"], r["id"]) for r in parts)
    if bid_column:
        assert all(r[bid_column] == r["id"] % 3 for r in parts)


def test_a_file_has_room_for_one_and_a_half_fair_shares() -> None:
    assert rows_per_file(1000, 10) == 150
    assert rows_per_file(0, 10) == 1
