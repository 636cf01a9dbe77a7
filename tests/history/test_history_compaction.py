"""Compaction and retention lose nothing and repeat nothing, with many processes at work and crashes at any point."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oreo_lakehouse.config import HistorySettings
from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.history.compaction import Compacted, Tended, compact, retain, tend
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.predicates.tree import And, Compare, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.store import LocalStore

LATER = time.time_ns() // 1000 + 2 * 86_400_000_000


def record(name: str) -> QueryRecord:
    predicate = Compare("a", Op.LT, Kind.INTEGER, 7)
    return QueryRecord(name, 0, "import", 5, "finished", "u", predicate, Exactness.EXACT)


class Fragile(LocalStore):
    """Fails at the n-th change, as a crash would."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.left = -1

    def _step(self) -> None:
        self.left -= 1
        if self.left == -1:
            raise StoreError("crash")

    def create(self, path: str, content: bytes) -> bool:
        self._step()
        return super().create(path, content)

    def delete(self, path: str) -> None:
        self._step()
        super().delete(path)


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["write", "write", "compact", "crash", "read"]), st.integers(0, 4)), max_size=20
    )
)
def test_every_record_is_read_exactly_once_through_compactions_and_crashes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    store = Fragile(str(tmp_path_factory.mktemp("store")))
    writers = [HistoryStore(store, "u") for _ in range(3)]
    reader = HistoryStore(store, "u")
    cursor: dict[str, Any] = {}
    written: list[str] = []
    read: list[str] = []
    for action, number in [*steps, ("compact", 0), ("read", 0)]:
        if action == "write":
            written.append(f"q{len(written)}")
            writers[number % 3].append([record(written[-1])])
        elif action == "compact":
            compact(reader, LATER)
        elif action == "crash":
            store.left = number
            with contextlib.suppress(StoreError):
                compact(reader, LATER)
            store.left = -1
        else:
            records, cursor = reader.read_since(json.loads(json.dumps(cursor)))
            read += [r.query_id for r in records]
    assert sorted(read) == sorted(written)
    assert sorted(key.split("#")[0] for key in reader.record_keys()) == sorted(written)
    assert reader.batches() == []


def test_packed_records_are_the_same_records(tmp_path: Path) -> None:
    history = HistoryStore(LocalStore(str(tmp_path)), "u")
    for n in range(3):
        history.append([record(f"q{n}"), record(f"r{n}")])
    before, cursor = history.read_since({})
    assert compact(history, LATER) == Compacted(batches=3, records=6, files=1)
    assert compact(history, LATER) == Compacted()
    assert history.read_since({})[0] == before
    again, cursor = history.read_since(cursor)
    assert again == []
    assert history.read_since(cursor)[0] == []


def test_the_present_day_is_left_alone_until_it_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = HistoryStore(LocalStore(str(tmp_path)), "u")
    history.append([record("a")])
    history.append([record("b")])
    assert compact(history) == Compacted()
    monkeypatch.setattr("oreo_lakehouse.history.compaction.BUSY_DAY", 2)
    assert compact(history).batches == 2


