"""What is wrong with a Delta table is said in one sentence, the table stays as it was, and no file is left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lake import BID, Modulo, lay_out, run_id

from oreo_lakehouse.errors import NotATableError, TableError, UnsupportedTableError
from oreo_lakehouse.tables.delta import DeltaTable

if TYPE_CHECKING:
    from lake import Lake
    from pyspark.sql import SparkSession

    from oreo_lakehouse.tables.contract import Table


def folder_of(table: Table) -> Path:
    return Path(table.identity.location.removeprefix("file:"))


def commit_by_hand(table: Table, kind: str, **changes: Any) -> None:
    """The newest action of a kind again, changed, as a commit that some other writer made."""
    log = folder_of(table) / "_delta_log"
    last: dict[str, Any] = {}
    for file in sorted(log.glob("*.json")):
        for line in file.read_text().splitlines():
            last |= json.loads(line)
    info = {"timestamp": 1, "operation": "by hand", "operationParameters": {}}
    actions = [{"commitInfo": info}, {kind: {**last[kind], **changes}}]
    target = log / f"{table.version() + 1:020d}.json"
    target.write_text("\n".join(json.dumps(action) for action in actions))


def test_a_folder_without_a_log_is_not_a_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotATableError):
        DeltaTable.for_path(spark, str(tmp_path))


def test_a_damaged_log_is_named(delta: Lake) -> None:
    _, table = delta.create(rows=4)
    (folder_of(table) / "_delta_log" / f"{table.version() + 1:020d}.json").write_text('{"add": {"path": ')
    with pytest.raises(TableError, match="damaged"):
        DeltaTable.for_path(delta.spark, str(folder_of(table))).blocks()


def test_a_version_that_is_gone_is_named(delta: Lake) -> None:
    _, table = delta.create(rows=4)
    with pytest.raises(TableError, match="version 99"):
        table.blocks(99)


def test_a_writer_feature_from_the_future_is_refused(delta: Lake) -> None:
    _, table = delta.create(rows=4, clause="tblproperties ('delta.feature.appendOnly' = 'supported')")
    commit_by_hand(
        table, "protocol", minReaderVersion=1, minWriterVersion=7, writerFeatures=["appendOnly", "timeMachine"]
    )
    with pytest.raises(UnsupportedTableError, match="timeMachine"):
        table.plan(Modulo(), BID)


def test_a_reader_feature_from_the_future_is_refused(delta: Lake) -> None:
    _, table = delta.create(rows=4)
    features = {"readerFeatures": ["timeMachine"], "writerFeatures": ["timeMachine"]}
    commit_by_hand(table, "protocol", minReaderVersion=3, minWriterVersion=7, **features)
    with pytest.raises(UnsupportedTableError, match="newer Delta"):
        table.version()


@pytest.mark.parametrize(
    ("readers", "writers", "reason"),
    [
        ([], ["geospatial"], "geospatial columns"),
        (["catalogManaged", "vacuumProtocolCheck"], ["inCommitTimestamp"], "managed by a catalog"),
        (["vacuumProtocolCheck"], ["coordinatedCommits-preview", "inCommitTimestamp"], "coordinated by a service"),
    ],
)
def test_features_that_no_table_here_can_have_are_refused_by_their_names(
    delta: Lake, readers: list[str], writers: list[str], reason: str
) -> None:
    _, table = delta.create(rows=4)
    read = {"minReaderVersion": 3, "readerFeatures": readers} if readers else {"minReaderVersion": 1}
    commit_by_hand(table, "protocol", minWriterVersion=7, writerFeatures=[*readers, *writers], **read)
    with pytest.raises(UnsupportedTableError, match=reason):
        table.plan(Modulo(), BID)


def test_a_write_that_fails_half_way_leaves_no_files(delta: Lake) -> None:
    name, table = delta.create()
    lay_out(table)
    commit_by_hand(table, "metaData", configuration={"delta.constraints.c": "id != 399"})
    want, files = delta.certificate(name), sorted(folder_of(table).rglob("*.parquet"))
    with pytest.raises(TableError, match="The table is as it was"):
        table.stage(table.plan(Modulo(5), BID), run_id())
    assert sorted(folder_of(table).rglob("*.parquet")) == files
    assert delta.certificate(name) == want


def test_the_first_run_says_what_the_bid_column_would_break(delta: Lake) -> None:
    name, table = delta.create(rows=4)
    merge = "merge into {0} t using (select 5L id) u on t.id = u.id when not matched then insert (id) values (u.id)"
    delta.sql(merge.format(name))
    (warning,) = table.plan(Modulo(), BID).warnings
    assert "INSERT OVERWRITE" in warning
    assert "1 WRITE, 1 MERGE" in warning
    assert not table.plan(Modulo(), "").warnings
    lay_out(table)
    assert not table.plan(Modulo(), BID).warnings
