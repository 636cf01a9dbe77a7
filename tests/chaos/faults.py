"""Faults of storage, catalog and clock in the middle of our work: a clear error, nothing lost, and on it goes."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from faultystorage import METADATA, ROOM
from playground import warehouse_of
from poison import damaged
from world import World

from oreo_lakehouse.errors import OreoError

Heal = Callable[[], None]


@dataclass
class Faulted:
    """What was tried, and how commands ended."""

    faults: int = 0
    kinds: Counter[str] = field(default_factory=Counter[str])
    answers: Counter[str] = field(default_factory=Counter[str])


class Faults:
    """A table, and its store, on storage that can fail; or in a catalog that can, where one is given."""

    def __init__(self, world: World, storage: Any, faulted: Faulted, catalog: Any = None) -> None:
        self.world, self.storage, self.faulted, self.catalog = world, storage, faulted, catalog
        self._store = world.folder / "store"

    def fault_and_go_on(self, draw: random.Random) -> None:
        """One fault in one command; afterwards the rows are there, and the next run does its work."""
        world = self.world
        possible = CATALOG_FAULTS if self.catalog is not None else FAULTS
        kind = draw.choice([kind for kind in possible if kind != "catalog locked" or world.kind.format == "iceberg"])
        action = draw.choice(["maintain", "maintain", "roll_back", "go_back"])
        world.append(draw.randrange(1000))
        world.read_anew()
        heal = possible[kind](self, draw)
        try:
            getattr(world, action)(draw.randrange(1000))
            answer = "went on"
        except OreoError as error:
            answer = type(error).__name__
            if "\tat " in str(error):
                raise AssertionError(f"{kind}, {action}: a stack trace: {error}") from error
        except Exception as error:
            raise AssertionError(f"{kind}, {action}: raised {type(error).__name__}: {str(error)[:1000]}") from error
        finally:
            heal()
        try:
            world.read_anew()
            world.maintain(draw.randrange(1000))
            world.check()
            assert world.unsettled() == []
        except Exception as error:
            raise AssertionError(f"after {kind}, {action} ({answer}): {error}") from error
        self.faulted.faults += 1
        self.faulted.kinds[kind] += 1
        self.faulted.answers[answer] += 1

    # Faults; each answers what ends it.

    def full(self, draw: random.Random) -> Heal:
        self.storage.fault(draw.choice([0, 300, 3_000, 30_000]), None)
        return self._healed

    def no_metadata(self, _: random.Random) -> Heal:
        self.storage.fault(ROOM, METADATA[self.world.kind.format])
        return self._healed

    def no_store(self, draw: random.Random) -> Heal:
        folders = ["", "state", "ledger", "history", "files", "layouts", "pending", "lock", "blocks"]
        self.storage.fault(ROOM, f"/{draw.choice(folders)}/" if draw.random() < 0.9 else "/store/")
        return self._healed

    def _healed(self) -> None:
        self.storage.fault(ROOM, None)

    def damaged_file(self, draw: random.Random) -> Heal:
        files = self._files()
        if files:
            file = draw.choice(files)
            file.write_bytes(damaged(file.read_bytes(), draw, str(self.world.folder / "outside")))
        return _nothing

    def vanished_file(self, draw: random.Random) -> Heal:
        for file in self._files()[draw.randrange(5) :: 5]:
            file.unlink()
        return _nothing

    def _files(self) -> list[Path]:
        return sorted(path for path in self._store.rglob("*") if path.is_file() and not path.name.startswith("."))

    def vanished_rows(self, draw: random.Random) -> Heal:
        """A data file is not there for a while."""
        folder = Path(re.sub("^[a-z]+:/*", "/", self.world.dossier().table.identity.location))
        file = draw.choice(sorted(folder.rglob("*.parquet")))
        away = file.with_name(f"{file.name}.away")
        file.rename(away)

        def back() -> None:
            with suppress(FileNotFoundError):  # nobody needed it any more, and it was tidied away
                away.rename(file)

        return back

    def clock(self, draw: random.Random) -> Heal:
        """The ledger's last lines and the history's last batch were written by a clock that was ahead."""
        ahead = datetime.now(UTC) + timedelta(seconds=draw.choice([5, 86_400, 4_000_000_000]))
        for folder in self._store.rglob("ledger"):
            for file in sorted(folder.glob("*.jsonl"))[-1:]:
                file.rename(file.with_name(f"{ahead:%Y%m%dT%H%M%S%f}-{file.name.partition('-')[2]}"))
        for folder in self._store.rglob("history"):
            for file in sorted(folder.glob("*.jsonl"))[-1:]:
                stamp = f"{int(ahead.timestamp() * 1e6):016d}"
                file.rename(file.with_name(f"{stamp}-{file.name.partition('-')[2]}"))
        return _nothing

    def foreign_lock(self, draw: random.Random) -> Heal:
        """Another machine's run is under way, or its clock is far off."""
        lock = self._store / self.world.dossier().table.identity.uuid / "lock" / f"{draw.randrange(1000):010d}.json"
        lock.parent.mkdir(parents=True, exist_ok=True)
        ends = time.time() + draw.choice([-10, 100, 1e9])
        lock.write_text(json.dumps({"token": "x", "host": "elsewhere", "pid": 1, "expires": ends}))
        return lambda: lock.unlink(missing_ok=True)

    def catalog_locked(self, _: random.Random) -> Heal:
        """Nobody can write the embedded catalog."""
        catalog = sqlite3.connect(warehouse_of(self.world.spark) / "_iceberg.db", isolation_level=None)
        catalog.execute("begin immediate")
        return catalog.close

    def catalog_gone(self, _: random.Random) -> Heal:
        """Nobody answers there."""
        self.catalog.gone(True)
        return lambda: self.catalog.gone(False)

    def catalog_slow(self, draw: random.Random) -> Heal:
        self.catalog.slow(draw.choice([50, 200]))
        return lambda: self.catalog.slow(0)

    def answers_lost(self, draw: random.Random) -> Heal:
        """One commit is done, and whoever asked for it hears of an error."""
        self.catalog.fail(draw.randrange(4), draw.choice([1, 9]), True)
        return lambda: self.catalog.fail(0, 0, False)

    def requests_lost(self, draw: random.Random) -> Heal:
        self.catalog.fail(draw.randrange(4), draw.choice([1, 9]), False)
        return lambda: self.catalog.fail(0, 0, False)


def _nothing() -> None:
    pass


FAULTS: dict[str, Callable[[Faults, random.Random], Heal]] = {
    "disk full": Faults.full,
    "metadata closed": Faults.no_metadata,
    "store closed": Faults.no_store,
    "file of the store damaged": Faults.damaged_file,
    "files of the store gone": Faults.vanished_file,
    "data file gone": Faults.vanished_rows,
    "clock turned": Faults.clock,
    "lock of another machine": Faults.foreign_lock,
    "catalog locked": Faults.catalog_locked,
}
CATALOG_FAULTS: dict[str, Callable[[Faults, random.Random], Heal]] = {
    "catalog gone": Faults.catalog_gone,
    "catalog slow": Faults.catalog_slow,
    "answers of commits lost": Faults.answers_lost,
    "requests of commits lost": Faults.requests_lost,
}
