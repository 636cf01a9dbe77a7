"""Batches are read exactly once, whatever the order in which writers publish them."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.predicates.tree import TRUE
from oreo_lakehouse.store import Entry, LocalStore


def record(name: str, time_us: int = 0, scan: int = 0) -> QueryRecord:
    return QueryRecord(name, scan, "import", time_us, "finished", "u", TRUE, Exactness.EXACT)


def ids(records: list[QueryRecord]) -> list[str]:
    return [r.query_id for r in records]


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def test_records_come_back_by_time_and_without_repetition(store: LocalStore) -> None:
    history = HistoryStore(store, "u")
    history.append([record("c", 3), record("a", 1), record("a", 1, scan=1)])
    history.append([record("b", 2), record("a", 1)])
    assert [r.key for r in history.read_since({})[0]] == ["a#0", "a#1", "b#0", "c#0"]


def test_an_empty_batch_writes_no_file(store: LocalStore) -> None:
    HistoryStore(store, "u").append([])
    assert store.entries("u/history") == []


def test_tables_do_not_see_each_other(store: LocalStore) -> None:
    HistoryStore(store, "u").append([record("a")])
    assert HistoryStore(store, "v").read_since({})[0] == []


class SlowStore(LocalStore):
    """Publishes batches only when told to, as a slow network would, but keeps each writer's order."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.waiting: dict[str, list[tuple[str, bytes]]] = {}

    def create(self, path: str, content: bytes) -> bool:
        writer = path.split("/")[-1].split("-")[1]
        self.waiting.setdefault(writer, []).append((path, content))
        return True

    def publish(self, writer: str) -> None:
        if self.waiting.get(writer):
            super().create(*self.waiting[writer].pop(0))


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from(["write", "publish", "read"]), st.integers(0, 2)), max_size=25))
def test_every_record_is_read_exactly_once_however_late_its_batch_appears(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    store = SlowStore(str(tmp_path_factory.mktemp("store")))
    writers = [HistoryStore(store, "u") for _ in range(3)]
    cursor: dict[str, object] = {}
    written: list[str] = []
    read: list[str] = []
    names = [history._writer for history in writers]
    final = [("publish", w) for w in range(3) for _ in steps] + [("read", 0)]
    for action, number in [*steps, *final]:
        if action == "write":
            written.append(f"q{len(written)}")
            writers[number].append([record(written[-1])])
        elif action == "publish":
            store.publish(names[number])
        else:
            records, cursor = HistoryStore(store, "u").read_since(json.loads(json.dumps(cursor)))
            read += ids(records)
    assert sorted(read) == sorted(written)


def test_a_listing_that_misses_an_earlier_batch_loses_nothing(tmp_path: Path) -> None:
    class Racing(LocalStore):
        """The first listing misses the file that was published while it ran."""

        listings = 0

        def entries(self, folder: str) -> list[Entry]:
            self.listings += 1
            found = super().entries(folder)
            return found[1:] if self.listings == 1 else found

    history = HistoryStore(Racing(str(tmp_path)), "u")
    for name in "abc":
        history.append([record(name)])
    records, cursor = history.read_since({})
    assert ids(records) == ["a", "b", "c"]
    assert history.read_since(cursor)[0] == []


def test_the_cursor_forgets_writers_whose_batches_are_gone(store: LocalStore) -> None:
    history = HistoryStore(store, "u")
    history.append([record("a")])
    _, cursor = history.read_since({})
    for entry in store.entries("u/history"):
        store.delete(f"u/history/{entry.name}")
    _, cursor = history.read_since(cursor)
    cursor["writers"] = {writer: [number, day - 8] for writer, (number, day) in cursor["writers"].items()}
    _, cursor = history.read_since(cursor)
    assert cursor["writers"] == {}
    history.append([record("b")])
    assert ids(history.read_since(cursor)[0]) == ["b"]


def test_a_corrupt_batch_is_set_aside_and_named_and_the_rest_is_read(
    store: LocalStore, caplog: pytest.LogCaptureFixture
) -> None:
    HistoryStore(store, "u").append([record("a")])
    torn = record("b").to_line()[:-9].encode()
    name = "0000000000000001-deadbeef-000000.jsonl"
    store.create(f"u/history/{name}", torn)
    history = HistoryStore(store, "u")
    with caplog.at_level(logging.WARNING):
        records, cursor = history.read_since({})
    assert ids(records) == ["a"]
    assert name in caplog.text
    assert "line 1" in caplog.text
    assert history.set_aside() == [f"u/history/unreadable/{name}"]
    assert store.read(f"u/history/unreadable/{name}") == torn
    assert history.read_since(cursor)[0] == []


def test_the_same_batch_is_added_once(store: LocalStore) -> None:
    history = HistoryStore(store, "u")
    assert history.append_once("import_1", [record("a", -5)])
    assert not history.append_once("import_1", [record("a", -5)])
    assert history.record_keys() == {"a#0"}


@pytest.mark.parametrize(
    "cursor", [{"writers": [1]}, {"writers": {"w": "x"}}, {"writers": {"w": [1]}}, {"writers": {}, "days": 5}]
)
def test_a_foreign_cursor_is_an_error(store: LocalStore, cursor: dict[str, object]) -> None:
    with pytest.raises(HistoryError, match="not a history cursor"):
        HistoryStore(store, "u").read_since(cursor)
