"""What an Iceberg layout looks like from inside the format; the rest is in the suite that all formats share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from iceberg_support import by, lay_out_by, make_table, rows_of, values
from lake import BID

from oreo_lakehouse.errors import TableError
from oreo_lakehouse.tables.contract import Committed
from oreo_lakehouse.tables.iceberg import IcebergTable
from oreo_lakehouse.tables.iceberg.manifests import local_path

if TYPE_CHECKING:
    from conftest import Place
    from pyspark.sql import SparkSession


def test_a_layout_becomes_a_replace_snapshot_with_pure_blocks_and_the_same_rows(
    spark: SparkSession, place: Place
) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name)
    before = rows_of(spark, name)
    plan = table.plan(by(table, "k"), BID)
    assert (plan.rows, plan.files, plan.adds_bid_column) == (900, 3, True)
    staged = table.stage(plan, "run-1")
    assert rows_of(spark, name) == before
    assert table.version() == plan.base_version
    assert table.verify(staged).certificate == staged.certificate == before
    result = table.commit(staged, {"oreo.certificate": "told by the caller"})
    assert result == Committed(table.version())
    assert rows_of(spark, name) == before
    summary = values(spark, f"SELECT operation, summary FROM {name}.snapshots WHERE snapshot_id = {table.version()}")
    assert summary[0][0] == "replace"
    assert summary[0][1]["oreo.layout-id"] == plan.layout.id
    assert summary[0][1]["oreo.run-id"] == "run-1"
    assert summary[0][1]["oreo.checksum"] == before.checksum
    assert summary[0][1]["oreo.certificate"] == "told by the caller"
    bids = table.blocks().columns[BID]
    assert bids.lower.tolist() == bids.upper.tolist()
    assert sorted(bids.lower.tolist()) == [0, 1, 2, 3]


def test_a_rollback_brings_the_files_back_with_their_statistics(spark: SparkSession, place: Place) -> None:
    table = make_table(spark, f"{place.iceberg}.t")
    files = f"SELECT file_path, record_count, lower_bounds, upper_bounds FROM {place.iceberg}.t.files ORDER BY 1"
    before = values(spark, files)
    lay_out_by(table, "k")
    assert values(spark, files) != before
    (layout,) = table.layout_commits()
    assert isinstance(table.revert(layout, "back"), Committed)
    assert values(spark, files) == before


def test_an_empty_table_has_no_version_and_no_blocks(spark: SparkSession, place: Place) -> None:
    spark.sql(f"CREATE TABLE {place.iceberg}.e (a INT) USING iceberg")
    table = IcebergTable.for_name(spark, f"{place.iceberg}.e")
    assert table.version() == -1
    assert len(table.blocks()) == 0
    assert table.sample(10, seed=1).num_rows == 0


def test_statistics_are_the_same_where_only_spark_reaches_the_storage(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(spark, f"{place.iceberg}.t")
    local = table.blocks()
    monkeypatch.setattr("oreo_lakehouse.tables.iceberg.table.is_local", lambda _: False)
    remote = table.blocks()
    assert remote.rows.tolist() == local.rows.tolist() == [300, 300, 300]
    for name, stats in local.columns.items():
        assert remote.columns[name].upper.tolist() == stats.upper.tolist()
    manifest = values(spark, f"SELECT path FROM {place.iceberg}.t.manifests")[0][0]
    Path(local_path(manifest)).unlink()
    with pytest.raises(TableError, match="could not read the metadata of"):
        table.blocks()


def test_a_small_table_is_read_by_every_core(spark: SparkSession, place: Place) -> None:
    table = make_table(spark, f"{place.iceberg}.t", files=4)
    with table.reading(table.blocks().names) as rows:  # Iceberg alone would make one task of less than 128 MB
        assert rows.rdd.getNumPartitions() >= spark.sparkContext.defaultParallelism


def test_a_block_is_one_file_however_well_it_is_compressed(spark: SparkSession, place: Place) -> None:
    name = f"{place.iceberg}.t"
    wide = [f"concat(repeat('x', 60), id * {at}) c{at}" for at in range(1, 31)]  # uncompressed until a page is full
    spark.range(0, 40_000, 1, 2).selectExpr("id", *wide).writeTo(name).create()
    lay_out_by(IcebergTable.for_name(spark, name), "id")
    assert len(IcebergTable.for_name(spark, name).blocks()) == 4
