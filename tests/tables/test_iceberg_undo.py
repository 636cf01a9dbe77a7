"""Layouts are undone alone, by metadata, for as long as their files are kept; nobody downstream notices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from iceberg_support import MERGE_ON_READ, delete_by_equality, make_table, numbers, rows_of, values
from lake import Modulo, lay_out

from oreo_lakehouse.errors import RollbackError, TableError
from oreo_lakehouse.tables.contract import Committed
from oreo_lakehouse.tables.iceberg.manifests import local_path

if TYPE_CHECKING:
    from conftest import Place
    from pyspark.sql import SparkSession


def expire(spark: SparkSession, name: str) -> None:
    catalog, _, table = name.partition(".")
    spark.sql(
        f"CALL {catalog}.system.expire_snapshots('{table}', older_than => TIMESTAMP'2100-01-01', retain_last => 1)"
    )


def paths_of(spark: SparkSession, name: str) -> set[str]:
    return {path for (path,) in values(spark, f"SELECT file_path FROM {name}.files")}


@pytest.mark.parametrize(
    ("version", "before", "after", "reason"),
    [
        (3, "", "", "other row ids"),
        (2, "DELETE FROM {} WHERE id = 3", "", "had delete files"),
        (2, "", "DELETE FROM {} WHERE id = 3", "deleted or updated"),
        (2, "", "UPDATE {} SET s = 'x' WHERE id < 500", "deleted or updated|left the table"),
        (2, "", "INSERT OVERWRITE {} VALUES (1, 1, 'x', NULL)", "left the table"),
    ],
)
def test_undoing_that_would_lose_something_is_refused_with_the_reason(
    spark: SparkSession, place: Place, version: int, before: str, after: str, reason: str
) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name, version=version, properties=MERGE_ON_READ, files=2, rows=100)
    if before:
        spark.sql(before.format(name))
    lay_out(table)
    if after:
        spark.sql(after.format(name))
    rows, current = rows_of(spark, name), table.version()
    with pytest.raises(RollbackError, match=reason) as caught:
        table.revert(table.layout_commits()[0], "back")
    assert "oreo-maintain" in str(caught.value)
    assert (rows_of(spark, name), table.version()) == (rows, current)


def test_rows_deleted_by_equality_stay_deleted_through_an_undo(spark: SparkSession, place: Place) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name, files=2, rows=100)
    lay_out(table)
    delete_by_equality(spark, name, "id", list(range(20)))
    before = rows_of(spark, name)
    assert isinstance(table.revert(table.layout_commits()[0], "back"), Committed)
    assert rows_of(spark, name) == before
    assert before.rows == 180


def test_a_retained_layout_outlives_the_expiry_of_snapshots_until_it_is_released(
    spark: SparkSession, place: Place
) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name, files=2, rows=100)
    lay_out(table)
    (first,) = table.layout_commits()
    table.retain(first, days=7)
    table.retain(first, days=8)
    assert table.retained() == {first.run_id: first.base_version}
    for start in (5000, 5100, 5200):  # the layout's own snapshot is not the table's any more, nor the one before that
        numbers(spark, start, 5).writeTo(name).append()
    expire(spark, name)
    rows = rows_of(spark, name)
    assert table.layout_commits() == [first]
    assert (back := table.returnable(first)).possible
    assert back.until is None
    assert isinstance(table.revert(first, "back"), Committed)
    assert rows_of(spark, name) == rows
    lay_out(table, Modulo(3))
    second = table.layout_commits()[0]
    table.retain(second, days=7)
    assert table.release(second)
    assert not table.release(second)
    assert [tag for (tag,) in values(spark, f"SELECT name FROM {name}.refs ORDER BY 1") if second.run_id in tag] == []
    assert second.run_id not in table.retained()
    numbers(spark, 6000, 5).writeTo(name).append()
    expire(spark, name)
    with pytest.raises(RollbackError, match="expired"):
        table.revert(second, "back")
    with pytest.raises(TableError, match="final"):
        table.retain(second, days=1)


def test_undoing_is_refused_when_a_replaced_file_is_gone(spark: SparkSession, place: Place) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name, files=2, rows=100)
    replaced = paths_of(spark, name)
    lay_out(table)
    rows = rows_of(spark, name)
    Path(local_path(min(replaced))).unlink()
    with pytest.raises(RollbackError, match="are gone"):
        table.revert(table.layout_commits()[0], "back")
    assert rows_of(spark, name) == rows


def test_an_earlier_layout_comes_back_by_metadata_alone(spark: SparkSession, place: Place) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name, files=2, rows=100)
    lay_out(table)
    first = table.layout_commits()[0]
    files_of_first = paths_of(spark, name)
    numbers(spark, 5000, 10).writeTo(name).append()
    appended = paths_of(spark, name) - files_of_first
    lay_out(table, Modulo(3))
    lay_out(table, Modulo(5))
    numbers(spark, 6000, 10).writeTo(name).append()
    rows = rows_of(spark, name)
    result = table.return_to(first, "again")
    assert isinstance(result, Committed)
    assert rows_of(spark, name) == rows
    assert paths_of(spark, name) >= files_of_first | appended
    assert len(paths_of(spark, name)) == len(files_of_first | appended) + 1
    back = table.layout_commits()[0]
    assert (back.layout_id, back.action, back.version) == (first.layout_id, "return", result.version)
    assert table.return_to(back, "nothing to do") == result
    assert isinstance(table.revert(back, "undone"), Committed)
    assert rows_of(spark, name) == rows


@pytest.mark.parametrize(
    ("properties", "reason"), [({}, "earlier layout were changed"), (MERGE_ON_READ, "had delete files")]
)
def test_a_layout_does_not_come_back_over_rows_that_were_changed_since(
    spark: SparkSession, place: Place, properties: dict[str, str], reason: str
) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name, files=2, rows=100, properties=properties)
    lay_out(table)
    first = table.layout_commits()[0]
    lay_out(table, Modulo(3))
    spark.sql(f"DELETE FROM {name} WHERE id = 7")
    lay_out(table, Modulo(5))
    rows = rows_of(spark, name)
    with pytest.raises(RollbackError, match=reason):
        table.return_to(first, "again")
    assert rows_of(spark, name) == rows


def test_streams_and_changelogs_see_nothing_of_a_layout_and_its_undoing(spark: SparkSession, place: Place) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name, files=2, rows=100)

    def drained() -> int:
        """All rows that a stream has delivered so far."""
        stream = spark.readStream.format("iceberg").load(name).writeStream.format("parquet")
        stream = stream.option("checkpointLocation", str(place.folder / "check")).trigger(availableNow=True)
        stream.start(str(place.folder / "out")).awaitTermination()
        return spark.read.parquet(str(place.folder / "out")).count()

    assert drained() == 200
    start = table.version()
    lay_out(table)
    assert drained() == 200
    numbers(spark, 5000, 10).writeTo(name).append()
    assert isinstance(table.revert(table.layout_commits()[0], "back"), Committed)
    assert drained() == 210
    catalog, _, plain = name.partition(".")
    spark.sql(
        f"CALL {catalog}.system.create_changelog_view(table => '{plain}', changelog_view => 'changes', "
        f"options => map('start-snapshot-id', '{start}', 'end-snapshot-id', '{table.version()}'))"
    )
    assert values(spark, "SELECT _change_type, count(*) FROM changes GROUP BY 1") == [("INSERT", 10)]
