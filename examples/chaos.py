"""Try hard to make a table lose a row, and us to misbehave: on both formats, as long as you like.

    uv run python examples/chaos.py --minutes 60 --into chaos.json
    uv run python examples/chaos.py --minutes 5 --kinds "delta mapped" "iceberg v3" --json

A history is a random sequence of appends, DELETE, UPDATE, MERGE, overwrites, ALTER TABLE, OPTIMIZE, VACUUM,
maintenance (layouts and folds), rollbacks, returns and restarts, taken in a real table and in a model in memory. After
every step both must hold the same rows; queries must answer the same with pruning and without, older versions must read
as they did, no file may be left that nobody owns, and the ledger must tell what the table's own history shows. A
history that fails is cut down and printed as a command that plays it again.

After each history, on tables of the same kind: commands of ours are killed (SIGKILL) at random steps; storage,
catalog and clock fail under them; and two to four maintainers race with each other, with appenders (Spark, and delta-rs
or pyiceberg) that never pause, and with OPTIMIZE, VACUUM or their like. Each time the rows must be there once, and the
next run must find the table in order, tidy up and go on. And a process of its own is given hostile names,
configurations, query logs and files of the store: it must answer with a sentence and an exit code, and touch nothing
that is not ours.

`--into FILE` adds up runs: seeds go on where the last run ended. Exit code 1 if anything failed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "chaos"))  # the suite plays a share of the same

from faults import Faulted, Faults
from faultystorage import ROOM, faulty_storage
from histories import Tally, explored, world_of
from kills import Killed, kill_and_go_on
from playground import playground, warehouse_of
from races import Race, Raced
from scene import scene
from strangers import KINDS

HOSTILE = Path(__file__).parent.parent / "tests" / "chaos" / "hostile.py"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS), metavar="KIND")
    parser.add_argument("--seed", type=int, help="of the first history; by default 1, or where FILE ended")
    parser.add_argument("--steps", type=int, default=15, help="in each history")
    parser.add_argument("--kills", type=int, default=5, help="tried after each history")
    parser.add_argument("--faults", type=int, default=3, help="tried after each history")
    parser.add_argument("--race", type=float, default=20, help="seconds of a race after each history")
    parser.add_argument("--inputs", type=int, default=100, help="hostile ones after each history")
    parser.add_argument("--into", type=Path, metavar="FILE", help="add what was tried to that of earlier runs")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    known: dict[str, Any] = json.loads(given.into.read_text()) if given.into and given.into.exists() else {}
    first = given.seed if given.seed is not None else known.get("next_seed", 1)
    with playground() as spark:
        found = played(spark, given, first, known)
    show(found, as_json=given.json)
    return 1 if found["failures"] else 0


def played(spark: Any, given: argparse.Namespace, first: int, known: dict[str, Any]) -> dict[str, Any]:
    """One seed after the other until the time is over; after each, the sums are in the file."""
    storage, started, total = faulty_storage(spark), time.monotonic(), known
    folder = scene(spark, warehouse_of(spark) / "hostile") if given.inputs else Path()
    for seed in itertools.count(first):
        kind = given.kinds[(seed - 1) % len(given.kinds)]
        minutes = (time.monotonic() - started) / 60
        if minutes > given.minutes:
            return total
        told(f"{minutes:.0f} of {given.minutes:.0f} min: {kind}, seed {seed}")
        tally, killed, faulted, raced = Tally(), Killed(), Faulted(), Raced()
        hostile: dict[str, Any] = {"inputs": 0}
        failures: list[str] = []
        begun = time.monotonic()

        def history(kind: str = kind, seed: int = seed, tally: Tally = tally) -> None:
            explored(spark, kind, seed, given.steps, tally)

        def kills(kind: str = kind, seed: int = seed, killed: Killed = killed) -> None:
            with world_of(spark, kind) as world:
                draw = random.Random(seed)
                for _ in range(given.kills):
                    kill_and_go_on(world, draw, killed)
                world.check_every_version()

        def faults(kind: str = kind, seed: int = seed, faulted: Faulted = faulted) -> None:
            try:
                with world_of(spark, kind, "faulty://") as world:
                    draw = random.Random(seed)
                    for _ in range(given.faults):
                        Faults(world, storage, faulted).fault_and_go_on(draw)
                    world.check_every_version()
            finally:
                storage.fault(ROOM, None)

        def race(kind: str = kind, seed: int = seed, raced: Raced = raced) -> None:
            with world_of(spark, kind) as world:
                Race(world, warehouse_of(spark), raced).run(given.race, 2 + seed % 3)

        def inputs(seed: int = seed, hostile: dict[str, Any] = hostile, failures: list[str] = failures) -> None:
            words = [sys.executable, str(HOSTILE), str(folder), "--inputs", str(given.inputs)]
            done = subprocess.run([*words, "--seed", str(seed)], capture_output=True, text=True, check=False)
            hostile.update(json.loads(done.stdout))
            failures += hostile.pop("failures")
            hostile.pop("peak_mb")

        rounds: list[tuple[bool, Callable[[], None]]] = [
            *((True, history), (given.kills > 0, kills), (given.faults > 0, faults), (given.race > 0, race)),
            (given.inputs > 0, inputs),
        ]
        for wanted, one in rounds:
            try:
                if wanted:
                    one()
            except Exception as failure:
                failures.append(f"{kind}, seed {seed}, {one.__name__}: {failure}")
        for failure in failures:
            sys.stderr.write(f"\n{failure}\n")
        total = added(
            total,
            {
                "kinds": {kind: vars(tally)},
                "kills": vars(killed),
                "faults": vars(faulted),
                "races": vars(raced),
                "hostile": hostile,
                "failures": failures,
                "minutes": (time.monotonic() - begun) / 60,
            },
        ) | {"next_seed": seed + 1}
        if given.into:
            given.into.write_text(json.dumps(total, indent=1))
    return total


def added(before: Any, more: Any) -> Any:
    """Sums of numbers, lists one after the other, and so on inwards.

    >>> added({"a": 1, "b": [1]}, {"a": 2, "b": [2], "c": {"d": 3}})
    {'a': 3, 'b': [1, 2], 'c': {'d': 3}}
    """
    if isinstance(more, dict):
        return {**before, **{key: added(before[key], value) if key in before else value for key, value in more.items()}}
    return before + more


def told(what: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{what}")


def show(found: dict[str, Any], *, as_json: bool) -> None:
    """What was tried, and what failed."""
    told("")
    if as_json:
        print(json.dumps(found))
        return
    columns = ("histories", "steps", "layouts", "folds", "questions", "rows compared", "CPU s")
    print(f"{'':24s}" + "".join(f"{column:>15s}" for column in columns))
    sums = [0.0] * len(columns)
    for kind, tally in found.get("kinds", {}).items():
        decided = tally["decisions"]
        line = [tally["histories"], sum(tally["steps"].values()), decided.get("move", 0) + decided.get("return", 0)]
        line += [decided.get("fold", 0), tally["questions"], tally["rows_checked"], sum(tally["cpu"].values())]
        sums = [one + more for one, more in zip(sums, line, strict=True)]
        print(f"{kind:24s}" + "".join(f"{number:15,.0f}" for number in line))
    print(f"{'all':24s}" + "".join(f"{number:15,.0f}" for number in sums))
    for title, part in (("kills", "points"), ("faults", "kinds"), ("hostile", "kinds")):
        about = found.get(title, {})
        count = next((about[name] for name in ("kills", "faults", "inputs") if name in about), 0)
        print(f"{count:,} {title}: {', '.join(f'{n:,} {what}' for what, n in sorted(about.get(part, {}).items()))}")
    raced = found.get("races", {"seconds": 0, "done": {}})
    done = ", ".join(f"{n:,} {what}" for what, n in sorted(raced["done"].items()))
    print(f"{raced['seconds'] / 60:.1f} minutes of races: {done}")
    print(f"{found.get('minutes', 0):.0f} minutes; {len(found.get('failures', []))} failed")


if __name__ == "__main__":
    raise SystemExit(main())
