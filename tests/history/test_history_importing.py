"""Files of SQL text become history: counted, deduplicated, with every rejected line named."""

from __future__ import annotations

import csv
import gzip
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.importing import ImportSummary, import_history
from oreo_lakehouse.history.statements import MAX_LINE, parse_time, read_statements
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.predicates.tree import Compare, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.store import LocalStore

SCHEMA = {"id": Kind.INTEGER, "day": Kind.DATE, "note": Kind.STRING}
ROWS: list[dict[str, Any]] = [
    {"statement_text": "SELECT * FROM t WHERE id = 1", "start_time": "2024-05-01T12:00:00Z", "duration_ms": 7},
    {"statement_text": "SELECT * FROM t WHERE upper(note) = 'A'", "start_time": 1714564801},
    {"statement_text": "SELECT * FROM t WHERE id = 2 AND upper(note) = 'A'", "start_time": "1714564802000"},
    {"statement_text": "SELECT * FROM u WHERE id = 1", "start_time": "2024-05-01T12:00:03Z"},
    {"statement_text": "DROP TABLE t", "start_time": "2024-05-01T12:00:04Z"},
    {"statement_text": "SELEKT", "start_time": "2024-05-01T12:00:05Z"},
    {"statement_text": "SELECT a.id FROM t a JOIN t b ON a.id = b.id", "start_time": "2024-05-01 12:00:06"},
]


@pytest.fixture
def history(tmp_path: Path) -> HistoryStore:
    return HistoryStore(LocalStore(str(tmp_path / "store")), "u")


