"""Delta's file statistics as blocks: by both readers the same, and never narrower than the rows."""

from __future__ import annotations

import datetime as dt
import json
import os
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lake import BID, Modulo, lay_out
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType

from oreo_lakehouse.predicates.values import Kind, encode
from oreo_lakehouse.tables.certificate import certify
from oreo_lakehouse.tables.delta import DeltaTable
from oreo_lakehouse.tables.delta.fileblocks import kind_of_type, to_blocks
from oreo_lakehouse.tables.delta.log import Log, partition_columns, schema_of
from oreo_lakehouse.tables.delta.statistics import rust_listing, spark_listing

if TYPE_CHECKING:
    from lake import Lake
    from pyspark.sql import SparkSession

    from oreo_lakehouse.layouts.blocks import Blocks, ColumnStats

EVERYTHING = (
    "id long, i8 tinyint, i16 smallint, i int, f float, d double, dec decimal(12,2), big decimal(38,10), s string, "
    "u string, t timestamp, n timestamp_ntz, day date, b boolean, bin binary, allnull int, st struct<a:int>, "
    "l array<int>, m map<string,int>"
)
ROWS = """
    id, cast(id % 100 as tinyint), cast(-id as smallint), cast(id * 1000 as int), cast(id / 3 as float),
    case when id % 50 = 7 then double('NaN') when id % 60 = 1 then double('-Infinity') else id / 7 end,
    cast(id + 0.25 as decimal(12,2)), cast(id as decimal(38,10)) + 1234567890123456789012345.0123456789,
    repeat('abcdefgh', 6) || id, if(id < 100, repeat(decode(unhex('F48FBFBF'), 'utf-8'), 40), null),
    timestamp'1969-12-31 23:59:59.123456' + make_interval(0,0,0,0,0,0,id * 0.000777),
    timestamp_ntz'2024-02-29 12:00:00.987654' + make_interval(0,0,0,0,0,0,id * 0.000777),
    date'1969-12-30' + cast(id as int), id % 2 = 0, cast(cast(id as string) as binary), cast(null as int),
    struct(cast(id as int)), array(1), map('k', 1)
"""


def assert_bounds(stats: ColumnStats, block: int, rows: pa.ChunkedArray, where: str) -> None:
    """Nothing that the block holds lies outside what its statistics say."""
    values, nulls = encode(rows)
    present = values[~nulls]
    if stats.nulls[block] >= 0:
        assert stats.nulls[block] == nulls.sum(), where
    for value in present:
        if stats.lower_known[block]:
            assert not value < stats.lower[block], (where, value, stats.lower[block])
        if stats.upper_known[block] and not (stats.kind is Kind.FLOAT and np.isnan(stats.upper[block])):
            assert value <= stats.upper[block], (where, value, stats.upper[block])


def assert_safe(spark: SparkSession, name: str, files: pa.Table, blocks: Blocks) -> None:
    everything = spark.table(name).select("*", "_metadata.file_name").toArrow()
    for block, path in enumerate(files["path"].to_pylist()):
        found = everything.filter(pc.equal(everything["file_name"], path.rsplit("/", 1)[-1]))
        assert len(found) == blocks.rows[block]
        for column, stats in blocks.columns.items():
            assert_bounds(stats, block, found[column], f"{column} of {path}")


def assert_same(one: Blocks, other: Blocks) -> None:
    assert one.columns.keys() == other.columns.keys()
    for name, mine in one.columns.items():
        theirs = other.columns[name]
        for part in ("lower", "upper", "lower_known", "upper_known", "nulls"):
            known = mine.lower_known if part == "lower" else mine.upper_known if part == "upper" else slice(None)
            np.testing.assert_array_equal(getattr(mine, part)[known], getattr(theirs, part)[known], f"{part} {name}")


