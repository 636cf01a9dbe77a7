"""Round after round of everything that is tried at tables, by one process with a Spark of its own.

    uv run python tests/chaos/rounds.py '{"minutes": 5, "first": 1, "stride": 1, "kinds": ["delta"], "histories": 3}'

`examples/chaos.py` starts several of these side by side. Each prints one line of JSON after every round: what was
tried, and what failed. A round is known by its number, from which everything in it is drawn.
"""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent.parent))  # what the suite and this share

from faults import Faulted, Faults
from faultystorage import ROOM, faulty_storage
from histories import Tally, explored, world_of
from kills import Killed, kill_and_go_on
from playground import playground, warehouse_of
from races import Race, Raced
from restcatalog import CATALOG, rest_catalog
from scene import scene
from strangers import KINDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOSTILE = Path(__file__).with_name("hostile.py")


@dataclass(frozen=True)
class Wanted:
    """What a round is made of, and which rounds this process plays."""

    minutes: float
    first: int
    stride: int = 1
    kinds: Sequence[str] = tuple(KINDS)
    histories: int = 0
    steps: int = 15
    kills: int = 0
    faults: int = 0
    race: float = 0
    inputs: int = 0


@dataclass
class Found:
    """What was tried in a round, and what failed."""

    number: int
    kinds: dict[str, Tally] = field(default_factory=dict[str, Tally])
    kills: Killed = field(default_factory=Killed)
    faults: Faulted = field(default_factory=Faulted)
    races: Raced = field(default_factory=Raced)
    hostile: dict[str, Any] = field(default_factory=dict[str, Any])
    failures: list[str] = field(default_factory=list[str])
    minutes: dict[str, float] = field(default_factory=dict[str, float])
    """Of this process, by what was tried."""


class Rounds:
    """One process's share."""

    def __init__(self, spark: SparkSession, wanted: Wanted) -> None:
        self._spark, self._wanted = spark, wanted
        self._storage = faulty_storage(spark)
        self._scene = scene(spark, warehouse_of(spark) / "hostile") if wanted.inputs else Path()

    def played(self) -> Generator[Found]:
        """One round after the other until the time is over; the last one is not finished then."""
        wanted = self._wanted
        ends = time.monotonic() + 60 * wanted.minutes
        for number in itertools.count(wanted.first, wanted.stride):
            found = Found(number)
            for what, part in self._parts(found):
                begun = time.monotonic()
                if begun > ends:
                    break
                try:
                    part()
                except Exception as failure:
                    found.failures.append(f"round {number}, {what}: {failure}")
                found.minutes[what] = found.minutes.get(what, 0) + (time.monotonic() - begun) / 60
            yield found
            if time.monotonic() > ends:
                return

    def _parts(self, found: Found) -> list[tuple[str, Callable[[], None]]]:
        """What a round is made of, in turn; the kinds of tables go on from round to round."""
        wanted = self._wanted
        kinds = itertools.islice(itertools.cycle(wanted.kinds), found.number - 1, None)
        kind = next(kinds)
        parts = [("histories", self._history(found, next(kinds), at)) for at in range(wanted.histories)]
        others: list[tuple[str, float, Callable[[], None]]] = [
            ("kills", wanted.kills, lambda: self._kills(found, kind)),
            ("faults", wanted.faults, lambda: self._faults(found, kind)),
            ("races", wanted.race, lambda: self._race(found, kind)),
            ("hostile", wanted.inputs, lambda: self._inputs(found)),
        ]
        return parts + [(what, part) for what, much, part in others if much]

    def _history(self, found: Found, kind: str, at: int) -> Callable[[], None]:
        seed = found.number * 1000 + at
        tally = found.kinds.setdefault(kind, Tally())
        return lambda: explored(self._spark, kind, seed, self._wanted.steps, tally)

    def _kills(self, found: Found, kind: str) -> None:
        with world_of(self._spark, kind) as world:
            draw = random.Random(found.number)
            for _ in range(self._wanted.kills):
                kill_and_go_on(world, draw, found.kills)
            world.check_every_version()

    def _faults(self, found: Found, kind: str) -> None:
        """Of storage; for Iceberg, half of them of a REST catalog."""
        draw, folder = random.Random(found.number), warehouse_of(self._spark) / f"rest{found.number}"
        over = [("faulty://", "iceberg")]
        if KINDS[kind].format == "iceberg":
            over.append(("", CATALOG))
        folder.mkdir()
        try:
            with rest_catalog(self._spark, folder) as catalog:
                for scheme, name in over:
                    with world_of(self._spark, kind, scheme, name) as world:
                        faults = Faults(world, self._storage, found.faults, None if scheme else catalog)
                        for _ in range(max(1, self._wanted.faults // len(over))):
                            faults.fault_and_go_on(draw)
                        world.check_every_version()
        finally:
            self._storage.fault(ROOM, None)

    def _race(self, found: Found, kind: str) -> None:
        with world_of(self._spark, kind) as world:
            Race(world, warehouse_of(self._spark), found.races).run(self._wanted.race, 2 + found.number % 3)

    def _inputs(self, found: Found) -> None:
        words = [sys.executable, str(HOSTILE), str(self._scene), "--inputs", str(self._wanted.inputs)]
        done = subprocess.run([*words, "--seed", str(found.number)], capture_output=True, text=True, check=False)
        if not done.stdout:
            raise RuntimeError(f"it ended without a word: {done.stderr[-1000:]}")
        found.hostile = json.loads(done.stdout)
        found.failures += found.hostile.pop("failures")
        found.hostile.pop("peak_mb")


def main() -> None:
    wanted = Wanted(**json.loads(sys.argv[1]))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # Spark and the folder are gone then, too
    with playground() as spark:
        for found in Rounds(spark, wanted).played():
            print(json.dumps(found, default=vars), flush=True)


if __name__ == "__main__":
    main()
