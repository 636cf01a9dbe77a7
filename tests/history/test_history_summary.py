"""What people see of a history, and what must not be in it."""

from __future__ import annotations

import json
from pathlib import Path

from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.importing import import_history
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.history.redaction import redact
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.history.summary import summarise
from oreo_lakehouse.predicates.tree import TRUE, And, Compare, In, IsNull, Like, Op, Or
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.store import LocalStore

A = Compare("a", Op.LT, Kind.INTEGER, 7)
EMAIL = Compare("Email", Op.EQ, Kind.STRING, "a@b.c")


def record(name: str, time_us: int, predicate: object, **more: object) -> QueryRecord:
    return QueryRecord(name, 0, "import", time_us, "finished", "u", predicate, Exactness.EXACT, **more)  # type: ignore[arg-type]


def test_a_summary_counts_what_the_history_holds(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    history = HistoryStore(store, "u")
    b = Compare("a", Op.LT, Kind.INTEGER, 9)
    history.append([record(f"q{n}", n * 1_000_000, A if n < 4 else b) for n in range(6)])
    history.append([record("r", 11_000_000, TRUE), record("s", 12_000_000, IsNull("b"))])
    store.create("u/history/0000000000000001-dead-000000.jsonl", b"{")
    store.create("capture/0000000000000001-w1-000000.json", b'{"dropped":3}')
    store.create("capture/0000000000000002-w1-000001.json", b'{"dropped":5}')
    store.create("capture/0000000000000002-w2-000000.json", b'{"dropped":1}')
    summary = summarise(history)
    assert (summary.scans, summary.queries, summary.dropped) == (8, 8, 6)
    assert (summary.first, summary.last) == ("1970-01-01T00:00:00+00:00", "1970-01-01T00:00:12+00:00")
    assert summary.columns == {"a": 6, "b": 1}
    assert summary.exactness == {"exact": 8}
    first = summary.templates[0]
    assert (first.shape, first.count, sum(first.over_time)) == ("a < ?", 6, 6)
    assert first.over_time == (2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0)
    assert summary.unreadable == ("u/history/unreadable/0000000000000001-dead-000000.jsonl",)
    assert json.loads(json.dumps(summary.to_json()))["scans"] == 8


def test_an_empty_history_has_a_summary(tmp_path: Path) -> None:
    summary = summarise(HistoryStore(LocalStore(str(tmp_path)), "u"))
    assert (summary.scans, summary.first, summary.templates) == (0, "", ())


def test_redaction_keeps_the_operator_and_drops_the_literal() -> None:
    both = record("q", 0, And((A, EMAIL, Like("email", "x%", negated=True))), sql="SELECT 'a@b.c'")
    clean = redact(both, ["email"])
    assert (clean.predicate, clean.exactness, clean.sql) == (A, Exactness.RELAXED, None)
    assert clean.reasons == ("redacted: Email =", "redacted: email NOT LIKE")
    either = redact(record("q", 0, Or((A, In("email", Kind.STRING, ("x", "y"))))), ["EMAIL"])
    assert (either.predicate, either.exactness) == (TRUE, Exactness.UNKNOWN)
    assert redact(both, ["other"]).predicate == both.predicate
    assert redact(record("q", 0, IsNull("email")), ["email"]).predicate == IsNull("email")


def test_an_import_stores_no_redacted_literal(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    text = "SELECT * FROM t WHERE a < 7 AND email = 'a@b.c'"
    file.write_text(json.dumps({"statement_text": text, "start_time": 5}))
    history = HistoryStore(LocalStore(str(tmp_path / "store")), "u")
    schema = {"a": Kind.INTEGER, "email": Kind.STRING}
    summary = import_history(history, ["t"], schema, [file], keep_sql=True, redacted=["Email"])
    assert (summary.imported, summary.relaxed) == (1, 1)
    assert history.read_since({})[0][0].predicate == A
    assert not any(b"a@b.c" in path.read_bytes() for path in (tmp_path / "store").rglob("*.jsonl"))
