"""Whatever is committed between staging and commit: no row is lost or doubled, and no other writer fails.

Copy-on-write changes, overwrites and second runs are in the suite that all formats share.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from iceberg_support import (
    MERGE_ON_READ,
    delete_by_equality,
    java_new,
    java_table,
    make_table,
    numbers,
    rows_of,
    values,
)
from lake import BID, Modulo
from pyiceberg.catalog.sql import SqlCatalog

from oreo_lakehouse.errors import TableError
from oreo_lakehouse.jvm import compile_java
from oreo_lakehouse.tables.contract import Committed, Conflicted, Staged, Unknown
from oreo_lakehouse.tables.iceberg.commit import Swap, commit_swap
from oreo_lakehouse.tables.iceberg.engine import Engine
from oreo_lakehouse.tables.iceberg.history import layout_summary

if TYPE_CHECKING:
    from conftest import Place
    from pyspark.sql import SparkSession

    from oreo_lakehouse.tables.iceberg import IcebergTable


@dataclass(frozen=True)
class Scene:
    """A table with a staged rewrite, at the moment when somebody else comes in."""

    spark: SparkSession
    name: str
    warehouse: Path
    table: IcebergTable

    def sql(self, text: str) -> None:
        self.spark.sql(text.format(t=self.name)).collect()

    def call(self, procedure: str, arguments: str) -> None:
        catalog, _, table = self.name.partition(".")
        self.spark.sql(f"CALL {catalog}.system.{procedure}('{table}', {arguments})").collect()

    def stage(self) -> Staged:
        return self.table.stage(self.table.plan(Modulo(3), BID), uuid.uuid4().hex)


def append(scene: Scene) -> None:
    numbers(scene.spark, 5000, 20).writeTo(scene.name).append()


def append_by_pyiceberg(scene: Scene) -> None:
    catalog = SqlCatalog("iceberg", uri=f"sqlite:///{scene.warehouse}/_iceberg.db", warehouse=str(scene.warehouse))
    rows = pa.table({"id": pa.array([7000], pa.int64()), "k": pa.array([1], pa.int32()), "s": ["by pyiceberg"]})
    catalog.load_table(scene.name.partition(".")[2]).append(rows)


def delete_rows(scene: Scene) -> None:
    scene.sql("DELETE FROM {t} WHERE id < 10")


def update_rows(scene: Scene) -> None:
    scene.sql("UPDATE {t} SET s = 'new' WHERE id < 10")


def merge_rows(scene: Scene) -> None:
    scene.sql("MERGE INTO {t} USING (SELECT 5 n) ON id = n WHEN MATCHED THEN UPDATE SET s = 'merged'")


def delete_a_whole_file(scene: Scene) -> None:
    scene.sql("DELETE FROM {t} WHERE id < 100")


def delete_rows_by_equality(scene: Scene) -> None:
    delete_by_equality(scene.spark, scene.name, "id", list(range(20)))


def rewrite_data_files(scene: Scene) -> None:
    scene.call("rewrite_data_files", "options => map('rewrite-all', 'true')")


def add_a_column(scene: Scene) -> None:
    scene.sql("ALTER TABLE {t} ADD COLUMN extra STRING")


def rename_a_column(scene: Scene) -> None:
    scene.sql("ALTER TABLE {t} RENAME COLUMN s TO other")


def widen_a_column(scene: Scene) -> None:
    scene.sql("ALTER TABLE {t} ALTER COLUMN k TYPE BIGINT")


def drop_a_column(scene: Scene) -> None:
    scene.sql("ALTER TABLE {t} DROP COLUMN s")


def drop_the_bid_column(scene: Scene) -> None:
    scene.sql(f"ALTER TABLE {{t}} DROP COLUMN {BID}")


def change_the_partitions(scene: Scene) -> None:
    scene.sql("ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id)")
    append(scene)


def expire(scene: Scene) -> None:
    scene.call("expire_snapshots", "older_than => TIMESTAMP'2100-01-01', retain_last => 1")


def append_and_expire_the_base(scene: Scene) -> None:
    append(scene)
    expire(scene)


def delete_and_expire_the_base(scene: Scene) -> None:
    delete_rows(scene)
    append(scene)
    expire(scene)


def roll_back_past_the_base(scene: Scene) -> None:
    """The base is the second snapshot."""
    first = values(scene.spark, f"SELECT snapshot_id FROM {scene.name}.snapshots ORDER BY committed_at LIMIT 1")[0][0]
    scene.call("rollback_to_snapshot", str(first))


def upgrade(scene: Scene) -> None:
    scene.sql("ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')")


@dataclass(frozen=True)
class Case:
    """What comes in between, on what table, and what becomes of our commit."""

    disturb: Callable[[Scene], None]
    expected: type
    properties: dict[str, str] = field(default_factory=dict)
    version: int = 2

    def __str__(self) -> str:
        mode = "_merge_on_read" if self.properties else ""
        return f"{self.disturb.__name__}{mode}_v{self.version}"


CASES = [
    Case(append, Committed, version=1),
    Case(append, Committed, version=3),
    Case(append_by_pyiceberg, Committed),
    Case(delete_rows, Conflicted, MERGE_ON_READ),
    Case(update_rows, Conflicted, MERGE_ON_READ),
    Case(merge_rows, Conflicted, MERGE_ON_READ),
    Case(delete_rows, Conflicted, MERGE_ON_READ, version=3),
    Case(delete_a_whole_file, Conflicted),
    Case(delete_rows_by_equality, Committed),
    Case(rewrite_data_files, Conflicted),
    Case(add_a_column, Committed),
    Case(rename_a_column, Committed),
    Case(widen_a_column, Committed),
    Case(drop_a_column, Committed),
    Case(drop_the_bid_column, Committed),
    Case(change_the_partitions, Committed),
    Case(append_and_expire_the_base, Committed),
    Case(delete_and_expire_the_base, Conflicted, MERGE_ON_READ),
    Case(roll_back_past_the_base, Conflicted),
    Case(upgrade, Conflicted),
]


@pytest.fixture
def make_scene(spark: SparkSession, place: Place, warehouse: Path) -> Callable[..., Scene]:
    def make(version: int = 2, properties: dict[str, str] | None = None) -> Scene:
        name = f"{place.iceberg}.t"
        table = make_table(spark, name, version=version, properties=properties, files=1, rows=100)
        numbers(spark, 100, 100).writeTo(name).append()
        return Scene(spark, name, warehouse, table)

    return make


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_stay_right_whatever_comes_in_between(case: Case, make_scene: Callable[..., Scene]) -> None:
    scene = make_scene(case.version, case.properties)
    staged = scene.stage()
    case.disturb(scene)
    before = rows_of(scene.spark, scene.name)
    result = scene.table.commit(staged, {})
    assert isinstance(result, case.expected), result
    assert rows_of(scene.spark, scene.name) == before
    if isinstance(result, Committed):
        assert result.version == scene.table.version()
        assert scene.table.discard(staged) == 0
    else:
        assert scene.table.discard(staged) == len(staged.paths)


def test_a_table_made_anew_under_the_same_name_gets_nothing(make_scene: Callable[..., Scene]) -> None:
    scene = make_scene()
    staged = scene.stage()
    scene.sql("DROP TABLE {t}")
    make_table(scene.spark, scene.name, files=1, rows=10)
    with pytest.raises(TableError, match="dropped and created again"):
        scene.table.commit(staged, {})
    assert rows_of(scene.spark, scene.name).rows == 10


FLAKY = """
package oreo.unit;
import org.apache.iceberg.*;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
public class Flaky implements TableOperations {
  private final TableOperations real; private int failures; private final boolean lands;
  public Flaky(TableOperations real, int failures, boolean lands) {
    this.real = real; this.failures = failures; this.lands = lands; }
  public Table table() { return new BaseTable(this, "flaky"); }
  public void commit(TableMetadata base, TableMetadata next) {
    if (failures == 0) { real.commit(base, next); return; }
    failures--;
    if (lands) real.commit(base, next);
    throw new CommitStateUnknownException(new RuntimeException("connection lost")); }
  public TableMetadata current() { return real.current(); }
  public TableMetadata refresh() { return real.refresh(); }
  public org.apache.iceberg.io.FileIO io() { return real.io(); }
  public String metadataFileLocation(String file) { return real.metadataFileLocation(file); }
  public org.apache.iceberg.io.LocationProvider locationProvider() { return real.locationProvider(); }
}
"""


@pytest.mark.parametrize(
    ("failures", "lands", "expected"),
    [(1, True, Committed), (1, False, Committed), (99, False, Unknown)],
    ids=["landed", "not_landed_once", "never_lands"],
)
def test_an_unknown_outcome_is_settled_by_the_run_id(
    make_scene: Callable[..., Scene], failures: int, lands: bool, expected: type
) -> None:
    scene = make_scene()
    staged = scene.stage()
    before = rows_of(scene.spark, scene.name)
    operations = java_table(scene.spark, scene.name).operations()
    flaky = java_new(scene.spark, compile_java(scene.spark, FLAKY, "Flaky"), operations, failures, lands)

    def load() -> Any:
        operations.refresh()
        return flaky.table()

    swap = Swap(staged.run_id, staged.removed, staged.added, layout_summary(staged, {}))
    result = commit_swap(Engine(scene.spark), scene.name, load, swap)
    assert isinstance(result, expected), result
    landed = [commit.run_id for commit in scene.table.layout_commits()]
    assert landed == ([staged.run_id] if expected is Committed else [])
    assert rows_of(scene.spark, scene.name) == before
    assert isinstance(scene.table.commit(staged, {}), Committed)
    assert rows_of(scene.spark, scene.name) == before
    assert [commit.run_id for commit in scene.table.layout_commits()] == [staged.run_id]


class Overtaken:
    """A Java table where somebody appends rows between the beginning of a change and its commit."""

    def __init__(self, table: Any, append: Callable[[], None]) -> None:
        self._table, self._append = table, append

    def __getattr__(self, name: str) -> Any:
        if name not in ("newTransaction", "manageSnapshots"):
            return getattr(self._table, name)

        def begin() -> Any:
            change = getattr(self._table, name)()
            self._append()
            return change

        return begin


def test_changes_of_metadata_are_made_anew_when_others_were_faster(
    spark: SparkSession, place: Place, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the columns, before a first layout; of the tags, after it."""
    name = f"{place.iceberg}.t"
    scene = Scene(spark, name, warehouse, make_table(spark, name, files=2, rows=100))
    loads, appended = list[Any](), list[int]()
    real = type(scene.table)._load

    def append() -> None:
        appended.append(5000 + 10 * len(appended))
        numbers(spark, appended[-1], 3).writeTo(name).append()

    def overtaken(table: IcebergTable) -> Any:
        loads.append(1)
        found = real(table)
        return found if len(loads) > 2 else Overtaken(found, append)

    plan = scene.table.plan(Modulo(3), BID)
    with monkeypatch.context() as others:
        others.setattr(type(scene.table), "_load", overtaken)
        staged = scene.table.stage(plan, uuid.uuid4().hex)
    assert appended
    assert isinstance(scene.table.commit(staged, {}), Committed)
    (layout,) = scene.table.layout_commits()
    count, loads[:] = len(appended), []
    with monkeypatch.context() as others:
        others.setattr(type(scene.table), "_load", overtaken)
        scene.table.retain(layout, 1)
        assert len(appended) == count + 2
        loads[:] = []
        assert scene.table.release(layout)
    assert len(appended) == count + 4
    assert layout.run_id not in scene.table.retained()
    known = {row.id for row in spark.table(name).collect()}
    assert known >= {start + at for start in appended for at in range(3)}
