"""Try hard to make a table lose a row: random histories and kills on both formats, as long as you like.

    uv run python examples/chaos.py --minutes 60
    uv run python examples/chaos.py --minutes 5 --kinds "delta mapped" "iceberg v3" --json

A history is a random sequence of appends, DELETE, UPDATE, MERGE, overwrites, ALTER TABLE, OPTIMIZE, VACUUM,
maintenance, rollbacks and returns, taken in a real table and in a model in memory. After every step both must hold the
same rows, older versions must read as they did, queries must answer the same with pruning and without, and no file may
be left that nobody owns. A history that fails is cut down and printed as a command that plays it again.

After each history, commands of ours on another table are killed (SIGKILL) at random steps, and the next run must find
the table in order, tidy up and go on. Then, on a third one, two to four maintainers race with each other, with
appenders (Spark, and delta-rs or pyiceberg) that never pause, and with OPTIMIZE, VACUUM or their like: no writer may
fail, and every acknowledged row must be there once. Exit code 1 if anything failed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import time
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "chaos"))  # the suite plays a share of the same

from histories import Tally, explored, world_of
from kills import Killed, kill_and_go_on
from playground import playground, warehouse_of
from races import Race, Raced
from strangers import KINDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS), metavar="KIND")
    parser.add_argument("--seed", type=int, default=1, help="of the first history; the next has the next one")
    parser.add_argument("--steps", type=int, default=15, help="in each history")
    parser.add_argument("--kills", type=int, default=5, help="tried on another table, after each history")
    parser.add_argument("--race", type=float, default=20, help="seconds of a race on a third table, after each history")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    started, failures = time.monotonic(), list[str]()
    tallies, killed = {kind: Tally() for kind in given.kinds}, {kind: Killed() for kind in given.kinds}
    raced = Raced()
    with playground() as spark:
        for seed, kind in zip(itertools.count(given.seed), itertools.cycle(given.kinds), strict=False):
            if time.monotonic() - started > given.minutes * 60:
                break
            told(f"{(time.monotonic() - started) / 60:.0f} of {given.minutes:.0f} min: {kind}, seed {seed}")
            try:
                explored(spark, kind, seed, given.steps, tallies[kind])
                with world_of(spark, kind) as world:
                    draw = random.Random(seed)
                    for _ in range(given.kills):
                        kill_and_go_on(world, draw, killed[kind])
                    world.check_every_version()
                if given.race:
                    with world_of(spark, kind) as world:
                        Race(world, warehouse_of(spark), raced).run(given.race, 2 + seed % 3)
            except Exception as failure:
                failures.append(f"{kind}, seed {seed}: {failure}")
                sys.stderr.write(f"\n{failures[-1]}\n")
    told("")
    show(tallies, killed, raced, failures, as_json=given.json)
    return 1 if failures else 0


def told(what: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{what}")


def show(
    tallies: dict[str, Tally], killed: dict[str, Killed], raced: Raced, failures: list[str], *, as_json: bool
) -> None:
    """What was tried, and what failed."""
    if as_json:
        kinds = {kind: {**asdict(tally), **asdict(killed[kind])} for kind, tally in tallies.items()}
        print(json.dumps({"kinds": kinds, "races": asdict(raced), "failures": failures}))
        return
    columns = ("histories", "steps", "layouts", "questions", "rows compared", "kills")
    print(f"{'':24s}" + "".join(f"{column:>15s}" for column in columns))
    sums = [0] * len(columns)
    for kind, tally in tallies.items():
        steps = sum(tally.steps.values())
        line = [tally.histories, steps, tally.moves, tally.questions, tally.rows_checked, killed[kind].kills]
        sums = [one + more for one, more in zip(sums, line, strict=True)]
        print(f"{kind:24s}" + "".join(f"{number:15,d}" for number in line))
    print(f"{'all':24s}" + "".join(f"{number:15,d}" for number in sums))
    print(f"{raced.seconds / 60:.1f} minutes of races: {', '.join(f'{n:,} {what}' for what, n in raced.done.items())}")
    print(f"{len(failures)} failed")


if __name__ == "__main__":
    raise SystemExit(main())