def run(history: HistoryStore, *files: Path, **options: Any) -> ImportSummary:
    return import_history(history, ["db.t"], SCHEMA, files, **options)


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, ["statement_text", "start_time", "duration_ms"])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    columns = {
        "statement_text": [row["statement_text"] for row in rows],
        "start_time": [datetime.fromtimestamp(parse_time(row["start_time"]) / 1e6, UTC) for row in rows],
        "duration_ms": [row.get("duration_ms") for row in rows],
        "other": [{"x": 1}] * len(rows),
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


@pytest.mark.parametrize("write", [jsonl, as_csv, parquet])
@pytest.mark.parametrize("zipped", [False, True])
def test_every_format_says_the_same(history: HistoryStore, tmp_path: Path, write: Any, zipped: bool) -> None:
    file = tmp_path / "log"
    file.write_bytes(gzip.compress(write(ROWS)) if zipped else write(ROWS))
    if zipped and write is parquet:
        with pytest.raises(HistoryError, match="unpack it"):
            run(history, file)
        return
    summary = run(history, file)
    assert (summary.read, summary.imported, summary.relaxed, summary.unknown) == (7, 5, 1, 1)
    assert (summary.other_tables, summary.not_queries, summary.rejected) == (1, 1, 1)
    assert summary.reasons == {"upper of a column": 2}
    [fault] = summary.faults
    assert fault.startswith(f"{file}, line {7 if write is as_csv else 6}: not SQL")
    records, _ = history.read_since({})
    assert [r.time_us // 1_000_000 - 1_714_564_800 for r in records] == [0, 1, 2, 6, 6]
    assert records[0].predicate == Compare("id", Op.EQ, Kind.INTEGER, 1)
    assert (records[0].duration_ms, records[0].source, records[0].table_name) == (7, "import", "db.t")
    assert [r.scan for r in records[3:]] == [0, 1]
    assert all(r.sql is None and r.sql_hash for r in records)


def test_importing_twice_or_overlapping_files_adds_nothing_twice(history: HistoryStore, tmp_path: Path) -> None:
    first, both = tmp_path / "first.jsonl", tmp_path / "both.csv"
    first.write_bytes(jsonl(ROWS[:2]))
    both.write_bytes(as_csv(ROWS))
    assert run(history, first).imported == 2
    summary = run(history, both)
    assert (summary.imported, summary.known_before) == (3, 2)
    assert run(history, both, first).imported == 0
    assert len(history.read_since({})[0]) == 5


def test_the_same_statement_at_the_same_time_counts_as_often_as_it_is_listed(
    history: HistoryStore, tmp_path: Path
) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(jsonl([ROWS[0]] * 3))
    assert run(history, file).imported == 3
    assert run(history, file).known_before == 3


def test_bad_lines_are_rejected_with_their_numbers_and_the_rest_is_read(history: HistoryStore, tmp_path: Path) -> None:
    good = jsonl(ROWS[:1])
    huge = b'{"statement_text": "' + b"x" * (MAX_LINE + 10) + b'"}\n'
    file = tmp_path / "log.jsonl"
    bad = [b"{\n", b"[1]\n", b'{"statement_text": "SELECT 1"}\n', b"\xff\xfe\n", b"\n", b'{"start_time": 1}\n', huge]
    bad.append(b'{"statement_text": "SELECT 1", "start_time": "yesterday"}\n')
    bad.append(b"[" * 100_000 + b"\n")
    file.write_bytes(b"".join([*bad, good]))
    summary = run(history, file)
    assert summary.imported == 1
    assert [int(fault.split("line ")[1].split(":")[0]) for fault in summary.faults] == [1, 2, 3, 4, 6, 7, 8, 9]
    with pytest.raises(HistoryError, match=r"line 1 of .*log\.jsonl"):
        list(read_statements(file))


def test_a_gzip_bomb_is_refused(history: HistoryStore, tmp_path: Path) -> None:
    file = tmp_path / "bomb.gz"
    file.write_bytes(gzip.compress(b"x" * 100_000_000))
    with pytest.raises(HistoryError, match="times its size"):
        run(history, file)


def test_damaged_files_are_errors_in_one_sentence(history: HistoryStore, tmp_path: Path) -> None:
    for name, content in {
        "cut.gz": gzip.compress(jsonl(ROWS) * 50)[:-200],
        "cut.parquet": parquet(ROWS)[:-20],
    }.items():
        file = tmp_path / name
        file.write_bytes(content)
        with pytest.raises(HistoryError, match=f"cannot read .*{name}"):
            run(history, file)
    with pytest.raises(HistoryError, match="cannot read"):
        run(history, tmp_path / "missing")


def test_csv_statements_may_span_lines(history: HistoryStore, tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_bytes(as_csv([{"statement_text": "SELECT *\nFROM t\nWHERE id = 3", "start_time": 5}, {**ROWS[5]}]))
    summary = run(history, file)
    assert (summary.imported, summary.faults[0].split(":")[0]) == (1, f"{file}, line 5")


FOREIGN = {
    "databricks": {
        "statement_id": "q1",
        "statement_text": "SELECT * FROM db.t WHERE id = 1",
        "execution_status": "FINISHED",
        "start_time": "2024-05-01T12:00:00.000Z",
        "total_duration_ms": 1500,
    },
    "trino": {
        "metadata": {"queryId": "q1", "query": "SELECT * FROM t WHERE id = 1", "queryState": "FINISHED"},
        "context": {"catalog": "lake", "schema": "db"},
        "createTime": "2024-05-01T12:00:00Z",
        "endTime": "2024-05-01T12:00:01.5Z",
    },
    "snowflake": {
        "QUERY_ID": "q1",
        "QUERY_TEXT": "SELECT * FROM T WHERE ID = 1",
        "DATABASE_NAME": "LAKE",
        "SCHEMA_NAME": "DB",
        "EXECUTION_STATUS": "SUCCESS",
        "START_TIME": "2024-05-01 12:00:00.000 +0000",
        "TOTAL_ELAPSED_TIME": "1500",
    },
}


@pytest.mark.parametrize("fmt", FOREIGN)
def test_exports_of_other_systems_are_recognised(history: HistoryStore, tmp_path: Path, fmt: str) -> None:
    file = tmp_path / "export.jsonl"
    elsewhere = json.loads(
        json.dumps(FOREIGN[fmt]).replace('"db"', '"hr"').replace('"DB"', '"HR"').replace("db.t", "hr.t")
    )
    file.write_bytes(jsonl([FOREIGN[fmt], elsewhere | {}]))
    summary = run(history, file)
    assert (summary.imported, summary.other_tables, summary.faults) == (1, 1, [])
    [record] = history.read_since({})[0]
    assert (record.query_id, record.status, record.duration_ms) == ("q1", "finished", 1500)
    assert record.time_us == 1_714_564_800_000_000
    assert record.predicate == Compare("id", Op.EQ, Kind.INTEGER, 1)


def test_the_statement_is_kept_only_when_asked(history: HistoryStore, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(jsonl(ROWS[:1]))
    run(history, file, keep_sql=True)
    assert history.read_since({})[0][0].sql == ROWS[0]["statement_text"]


def test_progress_goes_from_start_to_end(history: HistoryStore, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(jsonl([dict(ROWS[0], start_time=i) for i in range(1000)]))
    told: list[float] = []
    run(history, file, file, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(told) > 10
