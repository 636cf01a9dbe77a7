"""Kill -9 at any step that leaves a trace: the table reads the same, and the next run tidies up and goes on.

Now and then that run is killed as well while it tidies up, and the one after it must find the table in order.

Whatever we leave behind goes through the store's files or through the methods of a table that write. A child process
(forked, with the parent's Spark) counts them and is killed at the n-th of a kind, before it, after it, or in the middle
of a store's file (`_publish` gives it its name): no code of ours knows of it, and no `finally` of ours runs.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from world import World

from oreo_lakehouse.store import HadoopStore, LocalStore
from oreo_lakehouse.tables.delta import DeltaTable
from oreo_lakehouse.tables.iceberg import IcebergTable

STORE = ("create", "_publish", "delete")
TABLE = {
    "maintain": ("stage", "verify", "commit", "retain"),
    "roll_back": ("revert",),
    "go_back": ("return_to",),
    "recover": ("sweep",),
}
"""By command, the methods of a table that leave something behind, or come right before what does; to recover is to
maintain after a kill."""
OFTEN = {
    "maintain": {"create": 11, "_publish": 9, "delete": 5},
    "roll_back": {"create": 3, "_publish": 3, "delete": 3},
    "go_back": {"create": 4, "_publish": 4, "delete": 3},
    "recover": {"create": 4, "_publish": 4, "delete": 3},
}
"""By command, how often it comes to each step at the store, about."""
COMMANDS = ("maintain", "maintain", "roll_back", "go_back")
RECOVERIES = 0.3
"""The share of killed commands after which the run that tidies up is killed as well."""


@dataclass
class Killed:
    """How often, and where."""

    kills: int = 0
    spared: int = 0
    """Commands that did not come to the chosen point."""
    points: Counter[str] = field(default_factory=Counter[str])
    formats: Counter[str] = field(default_factory=Counter[str])


class _Steps:
    """Counts what the child does, and ends it at the n-th step of the kind that was chosen."""

    def __init__(self, point: str, times: int) -> None:
        self._point, self._left = point, times

    def watch(self) -> None:
        for owner in (LocalStore, HadoopStore, DeltaTable, IcebergTable):
            for name in (
                STORE if owner in (LocalStore, HadoopStore) else {one for names in TABLE.values() for one in names}
            ):
                if hasattr(owner, name):
                    setattr(owner, name, self._wrapped(getattr(owner, name), name))
        os.link = self._wrapped(os.link, "_publish")  # which is how a file on this machine's disk gets its name

    def _wrapped(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        @wraps(real)
        def counted(*given: Any, **named: Any) -> Any:
            self._reached(f"before {name}")
            answer = real(*given, **named)
            self._reached(f"after {name}")
            return answer

        return counted

    def _reached(self, point: str) -> None:
        self._left -= point == self._point
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def killed_at(point: str, times: int, work: Callable[[], None]) -> bool:
    """Do the work in a child that is killed when it comes to a point so many times; whether it did.

    Raises:
        AssertionError: the work failed by itself.
    """
    child = os.fork()
    if child == 0:
        try:
            _Steps(point, times).watch()
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc(file=sys.stderr)
            sys.stderr.flush()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    assert os.WEXITSTATUS(status) == 0, "the child failed by itself; its trace stands above"
    return False


def kill_and_go_on(world: World, draw: random.Random, killed: Killed) -> None:
    """One kill somewhere in one command, perhaps another in the next, and then a run that must find all in order."""
    told: list[str] = []
    world.append(draw.randrange(1000))
    world.check()
    try:
        if _ended(world, draw, draw.choice(COMMANDS), killed, told) and draw.random() < RECOVERIES:
            _ended(world, draw, "recover", killed, told)
        world.maintain(draw.randrange(1000))
        world.check()
        world.check_ledger()
        assert world.unsettled() == []
    except Exception as error:
        raise AssertionError(f"{', then '.join(told)}: {error}") from error


def _ended(world: World, draw: random.Random, action: str, killed: Killed, told: list[str]) -> bool:
    """Whether the command came to the point at which it is killed; what was tried is told in any case."""
    own, number = draw.random() < 0.5, draw.randrange(1000)
    step = draw.choice(TABLE[action] if own else STORE)
    point, times = f"{draw.choice(['before', 'after'])} {step}", 1 if own else draw.randint(1, OFTEN[action][step])
    told.append(f"{action} {number}, killed {point}, time {times}")
    command = world.maintain if action == "recover" else getattr(world, action)
    spark, world.spark = world.spark, world.spark.newSession()  # what the dead child set in it is gone with it
    ended = killed_at(point, times, lambda: command(number))
    world.spark = spark
    world.told += 1  # the child told as much
    if ended:
        killed.kills += 1
        killed.points[point] += 1
        killed.formats[world.kind.format] += 1
    killed.spared += not ended
    world.read_anew()
    return ended