def test_retention_drops_the_oldest_days_first(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    history = HistoryStore(store, "u")
    day = 86_400_000_000
    for age in (100, 50, 10, 5):
        old = record(f"age{age}")
        history.append_once(
            f"import_{age}",
            [replace(old, time_us=LATER - age * day)],
        )
    compact(history, LATER)
    assert retain(history, now_us=LATER) == 0
    assert retain(history, days=60, now_us=LATER) == 1
    assert {key.split("#")[0] for key in history.record_keys()} == {"age50", "age10", "age5"}
    sizes = [entry.size for entry in store.entries("u/history/days")]
    assert retain(history, size=sum(sizes[1:]), now_us=LATER) == 1
    assert {key.split("#")[0] for key in history.record_keys()} == {"age10", "age5"}


def test_tending_packs_and_drops_as_the_settings_say_and_is_cheap_when_there_is_nothing_to_do(tmp_path: Path) -> None:
    class Counting(LocalStore):
        calls = 0

        def read(self, path: str) -> bytes | None:
            self.calls += 1
            return super().read(path)

    store = Counting(str(tmp_path))
    history = HistoryStore(store, "u")
    day = 86_400_000_000
    for age in (20, 10, 5):
        for part in range(2):
            history.append_once(f"w{age}x{part}", [replace(record(f"a{age}-{part}"), time_us=LATER - age * day)])
    done = tend(history, HistorySettings(keep_days=15), LATER)
    assert done == Tended(Compacted(batches=6, records=6, files=3), dropped=1)
    assert {key[:3] for key in history.record_keys()} == {"a10", "a5-"}
    store.calls = 0
    assert tend(history, HistorySettings(keep_days=15), LATER) == Tended(Compacted(), 0)
    assert store.calls == 0
    [_, newest] = [entry.size for entry in store.entries("u/history/days")]
    assert tend(history, HistorySettings(keep_days=0, keep_bytes=str(newest)), LATER).dropped == 1
    assert {key[:3] for key in history.record_keys()} == {"a5-"}
    assert tend(history, HistorySettings(keep_days=0, keep_bytes=""), LATER).dropped == 0


def test_packing_leaves_out_what_must_not_be_kept_any_more(tmp_path: Path) -> None:
    history = HistoryStore(LocalStore(str(tmp_path)), "u")
    secret = And((Compare("a", Op.LT, Kind.INTEGER, 7), Compare("email", Op.EQ, Kind.STRING, "x@y.z")))
    history.append([replace(record("q"), predicate=secret, sql="SELECT 'x@y.z'"), record("r")])
    tend(history, HistorySettings(redact=("Email",), store_sql=True), LATER)
    redacted, plain = history.read_since({})[0]
    assert (redacted.predicate, redacted.exactness) == (Compare("a", Op.LT, Kind.INTEGER, 7), Exactness.RELAXED)
    assert (redacted.reasons, redacted.sql) == (("redacted: email =",), None)
    assert plain == record("r")
    history.append([replace(record("s"), sql="SELECT 1")])
    tend(history, HistorySettings(), LATER)
    assert [r.sql for r in history.read_since({})[0]] == [None] * 3
    assert history.batches() == []


def test_a_corrupt_day_file_is_set_aside(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    history = HistoryStore(store, "u")
    history.append([record("a")])
    store.create("u/history/days/2024-01-01-x.parquet", b"PAR1 no")
    assert [r.query_id for r in history.read_since({})[0]] == ["a"]
    assert history.set_aside() == ["u/history/unreadable/2024-01-01-x.parquet"]


def write_forever(root: str, seed: int, batches: int) -> None:
    history = HistoryStore(LocalStore(root), "u")
    random = Random(seed)
    log = Path(root, f"written-{seed}-{os.getpid()}")
    with log.open("a") as acknowledged:
        for number in range(batches):
            names = [f"w{seed}-{os.getpid()}-{number}-{n}" for n in range(random.randint(1, 5))]
            history.append([record(name) for name in names])
            acknowledged.write("".join(f"{name}\n" for name in names))
            acknowledged.flush()


def compact_forever(root: str) -> None:
    history = HistoryStore(LocalStore(root), "u")
    while True:
        compact(history, LATER)
        time.sleep(0.05)


def test_many_processes_and_kills_lose_and_repeat_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")  # ten processes that import once
    context.set_forkserver_preload(["oreo_lakehouse.history.compaction"])
    root = str(tmp_path)
    writers = [context.Process(target=write_forever, args=(root, seed, 8)) for seed in range(6)]
    doomed = [context.Process(target=write_forever, args=(root, 100 + seed, 10_000)) for seed in range(2)]
    compactors = [context.Process(target=compact_forever, args=(root,)) for _ in range(2)]
    for process in [*writers, *doomed, *compactors]:
        process.start()
    history = HistoryStore(LocalStore(root), "u")
    cursor: dict[str, Any] = {}
    read: list[str] = []
    deadline = time.monotonic() + 120
    while any(process.is_alive() for process in writers) and time.monotonic() < deadline:
        records, cursor = history.read_since(cursor)
        read += [r.query_id for r in records]
        time.sleep(0.05)
        if len(read) > 30:
            for process in [*doomed, compactors[0]]:
                if process.is_alive() and process.pid:
                    os.kill(process.pid, signal.SIGKILL)
    for process in [*doomed, *compactors]:
        if process.is_alive():
            process.kill()
    for process in [*writers, *doomed, *compactors]:
        process.join(60)
    compact(history, LATER)
    records, cursor = history.read_since(cursor)
    read += [r.query_id for r in records]
    acknowledged = {name for log in tmp_path.glob("written-*") for name in log.read_text().split()}
    assert len(read) == len(set(read))
    assert acknowledged <= set(read)
    assert len(acknowledged) > 60
    assert history.set_aside() == []
