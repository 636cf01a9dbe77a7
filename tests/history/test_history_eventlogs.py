"""Spark event logs: what their printed plans say, and that no text literal can pass for a condition."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.icebergtext import read_iceberg_filters
from oreo_lakehouse.history.importing import import_history
from oreo_lakehouse.history.plantext import read_plan_filters
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.predicates.relax import relax
from oreo_lakehouse.predicates.tree import TRUE, And, Compare, In, IsNull, Like, Op, Or, Predicate
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.store import LocalStore

SCHEMA = {
    "id": Kind.INTEGER,
    "p": Kind.INTEGER,
    "Name": Kind.STRING,
    "d": Kind.DATE,
    "ts": Kind.TIMESTAMP,
    "ok": Kind.BOOLEAN,
}
ID = Compare("id", Op.LT, Kind.INTEGER, 50)
NAME = Compare("Name", Op.EQ, Kind.STRING, "n5")


def read(data: str, partition: str = "[]", pushed: str = "[]", zone: str | None = "UTC") -> Predicate:
    return relax(read_plan_filters(data, partition, pushed, SCHEMA, zone))[0]


@pytest.mark.parametrize(
    ("data", "pushed", "expected"),
    [
        ("[(id#246L < 50)]", "", ID),
        ("[isnotnull(id#246L), (id#246L < 50)]", "", And((IsNull("id", negated=True), ID))),
        ("[(d#5 >= 2024-05-01)]", "", Compare("d", Op.GE, Kind.DATE, 19844)),
        ("[(ts#5 < 2024-05-01 12:00:00)]", "", Compare("ts", Op.LT, Kind.TIMESTAMP, 1_714_564_800_000_000)),
        ("[NOT id#6L INSET 1, 10, 2, ok#664]", "",
         And((In("id", Kind.INTEGER, (1, 2, 10), negated=True), Compare("ok", Op.EQ, Kind.BOOLEAN, True)))),
        ("[((id#1L < 50) OR isnull(d#2))]", "", Or((ID, IsNull("d")))),
        ("[(Name#1 = n5)]", "[EqualTo(Name,n5)]", NAME),
        ("[StartsWith(Name#1, n_1)]", "[StringStartsWith(Name,n_1)]", Like("Name", "n\\_1%")),
        ("[Name#1 IN (a,b), (id#2L < 50)]", "[*In(Name, [a,b]), LessThan(id,50)]",
         And((In("Name", Kind.STRING, ("a", "b")), ID))),
    ],
)  # fmt: skip
def test_printed_filters_are_read(data: str, pushed: str, expected: Predicate) -> None:
    assert read(data, pushed=pushed or "[]") == expected


@pytest.mark.parametrize(
    ("data", "pushed"),
    [
        ("[(Name#1 = n5)]", "[]"),  # pushed elsewhere, or nowhere
        ("[(Name#1 = n5 (x)]", "[EqualTo(Name,n5 (x)]"),
        # the literal is: x), (id#2L < 50
        ("[(Name#1 = x), (id#2L < 50)]", "[EqualTo(Name,x), (id#2L < 50)]"),
        # the literal is: x), LessThan(id,50
        ("[(Name#1 = x), LessThan(id,50)]", "[EqualTo(Name,x), LessThan(id,50)]"),
        # the literal is: x), (id#2L < 50), LessThan(id,50
        ("[(Name#1 = x), (id#2L < 50), LessThan(id,50)]", "[EqualTo(Name,x), (id#2L < 50), LessThan(id,50)]"),
        ("[Name#1 IN (a,b, c)]", "[In(Name, [a,b, c])]"),
        ("[(upper(Name#1) = X), (id#2L < 50)]", "[LessThan(id,50)]"),
        ("[(id#1L < 50", "[]"),
        ("no list", "[]"),
        ("[(other#1 < 50)]", "[]"),
        ("[(id#1L < 5e3)]", "[]"),
        ("[" + "(" * 5000, "[]"),
    ],
)
def test_ambiguous_print_is_not_trusted(data: str, pushed: str) -> None:
    assert read(data, pushed=pushed) == TRUE


def test_a_partition_filter_does_not_need_a_second_witness_unless_it_has_text() -> None:
    assert read("[(upper(Name#1) = X)]", "[(p#2 = 1)]") == Compare("p", Op.EQ, Kind.INTEGER, 1)
    assert read("[]", "[(Name#1 = a), (p#2 = 1)]") == TRUE


def test_a_time_without_a_zone_is_not_trusted() -> None:
    assert read("[(ts#5 < 2024-05-01 12:00:00)]", zone=None) == TRUE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", TRUE),
        ("id IS NOT NULL, id < 50", And((IsNull("id", negated=True), ID))),
        ("d >= 19844, ts < 5", And((Compare("d", Op.GE, Kind.DATE, 19844), Compare("ts", Op.LT, Kind.TIMESTAMP, 5)))),
        ("(id IS NULL OR id NOT IN (1, 2)), ok = true",
         And((Or((IsNull("id"), In("id", Kind.INTEGER, (1, 2), negated=True))),
              Compare("ok", Op.EQ, Kind.BOOLEAN, True)))),
        ("Name = 'x', id < 50", TRUE),
        ("bucket[16](id) = 3", TRUE),
        ("id < ", TRUE),
    ],
)  # fmt: skip
def test_iceberg_s_print_counts_only_without_text(text: str, expected: Predicate) -> None:
    assert relax(read_iceberg_filters(text, SCHEMA))[0] == expected


def scan(name: str, filters: dict[str, str], path: str = "/wh/t") -> dict[str, Any]:
    metadata = {"Location": f"PreparedDeltaFileIndex(1 paths)[file:{path}]", "PushedFilters": "[]", **filters}
    metrics = [{"name": "number of files read", "accumulatorId": 9}]
    return {"nodeName": f"Scan parquet {name}", "metadata": metadata, "children": [], "metrics": metrics}


def log(*plans: dict[str, Any], zone: str = "UTC") -> bytes:
    sql = "org.apache.spark.sql.execution.ui.SparkListener"
    events: list[dict[str, Any]] = [
        {"Event": "SparkListenerApplicationStart", "App ID": "app-1"},
        {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {"spark.sql.session.timeZone": zone}},
    ]
    for number, plan in enumerate(plans):
        start = {"executionId": number, "time": 1000 * number, "sparkPlanInfo": {"nodeName": "x", "children": []}}
        events += [
            {"Event": f"{sql}SQLExecutionStart", **start},
            {"Event": f"{sql}SQLAdaptiveExecutionUpdate", "executionId": number, "sparkPlanInfo": plan},
            {"Event": f"{sql}DriverAccumUpdates", "executionId": number, "accumUpdates": [[9, 7 + number]]},
            {"Event": f"{sql}SQLExecutionEnd", "executionId": number, "time": 1000 * number + 50, "errorMessage": ""},
        ]
    return "".join(json.dumps(event) + "\n" for event in events).encode()


@pytest.fixture
def history(tmp_path: Path) -> HistoryStore:
    return HistoryStore(LocalStore(str(tmp_path / "store")), "u")


def test_a_rolling_compressed_log_becomes_history_once(history: HistoryStore, tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "eventlog_v2_app-1"
    folder.mkdir(parents=True)
    iceberg = {
        "nodeName": "BatchScan lake.db.other",
        "simpleString": "BatchScan lake.db.other[id#1] IcebergScan(table=x, filters=id < 50, runtimeFilters=)",
        "children": [],
    }
    join = {"nodeName": "Join", "children": [scan("spark_catalog.db.t", {"DataFilters": "[(id#1L < 50)]"}), iceberg]}
    content = log(join, scan("", {"DataFilters": "[]"}), scan("db.elsewhere", {"DataFilters": "[]"}, "/wh/e"))
    half = content.index(b"\n", len(content) // 2) + 1
    for number, part in ((2, content[:half]), (10, content[half:])):
        with pa.CompressedOutputStream(str(folder / f"events_{number}_app-1.zstd"), "zstd") as out:
            out.write(part)
    (folder / "appstatus_app-1").write_text("")
    summary = import_history(history, ["db.t", "/wh/t"], SCHEMA, [tmp_path / "logs"])
    assert (summary.read, summary.imported, summary.other_tables, summary.faults) == (4, 2, 2, [])
    first, second = history.read_since({})[0]
    assert (first.predicate, first.exactness, first.source) == (ID, Exactness.RELAXED, "eventlog")
    assert (first.query_id, first.duration_ms, first.files_read, first.status) == ("app-1-0", 50, 7, "finished")
    assert second.predicate == TRUE
    assert import_history(history, ["db.t"], SCHEMA, [tmp_path / "logs"]).imported == 0


def test_broken_events_are_rejected_and_the_rest_is_read(history: HistoryStore, tmp_path: Path) -> None:
    file = tmp_path / "app-1"
    good = log(scan("db.t", {"DataFilters": "[(id#1L < 50)]"}))
    file.write_bytes(b'{"Event": "SQL\n{"Event":"SparkListenerSQLExecutionStart"}\n[]\n' + good)
    summary = import_history(history, ["db.t"], SCHEMA, [file], fmt="eventlog")
    assert (summary.imported, summary.rejected) == (1, 2)


def test_a_folder_without_a_log_and_a_damaged_log_are_errors(history: HistoryStore, tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="no event log"):
        import_history(history, ["db.t"], SCHEMA, [tmp_path])
    damaged = tmp_path / "app.zstd"
    damaged.write_bytes(b"not zstd")
    with pytest.raises(HistoryError, match="cannot read"):
        import_history(history, ["db.t"], SCHEMA, [damaged], fmt="eventlog")
