"""Maintainers against each other, against writers and against the engine's own upkeep, all at once on one table.

A maintainer may be turned away (`ConflictError`); a writer may not fail because of us, and every row that was
acknowledged must be there exactly once. What the engines do to each other (two rewrites of the same files; pyiceberg,
which leaves the retry to its caller) is counted apart.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import deltalake.exceptions
import pyarrow as pa
from model import COLUMNS, SELECT, made
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from world import BID, World

import oreo_lakehouse as oreo
from oreo_lakehouse.errors import ConflictError
from oreo_lakehouse.jvm import error_class, error_reason

PAUSE = 0.2
PATIENCE = 180.0
"""Seconds after which somebody who has not come to work yet counts as shut out."""
ARROW = {"bigint": pa.int64(), "int": pa.int32(), "string": pa.string()}
OVERTAKEN = ("Concurrent", "CommitFailed", "ValidationException", "DELTA_CONCURRENT")
"""How the engines' own rewrites say that somebody else was faster."""


@dataclass
class Raced:
    """What happened: how often each did its work."""

    seconds: float = 0.0
    done: Counter[str] = field(default_factory=Counter[str])


class Race:
    """One table and everybody who is at it."""

    def __init__(self, world: World, warehouse: Path, raced: Raced | None = None) -> None:
        self.world, self.raced = world, raced or Raced()
        self._warehouse, self._stop, self._lock = warehouse, threading.Event(), threading.Lock()
        self._resting, self._failures = threading.Event(), list[str]()
        self._foreign = False
        """Whether delta-rs or pyiceberg cannot write such a table."""
        self._numbers, self._acknowledged = itertools.count(world.model.next_id), dict[int, str]()

    def run(self, seconds: float, maintainers: int) -> Raced:
        """Everybody works until the time is over; then, without compactions, until both writers and a maintainer have
        had their way once.

        Then the table must hold what was acknowledged.

        Raises:
            AssertionError: it does not, or somebody never got his work done.
        """
        for number in itertools.count():  # the BID column is there before the writers start
            self.world.maintain(number)
            if self.world.moves:
                break
        others = [self._spark_appends, self._native_appends, self._compacts, self._cleans]
        jobs = [*others, *[self._maintains] * maintainers]
        threads = [threading.Thread(target=self._guarded, args=(job, number)) for number, job in enumerate(jobs)]
        started = time.monotonic()
        for thread in threads:
            thread.start()
        self._stop.wait(seconds)  # a failure ends the race
        self._resting.set()  # a layout takes longer than a compaction, and each one makes it start over
        while self._shut_out() and time.monotonic() < started + PATIENCE and not self._stop.wait(PAUSE):
            pass  # a slow machine needs longer for a first layout, and that is no failure
        self._stop.set()
        for thread in threads:
            thread.join()
        self.raced.seconds += time.monotonic() - started
        assert not self._failures, self._failures
        assert not self._shut_out(), f"never done: {self._shut_out()}; done: {dict(self.raced.done)}"
        for number in self._acknowledged:
            self.world.model.append(range(number, number + 1))
        self.world.model.next_id = next(self._numbers)
        self.world.maintain(1)
        try:
            self.world.check()
        except AssertionError as error:
            last = dict(list(self._acknowledged.items())[-200:])
            raise AssertionError(f"{error}; who appended: {last}; {self._commits()}") from error
        self.world.check_ledger()
        assert self.world.unsettled() == []
        return self.raced

    def _shut_out(self) -> set[str]:
        other = "appends by delta-rs" if self.world.kind.format == "delta" else "appends by pyiceberg"
        waited_for = {"layouts", "appends by Spark"} | (set() if self._foreign else {other})
        return waited_for - set(self.raced.done)

    def _commits(self) -> list[str]:
        """The table's own history, newest first, to tell by whom a row was lost."""
        if self.world.kind.format == "delta":
            rows = self.world.sql(f"describe history {self.world.name}").collect()
            return [f"{row.version} {row.operation} {row.engineInfo}" for row in rows]
        rows = self.world.sql(f"select * from {self.world.name}.snapshots order by committed_at desc").collect()
        return [f"{row.snapshot_id} {row.operation} {row.summary}" for row in rows]

    def _guarded(self, job: Callable[[Any, int], None], number: int) -> None:
        session = self.world.spark.newSession()
        try:
            while not self._stop.wait(PAUSE):
                job(session, number)
        except BaseException as error:
            self._failures.append(f"{job.__name__.strip('_')}: {error_class(error)}: {error_reason(error)}")
            self._stop.set()

    def _count(self, what: str) -> None:
        with self._lock:
            self.raced.done[what] += 1

    def _next(self) -> int:
        with self._lock:
            return next(self._numbers)

    def _appended(self, number: int, what: str) -> None:
        with self._lock:
            self._acknowledged[number] = what
        self._count(what)

    def _spark_appends(self, session: Any, _: int) -> None:
        number = self._next()
        names = ", ".join(COLUMNS)
        session.sql(f"insert into {self.world.name} ({names}) select {SELECT} from range({number}, {number + 1})")
        self._appended(number, "appends by Spark")

    def _native_appends(self, _: Any, __: int) -> None:
        number = self._next()
        row = {name: pa.array([value], ARROW[COLUMNS[name]]) for name, value in made(number).items()}
        if self.world.kind.format == "delta":
            folder = self.world.dossier().table.identity.location.removeprefix("file:")
            with_bid = pa.table({**row, BID: pa.array([None], pa.int32())})
            try:
                deltalake.write_deltalake(folder, with_bid, mode="append")
            except deltalake.exceptions.CommitFailedError as error:
                if "Unsupported table features" not in str(error):
                    raise
                self._foreign = True
                return
            self._appended(number, "appends by delta-rs")
            return
        catalog = SqlCatalog("iceberg", uri=f"sqlite:///{self._warehouse}/_iceberg.db", warehouse=str(self._warehouse))
        try:
            catalog.load_table(self.world.name.removeprefix("iceberg.")).append(pa.table(row))
        except CommitFailedException:
            self._count("appends that pyiceberg must repeat")
            return
        except ValueError as error:
            if "Cannot write manifest for table version" not in str(error):
                raise
            self._foreign = True
            return
        self._appended(number, "appends by pyiceberg")

    def _compacts(self, session: Any, _: int) -> None:
        if self._resting.is_set():
            return
        statement = f"optimize {self.world.name}"
        if self.world.kind.format == "iceberg":
            options = "options => map('rewrite-all', 'true')"
            table = self.world.name.removeprefix("iceberg.")
            statement = f"call iceberg.system.rewrite_data_files(table => '{table}', {options})"
        try:
            session.sql(statement).collect()
        except Exception as error:  # of Spark or of the JVM, as the format pleases
            said = f"{error_class(error)} {error_reason(error)}"
            if not any(word in said for word in OVERTAKEN):
                raise
            self._count("compactions that were overtaken")
            return
        self._count("compactions")
        self._stop.wait(3 * PAUSE)

    def _cleans(self, session: Any, _: int) -> None:
        """With a retention that spares what others are still writing, as everybody should."""
        if self.world.kind.format == "delta":
            session.sql(f"vacuum {self.world.name}").collect()
        else:
            before = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=30)
            table = self.world.name.removeprefix("iceberg.")
            call = f"table => '{table}', older_than => timestamp'{before}', retain_last => 5"
            session.sql(f"call iceberg.system.expire_snapshots({call})").collect()
        self._count("cleanings")
        self._stop.wait(10 * PAUSE)

    def _maintains(self, session: Any, _: int) -> None:
        world, column = self.world, ("value", "id", "part")[self.raced.done["runs"] % 3]
        try:
            world.import_log(session, [f"{column} = {at % 5}" for at in range(24)])
            outcome = oreo.maintain(session, world.name, world.config)
        except ConflictError:
            self._count("runs that were turned away")
            return
        self._count("runs")
        if outcome.version_after != outcome.version_before:
            self._count("layouts")
