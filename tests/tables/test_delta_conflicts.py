"""Every kind of commit between stage and commit, really made to happen: nothing is lost or doubled, no writer fails."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest
from lake import BID, Lake, Modulo, lay_out, rounds, run_id, staged_layout, version_of

from oreo_lakehouse.tables.contract import Committed, Conflicted, Unknown
from oreo_lakehouse.tables.delta import DeltaTable
from oreo_lakehouse.tables.delta.actions import actions
from oreo_lakehouse.tables.delta.committing import attempt
from oreo_lakehouse.tables.delta.log import LAYOUT, RUN, Log
from oreo_lakehouse.tables.delta.staging import added_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

MERGE = (
    "merge into {} t using (select 12L id) u on t.id = u.id when matched then update set v = 77 "
    "when not matched then insert (id, v, s) values (u.id, 0, 'n')"
)


@dataclass
class Shared:
    """One table for a whole module: each test stages from whatever the one before left."""

    lake: Lake
    name: str
    table: DeltaTable
    vectors: bool

    def folder(self) -> str:
        return self.table.identity.location.removeprefix("file:")


@pytest.fixture(scope="module", params=["false", "true"], ids=["no deletion vectors", "deletion vectors"])
def shared(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Shared]:
    schema = f"delta_conflicts_{request.param}"
    spark.sql(f"create database {schema}")
    lake = Lake(spark, "delta", schema, DeltaTable.for_name)
    name, table = lake.create(clause=f"tblproperties ('delta.enableDeletionVectors' = '{request.param}')")
    lay_out(table)
    assert isinstance(table, DeltaTable)
    yield Shared(lake, name, table, request.param == "true")
    spark.sql(f"drop database {schema} cascade")


def by_delta_rs(shared: Shared) -> None:
    rows = {"id": [2000, 2001], "v": [1, 2], "s": ["p", "q"], BID: [None, None]}
    types = pa.schema([("id", pa.int64()), ("v", pa.int32()), ("s", pa.string()), (BID, pa.int32())])
    deltalake.write_deltalake(shared.folder(), pa.table(rows, types), mode="append")


HARMLESS = (
    "insert into {} (id, v, s) values (1000, 1, 'p')",
    "alter table {} add column extra int",
    "alter table {} set tblproperties ('a' = 'b')",
    "alter table {} add constraint positive check (id >= 0)",
)


def test_commits_that_leave_the_input_alone_are_kept_and_ours_lands(shared: Shared) -> None:
    lake, name, table = shared.lake, shared.name, shared.table
    staged = staged_layout(table)
    by_delta_rs(shared)
    for change in HARMLESS:
        lake.sql(change.format(name))
    want = lake.certificate(name)
    before = table.version()
    assert version_of(table.commit(staged, {})) == before + 1
    assert lake.certificate(name) == want


PLAIN = (
    "optimize {} zorder by (v)",
    "optimize {}",
    "insert overwrite {} (id, v, s) select id, 1, 'o' from range(100)",
    "restore table {} to version as of 3",
)
"""What deletion vectors make no difference to; the contract's suite has the other changes without them."""
VECTORS = (
    "delete from {} where id = 10",
    "delete from {} where id % 4 = 3",  # a whole file
    "update {} set v = 99 where id = 13",
    MERGE,
)


def test_a_commit_that_changes_the_input_wins(shared: Shared) -> None:
    lake, name, table = shared.lake, shared.name, shared.table
    for change in VECTORS if shared.vectors else PLAIN:
        if change == "optimize {}":  # it merges small files only: give it some
            lake.sql(f"insert into {name} (id, v, s) select id + 9000, 1, 'x' from range(40)")
        staged = table.stage(table.plan(Modulo(), BID), run_id())
        lake.sql(change.format(name))
        version = table.version()
        assert isinstance(table.commit(staged, {}), Conflicted), change
        assert table.version() == version  # nothing of ours was committed, so the rows are the other writer's
        assert table.discard(staged) == len(staged.paths)


