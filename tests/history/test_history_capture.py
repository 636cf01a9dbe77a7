"""Live capture on real Delta and Iceberg tables: every scan once, exact, whatever way the query came."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from oreo_lakehouse.config import Config
from oreo_lakehouse.history.capture import Capture, capture
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.javasources import java_unit
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.history.summary import summarise
from oreo_lakehouse.jvm import compile_java, hadoop_conf, java_list
from oreo_lakehouse.predicates.tree import And, Compare, In, IsNull, Like, Op, Predicate
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.store import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = (
    "SELECT id, cast(id % 4 AS int) AS p, concat('n', id) AS Name, date_add(date'2024-01-01', cast(id AS int)) d, "
    "timestamp_seconds(1704067200 + id * 1000) ts, cast(id AS decimal(10, 2)) m FROM range(0, 400, 1, 1)"
)


class Live:
    """Capture into a store of its own, and what it has recorded since the last look."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark = spark
        self.store = LocalStore(str(root))
        self.capture: Capture = capture(spark, Config(store=str(root)), redact=["secret"], flush_seconds=3600)
        self.cursors: dict[str, Any] = {}
        self.look()

    def look(self) -> list[QueryRecord]:
        self.capture.flush()
        out: list[QueryRecord] = []
        for uuid in [folder.name for folder in Path(self.store.root).iterdir()]:
            records, self.cursors[uuid] = HistoryStore(self.store, uuid).read_since(self.cursors.get(uuid, {}))
            out += records
        return out

    def run(self, sql: str, session: SparkSession | None = None) -> list[QueryRecord]:
        self.look()
        (session or self.spark).sql(sql).collect()
        return self.look()


@pytest.fixture(scope="module")
def live(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    spark.sql("CREATE DATABASE captured")
    spark.sql("CREATE NAMESPACE iceberg.captured")
    spark.sql(f"CREATE TABLE captured.t USING delta PARTITIONED BY (p) AS {ROWS}")
    spark.sql(f"CREATE TABLE iceberg.captured.t USING iceberg PARTITIONED BY (p) AS {ROWS}")
    spark.sql("CREATE TABLE captured.other USING delta AS SELECT id AS k, concat('s', id) AS secret FROM range(10)")
    found = Live(spark, tmp_path_factory.mktemp("capture"))
    yield found
    found.capture.stop()
    spark.sql("DROP DATABASE captured CASCADE")


BOTH = pytest.mark.parametrize("table", ["captured.t", "iceberg.captured.t"])


def bounds(record: QueryRecord) -> set[Predicate]:
    """The conjuncts, without the IS NOT NULL that Spark adds."""
    parts = record.predicate.children if isinstance(record.predicate, And) else (record.predicate,)
    return {part for part in parts if not isinstance(part, IsNull)}


def test_a_store_that_cannot_be_written_costs_no_query_and_is_counted(
    spark: SparkSession, place: Any, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    root.write_text("a file where the store's folder should be")
    spark.sql(f"CREATE TABLE {place.delta}.t USING delta AS SELECT id FROM range(10)")
    running = capture(spark, Config(store=str(root)), flush_seconds=3600)
    try:
        assert spark.sql(f"SELECT id FROM {place.delta}.t WHERE id = 3").first() == (3,)
        running.flush()
        assert running.dropped == 1
        root.unlink()
        assert spark.sql(f"SELECT id FROM {place.delta}.t WHERE id = 4").first() == (4,)
    finally:
        running.stop()
    [uuid] = {folder.name for folder in root.iterdir()} - {"capture"}
    found = summarise(HistoryStore(LocalStore(str(root)), uuid))
    assert (found.scans, found.dropped) == (1, 1)


def test_what_waits_to_be_written_is_bounded(spark: SparkSession, tmp_path: Path) -> None:
    made = compile_java(spark, java_unit("Batches"), "Batches").getDeclaredConstructors()[0]
    batches = made.newInstance(java_list(spark, [hadoop_conf(spark), str(tmp_path), 3_600_000, 25]).toArray())
    for _ in range(2):
        for _ in range(4):
            batches.offer("u", "x" * 10)
        batches.flush()
    lines = [line for file in sorted((tmp_path / "u/history").glob("*.jsonl")) for line in file.read_text().split()]
    assert lines == ["x" * 10] * 4
    told = sorted((tmp_path / "capture").glob("*.json"))
    assert [json.loads(file.read_text()) for file in told] == [{"dropped": 2}, {"dropped": 4}]


@BOTH
def test_a_scan_leaves_one_exact_record_with_its_facts(live: Live, table: str) -> None:
    [record] = live.run(f"SELECT d FROM {table} WHERE p = 1 AND ID < 50 AND name LIKE 'n1%' AND m IN (1, 5.5)")
    assert record.exactness is Exactness.EXACT
    assert bounds(record) == {
        Compare("p", Op.EQ, Kind.INTEGER, 1),
        Compare("id", Op.LT, Kind.INTEGER, 50),
        Like("Name", "n1%"),
        In("m", Kind.DECIMAL, (Decimal(1), Decimal("5.5"))),
    }
    assert (record.source, record.status, record.time_zone) == ("capture", "finished", "UTC")
    assert record.table_name.endswith("captured.t")
    assert set(record.columns) >= {"d", "id"}
    assert record.files_read is not None
    assert record.bytes_read is not None
    assert record.duration_ms is not None
    assert record.table_version is not None
    assert record.sql is None


@BOTH
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("d >= '2024-05-01'", Compare("d", Op.GE, Kind.DATE, 19844)),
        ("ts < timestamp '2024-05-01 12:00:00'", Compare("ts", Op.LT, Kind.TIMESTAMP, 1_714_564_800_000_000)),
        ("Name IN ('n1', 'n2')", In("Name", Kind.STRING, ("n1", "n2"))),
        ("p IN (1, 2)", In("p", Kind.INTEGER, (1, 2))),
    ],
)
def test_literals_keep_their_types(live: Live, table: str, condition: str, expected: Predicate) -> None:
    [record] = live.run(f"SELECT id FROM {table} WHERE {condition}")
    assert (bounds(record), record.exactness) == ({expected}, Exactness.EXACT)


