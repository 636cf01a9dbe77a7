"""Random histories of a table: drawn from a seed, played against the model, cut down when they fail.

A history is a list of steps, each a method of `World` and a number. One that fails is shortened by leaving out steps as
long as it still fails, and printed as a script that plays it again:

    uv run python tests/chaos/histories.py "delta mapped" '[["append", 3], ["maintain", 7]]'
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from strangers import KINDS
from world import World

import oreo_lakehouse as oreo
from oreo_lakehouse.jvm import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Step = tuple[str, int]
WEIGHTS = {
    "append": 5,
    "delete": 3,
    "update": 3,
    "merge": 2,
    "overwrite": 1,
    "add_column": 1,
    "rename_column": 1,
    "drop_column": 1,
    "widen_column": 1,
    "compact": 2,
    "clean": 1,
    "maintain": 9,
    "roll_back": 3,
    "go_back": 2,
    "ask": 4,
    "capture": 1,
    "restart": 1,
}
_schemas = itertools.count(1)


@dataclass
class Tally:
    """What was tried."""

    histories: int = 0
    steps: Counter[str] = field(default_factory=Counter[str])
    decisions: Counter[str] = field(default_factory=Counter[str])
    questions: int = 0
    rows_checked: int = 0
    cpu: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds of this process and its JVM, by step; `check` and `end` are comparisons after steps and at the end."""

    @property
    def moves(self) -> int:
        return self.decisions.total() - self.decisions["stay"]


class HistoryFailedError(AssertionError):
    """A history after which table and model differ, as short as it could be made."""


def drawn(seed: int, length: int) -> list[Step]:
    """The steps of a seed. The first is a run of ours: before a layout, there is nothing to undo or to disturb."""
    draw = random.Random(seed)
    names = ["maintain", *draw.choices(list(WEIGHTS), list(WEIGHTS.values()), k=length - 1)]
    return [(name, draw.randrange(1000)) for name in names]


@contextmanager
def world_of(spark: SparkSession, kind: str, scheme: str = "", catalog: str = "iceberg") -> Generator[World]:
    """A table of a kind, gone afterwards; with a scheme, it and its store are on that storage."""
    number, delta = next(_schemas), KINDS[kind].format == "delta"
    schema, what = (f"history{number}", "database") if delta else (f"{catalog}.history{number}", "namespace")
    folder = Path(tempfile.mkdtemp(prefix="oreo-history-"))
    spark.sql(f"create {what} {schema}")
    try:
        yield World(spark, kind, f"{schema}.t", folder, scheme)
    finally:
        oreo.detach(spark)
        spark = spark.newSession()  # this one may remember the table as it was before a restart
        spark.sql(f"drop table if exists {schema}.t{'' if delta else ' purge'}")
        spark.sql(f"drop {what} {schema}")
        shutil.rmtree(folder, ignore_errors=True)


def play(spark: SparkSession, kind: str, steps: Sequence[Step], tally: Tally) -> None:
    """Every step in table and model, with a check after each; raises what the first difference or error is."""
    begun = cpu_seconds(spark)

    def spent(what: str) -> None:
        nonlocal begun
        begun, before = cpu_seconds(spark), begun
        tally.cpu[what] += begun - before

    with world_of(spark, kind) as world:
        spent("create")
        for name, number in steps:
            getattr(world, name)(number)
            spent(name)
            world.check()
            spent("check")
            tally.steps[name] += 1
        world.check_every_version()
        world.check_ledger()
        spent("end")
        tally.histories += 1
        tally.decisions.update(world.decisions)
        tally.questions += world.asked
        tally.rows_checked += world.checked


def cpu_seconds(spark: SparkSession) -> float:
    """What this process and its JVM have spent so far."""
    info = jvm(spark).java.lang.ProcessHandle.current().info()
    return time.process_time() + float(info.totalCpuDuration().get().toMillis()) / 1000


def explored(spark: SparkSession, kind: str, seed: int, length: int, tally: Tally, shrink_seconds: float = 300) -> None:
    """One history; a failing one is cut down first.

    Raises:
        HistoryFailedError: with the script that fails.
        SystemExit: not even an empty history succeeds.
    """
    steps = drawn(seed, length)
    first = _failure(spark, kind, steps, tally)
    if first is None:
        return
    deadline = time.monotonic() + shrink_seconds
    if _failure(spark, kind, [], Tally()) is not None:
        raise SystemExit(f"Spark itself has failed, so that no history can be played any more:\n{first}")
    short = shrunk(steps, lambda fewer: _failure(spark, kind, fewer, Tally()) is not None, deadline)
    last = _failure(spark, kind, short, Tally()) or first
    script = f"uv run python tests/chaos/histories.py {kind!r} '{json.dumps(short)}'"
    raise HistoryFailedError(f"seed {seed}, {len(short)} of {len(steps)} steps fail:\n{script}\n{last}")


def shrunk(steps: list[Step], fails: Callable[[list[Step]], bool], deadline: float) -> list[Step]:
    """Fewer steps that fail too: pieces are left out, half of them at first, one step at the end.

    >>> shrunk([(name, 0) for name in "abcdefgh"], lambda some: {("b", 0), ("g", 0)} <= set(some), float("inf"))
    [('b', 0), ('g', 0)]
    """
    size = len(steps) // 2
    while size:
        at = 0
        while at < len(steps) and time.monotonic() < deadline:
            fewer = steps[:at] + steps[at + size :]
            if fails(fewer):
                steps = fewer
            else:
                at += size
        size //= 2
    return steps


def _failure(spark: SparkSession, kind: str, steps: Sequence[Step], tally: Tally) -> str | None:
    try:
        play(spark, kind, steps, tally)
    except Exception:  # whatever goes wrong in a history is what it was played for
        return traceback.format_exc(limit=-4)
    return None


if __name__ == "__main__":
    from playground import playground

    with playground() as given:
        play(given, sys.argv[1], [(name, number) for name, number in json.loads(sys.argv[2])], Tally())
        print("table and model agree")