def both(lake: Lake, name: str) -> tuple[pa.Table, Blocks, Blocks]:
    """The files (by Spark), and their blocks by Spark and by delta-rs, both ordered by path."""
    log = Log.for_name(lake.spark, name)
    snapshot = log.snapshot()
    rust = rust_listing(log.location.removeprefix("file:"), snapshot.version())
    assert rust is not None
    listings = [listing.sort_by("path") for listing in (spark_listing(log, snapshot), rust)]
    assert listings[0]["path"].to_pylist() == listings[1]["path"].to_pylist()
    one, two = (to_blocks(files, schema_of(snapshot), partition_columns(snapshot)) for files in listings)
    return listings[0], one, two


def test_both_readers_agree_on_every_type_and_no_row_is_outside(delta: Lake) -> None:
    name, _ = delta.create(EVERYTHING, ROWS, rows=400, files=4)
    files, by_spark, by_rust = both(delta, name)
    assert_same(by_spark, by_rust)
    assert_safe(delta.spark, name, files, by_spark)
    columns = by_spark.columns
    assert not {"st", "l", "m"} & columns.keys()
    assert columns["id"].upper_known.all()
    assert np.isnan(columns["d"].upper.astype(float)).all()
    assert (columns["allnull"].nulls == by_spark.rows).all()
    assert not columns["b"].lower_known.any()
    assert not columns["u"].upper_known.any()  # no longer string than 32 characters is above U+10FFFF repeated


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_partition_values_are_exact_bounds_under_logical_names(delta: Lake, mapping: str) -> None:
    name, table = delta.create(
        "id long, p string, q date, k decimal(9,2), z timestamp",
        "id, case id % 3 when 0 then null when 1 then '' else 'ü %/=' end, date'2024-02-29', 1.50, "
        "timestamp'2024-02-29 00:00:00'",
        rows=30,
        clause=f"partitioned by (p, q, k, z) tblproperties ('delta.columnMapping.mode' = '{mapping}')",
    )
    files, by_spark, by_rust = both(delta, name)
    assert_same(by_spark, by_rust)
    assert_safe(delta.spark, name, files, by_spark)
    stats = by_spark.columns["p"]
    assert set(stats.lower[stats.lower_known]) == {"ü %/="}
    assert sorted(stats.nulls[~stats.lower_known]) == sorted(by_spark.rows[~stats.lower_known])
    assert "z" not in by_spark.columns
    assert table.blocks().columns.keys() == by_spark.columns.keys()


def test_renamed_and_dropped_columns_keep_their_own_statistics(delta: Lake) -> None:
    name, table = delta.create(clause="tblproperties ('delta.columnMapping.mode' = 'name')", rows=40)
    delta.sql(f"alter table {name} rename column v to `w x`")
    delta.sql(f"alter table {name} drop column s")
    delta.sql(f"alter table {name} add column v string")
    delta.sql(f"insert into {name} values (1000, -5, 'new')")
    blocks = table.blocks()
    assert blocks.columns["w x"].lower.min() == -5
    assert blocks.columns["v"].lower_known.sum() == 1
    files, by_spark, by_rust = both(delta, name)
    assert_same(by_spark, by_rust)
    assert_safe(delta.spark, name, files, by_spark)


def test_deletion_vectors_lower_the_rows_and_leave_the_bounds_true(delta: Lake) -> None:
    name, table = delta.create(clause="tblproperties ('delta.enableDeletionVectors' = 'true')")
    delta.sql(f"delete from {name} where id in (0, 1, 399)")
    blocks = table.blocks()
    assert blocks.total_rows == 397 == table.plan(Modulo(), BID).rows
    assert sorted(blocks.columns["id"].nulls) == [-1, -1, 0, 0]
    log = Log.for_name(delta.spark, name)
    assert_safe(delta.spark, name, spark_listing(log, log.snapshot()), blocks)


def test_a_collated_string_is_never_compared() -> None:
    assert kind_of_type(StringType("UTF8_LCASE")) is Kind.OTHER
    assert kind_of_type(StringType()) is Kind.STRING


