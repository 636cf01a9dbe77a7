"""The way of a layout into an Iceberg table and out of it again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from iceberg_support import BID, by, lay_out, make_table, numbers, rows_of, staged_by, values

from oreo_lakehouse.tables.contract import Committed
from oreo_lakehouse.tables.iceberg import IcebergTable

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
    assert table.verify(staged) == staged.certificate == before
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


def test_the_history_tells_layouts_and_their_rollback_newest_first(spark: SparkSession, place: Place) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name)
    before = rows_of(spark, name)
    base = table.version()
    version = lay_out(table, "k")
    numbers(spark, 5000, 50).writeTo(name).append()
    after_append = rows_of(spark, name)
    (layout,) = table.layout_commits()
    assert (layout.version, layout.base_version, layout.action) == (version, base, "layout")
    result = table.revert(layout, "run-back")
    assert isinstance(result, Committed)
    assert rows_of(spark, name) == after_append != before
    newest, oldest = table.layout_commits()
    assert (newest.action, newest.layout_run_id, newest.version) == ("rollback", layout.run_id, result.version)
    assert oldest == layout


def test_a_rollback_brings_the_files_back_with_their_statistics(spark: SparkSession, place: Place) -> None:
    table = make_table(spark, f"{place.iceberg}.t")
    files = f"SELECT file_path, record_count, lower_bounds, upper_bounds FROM {place.iceberg}.t.files ORDER BY 1"
    before = values(spark, files)
    lay_out(table, "k")
    assert values(spark, files) != before
    (layout,) = table.layout_commits()
    assert isinstance(table.revert(layout, "back"), Committed)
    assert values(spark, files) == before


def test_staged_files_are_discarded_only_while_no_snapshot_has_them(spark: SparkSession, place: Place) -> None:
    table = make_table(spark, f"{place.iceberg}.t")
    staged, other = staged_by(table), staged_by(table)
    assert isinstance(table.commit(staged, {}), Committed)
    assert table.discard(staged) == 0
    assert table.discard(other) == len(other.paths) > 0
    assert not any(Path(path).exists() for path in other.paths)
    assert all(Path(path).exists() for path in staged.paths)
    assert table.discard(other) == 0


def test_a_sample_is_repeatable_and_of_the_size_asked_for(spark: SparkSession, place: Place) -> None:
    table = make_table(spark, f"{place.iceberg}.t", rows=2000)
    one, again = table.sample(500, seed=3), table.sample(500, seed=3)
    assert one.num_rows == 500
    assert one.equals(again)
    assert not one.equals(table.sample(500, seed=4))
    assert table.sample(10_000, seed=1, columns=["k"]).column_names == ["k"]
    assert table.sample(10_000, seed=1).num_rows == 6000
    ids = np.asarray(table.sample(2000, seed=1).column("id"))
    assert 2600 < ids.mean() < 3400


def test_an_empty_table_has_no_version_and_no_blocks(spark: SparkSession, place: Place) -> None:
    spark.sql(f"CREATE TABLE {place.iceberg}.e (a INT) USING iceberg")
    table = IcebergTable.for_name(spark, f"{place.iceberg}.e")
    assert table.version() == -1
    assert len(table.blocks()) == 0
    assert table.sample(10, seed=1).num_rows == 0