def stale(shared: Shared, change: str) -> Any:
    """One transaction from a snapshot that another commit has already overtaken: Delta's own conflict check."""
    table = shared.table
    log = Log.for_name(shared.lake.spark, shared.name)
    staged = staged_layout(table)
    snapshot = log.snapshot()
    inputs = actions(log.spark).select(log.files(snapshot), "\n".join(i["key"] for i in staged.removed), True)
    shared.lake.sql(change.format(shared.name))
    want = shared.lake.certificate(shared.name)
    result = attempt(
        log, snapshot, inputs, added_files(log, staged), {LAYOUT: "l", RUN: staged.run_id, "oreo.base-version": "0"}
    )
    assert shared.lake.certificate(shared.name) == want
    return result


def test_delta_itself_checks_what_lands_after_our_last_look(shared: Shared) -> None:
    assert isinstance(stale(shared, "insert into {} (id, v, s) values (3000, 1, 'p')"), Committed)
    assert isinstance(stale(shared, "delete from {} where id = 16"), Conflicted)


def test_a_layout_waits_for_no_writer_and_fails_none(delta: Lake) -> None:
    name, table = delta.create()
    lay_out(table)
    folder = table.identity.location.removeprefix("file:")
    types = pa.schema([("id", pa.int64()), ("v", pa.int32()), ("s", pa.string()), (BID, pa.int32())])
    stop, failures, written = threading.Event(), list[Exception](), list[int]()

    def append() -> None:
        while not stop.is_set():
            number = 10_000 + len(written)
            try:
                deltalake.write_deltalake(folder, pa.table([[number], [1], ["w"], [None]], schema=types), mode="append")
                written.append(number)
            except Exception as error:
                failures.append(error)
            stop.wait(0.2)

    writer = threading.Thread(target=append)
    writer.start()
    try:
        for blocks in rounds():
            lay_out(table, Modulo(blocks))
    finally:
        stop.set()
        writer.join()
    print(f"{len(written)} appends by delta-rs")
    assert not failures
    assert len(written) > 2
    found = sorted(row["id"] for row in delta.sql(f"select id from {name}").collect())
    assert found == [*range(400), *written]


@dataclass(frozen=True)
class Failing(Log):
    """A log whose commit ends in an error of the storage, before or after it landed."""

    lands: bool = True

    def swap(self, snapshot: Any, removed: Any, added: Any, note: Mapping[str, str]) -> int:
        if self.lands:
            super().swap(snapshot, removed, added, note)
        raise OSError("the storage did not answer")


def test_an_unknown_outcome_is_settled_by_the_run_id_in_the_log(delta: Lake) -> None:
    name, table = delta.create()
    log = Log.for_name(delta.spark, name)
    staged = staged_layout(table)
    parts = (log.spark, log.java, log.catalog_table, log.sql_name)
    note = {LAYOUT: staged.layout_id, RUN: staged.run_id, "oreo.base-version": "0"}
    snapshot = log.snapshot()
    files = (snapshot, log.files(snapshot), added_files(log, staged))
    assert isinstance(attempt(Failing(*parts, lands=False), *files, note), Unknown)
    assert attempt(Failing(*parts), *files, note) == Committed(table.version())
    assert table.commit(staged, {}) == Committed(table.version())


def test_a_table_that_changed_between_plan_and_stage_is_left_alone(delta: Lake) -> None:
    name, table = delta.create()
    plan = table.plan(Modulo(), BID)
    delta.sql(f"delete from {name} where id = 5")
    want = delta.certificate(name)
    with pytest.raises(Exception, match="run again"):
        table.stage(plan, run_id())
    assert delta.certificate(name) == want


def test_a_dropped_and_added_column_is_not_the_column_that_was_staged(delta: Lake) -> None:
    name, table = delta.create(clause="tblproperties ('delta.columnMapping.mode' = 'name')")
    staged = staged_layout(table)
    delta.sql(f"alter table {name} drop column v")
    delta.sql(f"alter table {name} add column v int")
    result = table.commit(staged, {})
    assert isinstance(result, Conflicted)
    assert "column v" in result.reason
    assert delta.sql(f"select * from {name} where v is not null").count() == 0


def test_a_layout_of_no_rows_is_a_layout(delta: Lake) -> None:
    name, table = delta.create(rows=0)
    staged = staged_layout(table)
    assert (staged.rows, staged.paths) == (0, ())
    version_of(table.commit(staged, {}))
    assert delta.certificate(name).rows == 0
