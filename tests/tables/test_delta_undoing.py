"""Undoing a Delta layout: what streams, change feeds and time travellers see of it, and when it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lake import BID, Lake, Modulo, lay_out, run_id, version_of

from oreo_lakehouse.errors import RollbackError
from oreo_lakehouse.tables.delta.log import Log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def new_rows(spark: SparkSession, name: str, checkpoint: Path, feed: bool = False) -> int:
    """How many rows a stream gets since its checkpoint."""
    reader = spark.readStream.format("delta")
    if feed:
        reader = reader.option("readChangeFeed", "true").option("startingVersion", 0)
    got: list[Any] = []
    query = (
        reader.table(name)
        .writeStream.option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .foreachBatch(lambda rows, _: got.extend(rows.select("id").collect()))
        .start()
    )
    query.awaitTermination()
    return len(got)


def test_streams_and_change_feeds_see_nothing_of_layout_and_rollback(delta: Lake, tmp_path: Path) -> None:
    properties = "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true'"
    name, table = delta.create(clause=f"tblproperties ({properties})")
    delta.sql(f"alter table {name} add column {BID} int")
    delta.sql(f"delete from {name} where id = 7")

    def seen() -> tuple[int, int]:
        plain = new_rows(delta.spark, name, tmp_path / "plain")
        return plain, new_rows(delta.spark, name, tmp_path / "feed", feed=True)

    before = table.version()
    assert seen() == (399, 401)
    layout = lay_out(table)
    delta.sql(f"insert into {name} (id, v, s) values (1000, 1, 'p'), (1001, 1, 'p')")
    assert seen() == (2, 2)
    undone = version_of(table.revert(table.layout_commits()[0], run_id()))
    assert seen() == (0, 0)

    def at(version: int) -> Any:
        return delta.sql(f"select count(*), sum(id), sum(v) from {name} version as of {version}").first()

    assert at(before) == at(layout)
    assert at(layout + 1) == at(undone)
    assert at(undone)[0] == 401
    Log.for_name(delta.spark, name).java.checkpoint()
    delta.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert delta.certificate(name).rows == 401
    assert new_rows(delta.spark, name, tmp_path / "fresh") == 401


def test_a_rollback_is_refused_when_vacuum_has_deleted_the_files(delta: Lake) -> None:
    name, table = delta.create()
    lay_out(table)
    want = delta.certificate(name)
    delta.sql(f"vacuum {name} retain 0 hours")
    with pytest.raises(RollbackError, match=r"4 of the files .* gone"):
        table.revert(table.layout_commits()[0], run_id())
    assert delta.certificate(name) == want


def test_a_rollback_is_refused_when_a_deletion_vector_is_gone(delta: Lake) -> None:
    name, table = delta.create(clause="tblproperties ('delta.enableDeletionVectors' = 'true')")
    delta.sql(f"delete from {name} where id = 7")
    lay_out(table)
    (vector,) = Path(table.identity.location.removeprefix("file:")).glob("deletion_vector_*.bin")
    vector.unlink()
    with pytest.raises(RollbackError, match="deletion_vector"):
        table.revert(table.layout_commits()[0], run_id())
    assert delta.certificate(name).rows == 399


def test_a_rollback_is_refused_when_retention_is_near(delta: Lake) -> None:
    name, table = delta.create(clause="tblproperties ('delta.deletedFileRetentionDuration' = 'interval 30 minutes')")
    lay_out(table)
    with pytest.raises(RollbackError, match="deletedFileRetentionDuration"):
        table.revert(table.layout_commits()[0], run_id())
    delta.sql(f"alter table {name} set tblproperties ('delta.deletedFileRetentionDuration' = 'interval 2 hours')")
    version_of(table.revert(table.layout_commits()[0], run_id()))


def test_a_rollback_is_refused_when_its_version_is_forgotten(delta: Lake) -> None:
    name, table = delta.create()
    layout = lay_out(table)
    commit = table.layout_commits()[0]
    log = Log.for_name(delta.spark, name)
    log.java.checkpoint()
    folder = Path(table.identity.location.removeprefix("file:"), "_delta_log")
    for version in range(layout):
        (folder / f"{version:020d}.json").unlink()
    delta.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    with pytest.raises(RollbackError, match="no longer in its log"):
        delta.opener(delta.spark, name).revert(commit, run_id())
    assert delta.certificate(name).rows == 400


def test_a_retained_layout_comes_back_without_rewriting_a_row(delta: Lake) -> None:
    name, table = delta.create()
    lay_out(table, Modulo(4))
    delta.sql(f"insert into {name} (id, v, s) values (1000, 1, 'between')")
    lay_out(table, Modulo(3))
    delta.sql(f"insert into {name} (id, v, s) values (1001, 1, 'after')")
    delta.sql(f"optimize {name}")
    want = delta.certificate(name)
    first = table.layout_commits()[1]
    version = version_of(table.return_to(first, "back"))
    assert delta.certificate(name) == want
    blocks = table.blocks()
    bids = blocks.columns[BID]
    assert sorted(bids.lower[bids.lower_known]) == [0, 1, 2, 3]
    assert sorted(blocks.rows) == [1, 1, 100, 100, 100, 100]
    newest = table.layout_commits()[0]
    assert (newest.version, newest.action, newest.layout_id) == (version, "return", first.layout_id)
    assert version_of(table.return_to(newest, "again")) == version
    delta.sql(f"update {name} set v = 0 where id = 9")
    with pytest.raises(RollbackError, match=f"version {table.version()} .* changed rows"):
        table.return_to(first, "too late")


def test_a_rollback_can_be_undone_too_and_the_history_reads_like_an_optimize(delta: Lake) -> None:
    name, table = delta.create()
    want = delta.certificate(name)
    lay_out(table)
    entry = delta.sql(f"describe history {name} limit 1").first()
    assert (entry["operation"], entry["isolationLevel"]) == ("OPTIMIZE", "SnapshotIsolation")
    metrics = entry["operationMetrics"]
    assert (metrics["numRemovedFiles"], metrics["numAddedFiles"]) == ("4", "4")
    assert int(metrics["numAddedBytes"]) > 0
    assert Modulo().id in entry["userMetadata"]
    version_of(table.revert(table.layout_commits()[0], run_id()))
    assert len(table.blocks().columns[BID].lower_known.nonzero()[0]) == 0
    version_of(table.revert(table.layout_commits()[0], run_id()))
    assert sorted(table.blocks().columns[BID].lower) == [0, 1, 2, 3]
    assert delta.certificate(name) == want
    delta.sql(f"insert into {name} (id, v, s) values (1, 1, 'x')")
    later = delta.sql(f"describe history {name} limit 1").first()
    assert later["userMetadata"] is None  # what we say of our commits is not said of others'