def test_missing_statistics_stay_unknown(delta: Lake) -> None:
    delta.spark.conf.set("spark.databricks.delta.stats.collect", "false")
    try:
        name, table = delta.create(rows=0)
        delta.spark.range(100).selectExpr("id", "1 v", "'x' s").write.format("delta").mode("append").saveAsTable(name)
    finally:
        delta.spark.conf.unset("spark.databricks.delta.stats.collect")
    delta.sql(f"insert into {name} values (5, 6, 'y')")
    blocks = table.blocks()
    assert sorted(blocks.columns["id"].lower_known) == [False] * (len(blocks) - 1) + [True]
    assert (blocks.rows > 0).all()
    assert table.plan(Modulo(), BID).rows == 101
    lay_out(table)
    assert table.blocks().columns["id"].lower_known.all()


def test_columns_behind_the_first_32_get_statistics_when_a_layout_needs_them(delta: Lake) -> None:
    columns = [f"c{i} int" for i in range(34)]
    name, table = delta.create(
        f"st struct<a:int,b:int>, {', '.join(columns)}, flag boolean, id long",
        f"struct(1, 2), {', '.join('1' for _ in columns)}, true, id",
    )
    assert "id" not in table.blocks().columns
    plan = table.plan(Modulo(), BID)
    assert any("dataSkippingStatsColumns" in warning for warning in plan.warnings)
    lay_out(table)
    stats = table.blocks().columns
    assert sorted(stats[BID].lower) == [0, 1, 2, 3]
    assert stats["id"].lower_known.all()
    assert stats["c29"].lower_known.all()
    assert not any("dataSkippingStatsColumns" in warning for warning in table.plan(Modulo(), BID).warnings)
    assert delta.sql(f"select * from {name} where {BID} = 1").count() == 100


def test_a_widened_column_keeps_true_bounds(delta: Lake) -> None:
    name, table = delta.create(
        "id int, v int, d date",
        "cast(id as int), cast(id as int), date'2024-01-01' + cast(id as int)",
        clause="tblproperties ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported')",
    )
    for column, wider in (("id", "bigint"), ("v", "double"), ("d", "timestamp_ntz")):
        delta.sql(f"alter table {name} alter column {column} type {wider}")
    delta.sql(f"insert into {name} values (5000000000, 0.5, timestamp_ntz'2030-01-01 00:00:00.000001')")
    log = Log.for_name(delta.spark, name)
    listing = spark_listing(log, log.snapshot())
    assert_safe(delta.spark, name, listing, to_blocks(listing, schema_of(log.snapshot()), ()))
    assert table.blocks().columns["id"].upper.max() == 5_000_000_000


CELLS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "f": (pa.float64(), st.floats()),
    "g": (pa.float32(), st.floats(width=32)),
    "e": (pa.decimal128(18, 2), st.decimals(-(10**15), 10**15, places=2)),
    "big": (pa.decimal128(38, 10), st.decimals(-(10**27), 10**27, places=10)),
    "s": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=90)),
    "t": (pa.timestamp("us", tz="UTC"), st.integers(-(10**15), 10**15)),
    "n": (pa.timestamp("us"), st.integers(-(10**15), 10**15)),
    "day": (pa.date32(), st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))),
    "b": (pa.bool_(), st.booleans()),
}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_table_that_delta_rs_wrote_never_has_a_row_outside_its_bounds(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    columns = {
        name: pa.array(data.draw(st.lists(st.none() | cell, min_size=count, max_size=count)), dtype)
        for name, (dtype, cell) in CELLS.items()
    }
    rows = pa.table(columns)
    with tempfile.TemporaryDirectory() as folder:
        deltalake.write_deltalake(folder, rows)
        listing = rust_listing(folder, 0)
        assert listing is not None
        blocks = to_blocks(listing, from_arrow_schema(rows.schema, prefer_timestamp_ntz=True), ())
    assert blocks.rows.tolist() == [count]
    for name, stats in blocks.columns.items():
        assert_bounds(stats, 0, rows[name], name)


def test_a_golden_table_by_delta_rs_reads_the_same_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "golden")
    rows = pa.table(
        {
            "f": [1.0, float("nan")],
            "e": pa.array([Decimal("1234567890123456.78"), Decimal("1234567890123456.79")], pa.decimal128(18, 2)),
            "big": pa.array([Decimal("12345678901234567890.1234567891"), None], pa.decimal128(38, 10)),
            "s": ["x" * 100 + "a", "\U0010ffff" * 40],
            "p": ["a", "b"],
            "id": [1, 2],
        }
    )
    deltalake.write_deltalake(folder, rows, partition_by=["p"])
    deltalake.write_deltalake(folder, rows, mode="append")
    deltalake.DeltaTable(folder).create_checkpoint()
    table = DeltaTable.for_path(spark, folder)
    log = Log.for_path(spark, folder)
    listing = spark_listing(log, log.snapshot())
    blocks = to_blocks(listing, schema_of(log.snapshot()), ("p",))
    assert_safe(spark, f"delta.`{folder}`", listing, blocks)
    assert table.blocks().total_rows == 4
    assert table.blocks().columns["p"].lower_known.all()
    want = certify(spark.read.format("delta").load(folder))
    lay_out(table)
    assert certify(spark.read.format("delta").load(folder), [BID]) == want
    assert not np.isnan(table.blocks().columns["f"].upper.astype(float)).all()  # now Spark's own statistics


