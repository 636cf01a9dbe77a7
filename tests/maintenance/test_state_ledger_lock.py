"""What maintenance keeps: numbered saves, an append-only ledger, a lock that a crash cannot hold for long."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from oreo_lakehouse.errors import ConflictError, StoreError
from oreo_lakehouse.maintenance import lock as lock_module
from oreo_lakehouse.maintenance.ledger import MANY, Ledger
from oreo_lakehouse.maintenance.lock import locked
from oreo_lakehouse.maintenance.state import KEPT, State, StateStore
from oreo_lakehouse.store import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def test_the_newest_save_is_loaded_and_old_ones_are_tidied(store: LocalStore) -> None:
    states = StateStore(store, "t")
    assert states.load() == (State(), [])
    for number in range(1, 6):
        states.save(State(number, {"n": number}, {"o": [1.5, None]}, queries=number))
    assert states.load() == (State(5, {"n": 5}, {"o": [1.5, None]}, queries=5), [])
    assert len(store.entries("t/state")) == KEPT


def test_of_two_runs_that_save_the_same_number_one_is_told(store: LocalStore) -> None:
    StateStore(store, "t").save(State(1, queries=1))
    with pytest.raises(ConflictError, match="another run recorded its decision first"):
        StateStore(store, "t").save(State(1, queries=2))
    assert StateStore(store, "t").load()[0].queries == 1


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"version": 1}'])
def test_a_damaged_save_is_named_set_aside_and_the_one_before_used(
    store: LocalStore, tmp_path: Path, damage: bytes
) -> None:
    states = StateStore(store, "t")
    states.save(State(1, queries=1))
    states.save(State(2, queries=2))
    file = tmp_path / "t/state/0000000002.json"
    file.write_bytes(damage)
    state, notices = states.load()
    assert state.queries == 1
    assert len(notices) == 1
    assert "0000000002.json" in notices[0]
    assert (tmp_path / "t/set-aside/0000000002.json").read_bytes() == damage
    assert not file.exists()


def test_one_flipped_character_is_noticed(store: LocalStore, tmp_path: Path) -> None:
    StateStore(store, "t").save(State(1, queries=1234))
    file = tmp_path / "t/state/0000000001.json"
    file.write_bytes(file.read_bytes().replace(b"1234", b"1235"))
    state, notices = StateStore(store, "t").load()
    assert (state.number, len(notices)) == (0, 1)


def test_a_save_of_a_newer_release_is_not_touched(store: LocalStore, tmp_path: Path) -> None:
    StateStore(store, "t").save(State(1))
    file = tmp_path / "t/state/0000000001.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 99}))
    with pytest.raises(StoreError, match="written by another release"):
        StateStore(store, "t").load()
    assert file.exists()


def test_the_ledger_keeps_order_and_passes_over_damaged_lines(store: LocalStore, tmp_path: Path) -> None:
    ledger = Ledger(store, "t")
    ledger.append("r1", [("decision", {"reason": "a"}), ("commit", {"version": 3})])
    ledger.append("r1", [])
    ledger.append("r1", [("decision", {"reason": "b"})])
    (tmp_path / "t/ledger/99999999T-x.jsonl").write_text('{"kind": "decision"\nnot json\n[1]\n')
    assert [line.facts["reason"] for line in ledger.lines(["decision"])] == ["a", "b"]
    assert [line.kind for line in ledger.lines()] == ["decision", "commit", "decision"]


def test_many_runs_are_packed_and_read_as_before(store: LocalStore, tmp_path: Path) -> None:
    ledger, reader = Ledger(store, "t"), Ledger(store, "t")
    for number in range(MANY - 1):
        ledger.append("r", [("decision", {"number": number}), ("event", {})])
    before = reader.lines()
    names = [entry.name for entry in store.entries("t/ledger")]
    texts = {name: (tmp_path / "t/ledger" / name).read_bytes() for name in names}
    ledger.append("r", [("decision", {"number": MANY - 1})])
    assert len(store.entries("t/ledger")) == MANY // 2 + 1
    wanted = list(range(MANY))
    for one in (ledger, reader, Ledger(store, "t")):
        assert [line.facts["number"] for line in one.lines(["decision"])] == wanted
        assert one.lines()[: len(before)] == before
    # A run that dies after it has written the pack leaves files that are in it, too.
    for name in names[: MANY // 2]:
        (tmp_path / "t/ledger" / name).write_bytes(texts[name])
    assert [line.facts["number"] for line in Ledger(store, "t").lines(["decision"])] == wanted
    ledger.append("r", [("decision", {"number": MANY})])
    assert len(store.entries("t/ledger")) == MANY // 2 + 2
    assert [line.facts["number"] for line in Ledger(store, "t").lines(["decision"])] == [*wanted, MANY]


def test_lines_that_find_no_free_name_are_an_error_and_not_lost_in_silence(tmp_path: Path) -> None:
    class Full(LocalStore):
        def create(self, path: str, content: bytes) -> bool:
            return False

    with pytest.raises(StoreError, match=r"the ledger in .* cannot be written: all 100 names .* are taken"):
        Ledger(Full(str(tmp_path)), "t").append("r", [("decision", {})])


def test_the_second_run_is_turned_away_and_the_lock_is_free_afterwards(store: LocalStore) -> None:
    with (
        locked(store, "t", "db.t"),
        pytest.raises(ConflictError, match=rf"db\.t is being maintained by process {os.getpid()}"),
        locked(store, "t", "db.t"),
    ):
        pass
    with locked(store, "t", "db.t"):
        pass
    assert store.entries("t/lock") == []


def test_an_error_inside_frees_the_lock(store: LocalStore) -> None:
    with pytest.raises(ValueError, match="inside"), locked(store, "t", "db.t"):
        raise ValueError("inside")
    assert store.entries("t/lock") == []


def test_the_lock_of_a_dead_process_is_taken_over(store: LocalStore, tmp_path: Path) -> None:
    script = (
        "import os, sys; from oreo_lakehouse.store import LocalStore; "
        "from oreo_lakehouse.maintenance.lock import locked\n"
        "with locked(LocalStore(sys.argv[1]), 't', 'db.t'): os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False).returncode == 9
    assert len(store.entries("t/lock")) == 1
    with locked(store, "t", "db.t"):
        assert len(store.entries("t/lock")) == 1


def test_a_foreign_lock_holds_until_its_lease_is_over(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = {"token": "x", "host": "elsewhere", "pid": 1, "expires": time.time() + 1000}
    store.create("t/lock/0000000001.json", json.dumps(ticket).encode())
    with pytest.raises(ConflictError, match="process 1 on elsewhere"), locked(store, "t", "db.t"):
        pass
    store.delete("t/lock/0000000001.json")
    store.create("t/lock/0000000001.json", json.dumps({**ticket, "expires": 1.0}).encode())
    with locked(store, "t", "db.t"):
        pass


def test_a_living_lock_is_renewed_before_its_lease_is_over(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "RENEWAL_SECONDS", 0.01)
    with locked(store, "t", "db.t"):
        first = store.entries("t/lock")[0].name
        for _ in range(1000):
            if [e.name for e in store.entries("t/lock")] not in ([first], []):
                break
            lock_module.time.sleep(0.01)
        assert store.entries("t/lock")[-1].name > first
        with pytest.raises(ConflictError), locked(store, "t", "db.t"):
            pass