@BOTH
def test_what_is_not_understood_makes_a_record_relaxed(live: Live, table: str) -> None:
    [record] = live.run(f"SELECT id FROM {table} WHERE p = 1 AND upper(Name) = 'N1'")
    assert (bounds(record), record.exactness) == ({Compare("p", Op.EQ, Kind.INTEGER, 1)}, Exactness.RELAXED)
    [other] = [
        r
        for r in live.run(f"SELECT id FROM {table} WHERE id IN (SELECT k FROM captured.other)")
        if "other" not in r.table_name
    ]
    assert "a subquery" in other.reasons


@BOTH
def test_views_joins_ctes_and_time_travel_are_seen_through(live: Live, table: str) -> None:
    live.spark.sql(f"CREATE OR REPLACE TEMP VIEW v AS SELECT id AS k, p FROM {table} WHERE p = 2")
    [record] = live.run("SELECT * FROM v WHERE k = 6")
    assert bounds(record) == {Compare("p", Op.EQ, Kind.INTEGER, 2), Compare("id", Op.EQ, Kind.INTEGER, 6)}
    records = live.run(f"SELECT a.id FROM {table} a JOIN {table} b ON a.id = b.id WHERE a.p = 1 AND b.Name = 'n5'")
    assert sorted(len(bounds(r)) for r in records) == [1, 1]
    assert len({r.scan for r in records}) == 2
    version = live.run(f"SELECT max(d) FROM {table} WHERE id > 3")[0].table_version
    [record] = live.run(f"SELECT * FROM {table} VERSION AS OF {version} WHERE id = 6")
    assert record.table_version == version


def test_every_session_and_a_table_by_path_are_captured(live: Live) -> None:
    assert len(live.run("SELECT id FROM captured.t WHERE id = 4", live.spark.newSession())) == 1
    location = live.spark.sql("DESCRIBE DETAIL captured.t").collect()[0]["location"]
    [by_path] = live.run(f"SELECT id FROM delta.`{location}` WHERE id = 4")
    [by_name] = live.run("SELECT id FROM captured.t WHERE id = 4")
    assert by_path.table_uuid == by_name.table_uuid


def test_dml_and_metadata_leave_no_records(live: Live) -> None:
    assert live.run("UPDATE captured.other SET secret = 'x' WHERE k = 5") == []
    assert live.run("SELECT * FROM iceberg.captured.t.files") == []
    [record] = live.run("INSERT INTO captured.other SELECT id, Name FROM iceberg.captured.t WHERE p = 3 AND id > 390")
    assert record.table_name.endswith("captured.t")


def test_redacted_literals_never_reach_the_store(live: Live) -> None:
    [record] = live.run("SELECT k FROM captured.other WHERE secret = 'topsecret' AND k > 1")
    assert bounds(record) == {Compare("k", Op.GT, Kind.INTEGER, 1)}
    assert any("secret" in reason and "EqualTo" in reason for reason in record.reasons)
    assert not any(b"topsecret" in file.read_bytes() for file in Path(live.store.root).rglob("*.jsonl"))


def test_a_failing_query_is_recorded_as_failed(live: Live) -> None:
    live.look()
    with pytest.raises(Exception, match="boom"):
        live.spark.sql("SELECT raise_error('boom') FROM captured.t WHERE id = 7").collect()
    assert [r.status for r in live.look()] == ["failed"]


def test_turning_it_on_twice_records_once(live: Live) -> None:
    assert capture(live.spark, Config(store=live.store.root)) is live.capture
    assert len(live.run("SELECT id FROM captured.t WHERE id = 9")) == 1
    assert live.capture.dropped == 0
    assert live.capture.milliseconds_per_query < 1000