def test_both_readers_know_what_deletion_vectors_took(delta: Lake) -> None:
    columns = "id long, v int, p string"
    select = "id, cast(if(id % 9 = 0, null, id) as int), if(id % 2 = 0, 'a b%20/ü', 'c=d')"
    clause = "partitioned by (p) tblproperties ('delta.enableDeletionVectors' = 'true')"
    name, _ = delta.create(columns, select, rows=400, files=4, clause=clause)
    files, by_spark, by_rust = both(delta, name)
    assert not files["deleted"].to_numpy().any()
    assert by_rust.rows.tolist() == by_spark.rows.tolist()
    delta.sql(f"delete from {name} where id in (0, 1, 7, 200, 399)")
    files, by_spark, by_rust = both(delta, name)
    assert sorted(files["deleted"].to_pylist())[-1] > 0
    assert by_rust.total_rows == 395
    assert by_rust.rows.tolist() == by_spark.rows.tolist()
    assert_same(by_spark, by_rust)


@pytest.mark.parametrize("files", [100_000])
def test_a_hundred_thousand_files_are_read_without_spark(tmp_path: Path, files: int) -> None:
    folder = tmp_path / "many"
    empty = pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.int32()), "s": pa.array([], pa.string())})
    deltalake.write_deltalake(str(folder), empty)
    name = "part-{:05d}-6bb2c4a0-7c55-4a3c-9a49-1c2d3e4f5a6b.c000.snappy.parquet"
    with (folder / "_delta_log" / f"{1:020d}.json").open("w") as out:
        for i in range(files):
            stats = {"numRecords": 10, "minValues": {"id": i, "v": 0, "s": "a"}, "maxValues": {"id": i + 9, "v": 6}}
            stats["nullCount"] = {"id": 0, "v": 0, "s": 0}
            add = {"path": name.format(i), "partitionValues": {}, "size": 1000, "modificationTime": 1}
            out.write(json.dumps({"add": {**add, "dataChange": True, "stats": json.dumps(stats)}}) + "\n")
    listing = rust_listing(str(folder), 1)
    assert listing is not None
    blocks = to_blocks(listing, from_arrow_schema(empty.schema), ())
    assert (len(blocks), blocks.total_rows) == (files, 10 * files)
    assert sorted(blocks.columns["id"].lower) == list(range(files))
    assert not blocks.columns["s"].upper_known.any()


def test_after_a_fork_delta_rs_is_not_asked(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path), pa.table({"id": [1, 2, 3]}))
    assert rust_listing(str(tmp_path), 0) is not None  # its threads run now
    child = os.fork()
    if child == 0:
        os._exit(0 if rust_listing(str(tmp_path), 0) is None else 1)
    assert os.waitpid(child, 0)[1] == 0
