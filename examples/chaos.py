"""Try hard to make a table lose a row, and us to misbehave: on both formats, as long as you like.

    uv run python examples/chaos.py --minutes 60 --into chaos.json
    uv run python examples/chaos.py --minutes 5 --kinds "delta mapped" "iceberg v3" --json

A history is a random sequence of appends, DELETE, UPDATE, MERGE, overwrites, ALTER TABLE, OPTIMIZE, VACUUM,
maintenance (layouts and folds), rollbacks, returns and restarts, taken in a real table and in a model in memory. After
every step both must hold the same rows; queries must answer the same with pruning and without, older versions must read
as they did, no file may be left that nobody owns, and the ledger must tell what the table's own history shows. A
history that fails is cut down and printed as a command that plays it again.

Between histories, on tables of the same kinds: commands of ours are killed (SIGKILL) at random steps; storage, catalog
and clock fail under them; and two to four maintainers race with each other, with appenders (Spark, and delta-rs or
pyiceberg) that never pause, and with OPTIMIZE, VACUUM or their like. Each time the rows must be there once, and the
next run must find the table in order, tidy up and go on. And a process of its own is given hostile names,
configurations, query logs and files of the store: it must answer with a sentence and an exit code, and touch nothing
that is not ours.

`--into FILE` adds up runs: rounds go on where the last run ended. `--show FILE` tells what is in it. Exit code 1 if
anything failed.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "chaos"))  # the suite plays a share of the same

from rounds import Wanted
from strangers import KINDS

ROUNDS = Path(__file__).parent.parent / "tests" / "chaos" / "rounds.py"
GRACE = 15.0
"""Seconds that a worker has to stop its Spark by itself."""


def main() -> int:
    given = _options()
    if given.show:
        show(json.loads(given.show.read_text()), as_json=given.json)
        return 0
    total: dict[str, Any] = json.loads(given.into.read_text()) if given.into and given.into.exists() else {}
    first = given.round if given.round is not None else total.get("next_round", 1)
    lines = queue.Queue[tuple[int, str]]()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    workers = [worker(given, first + place, place, lines) for place in range(given.processes)]
    total = gathered(workers, lines, total, given)
    show(total, as_json=given.json)
    return 1 if total.get("failures") else 0


def worker(
    given: argparse.Namespace, first: int, place: int, lines: queue.Queue[tuple[int, str]]
) -> subprocess.Popen[str]:
    """One process that plays every n-th round; each line that it prints comes into the queue, and an empty one last."""
    wanted = Wanted(
        *(given.minutes, first, given.processes, given.kinds, given.histories, given.steps),
        *(given.kills, given.faults, given.race, given.inputs),
    )
    words = [sys.executable, str(ROUNDS), json.dumps(vars(wanted))]
    started = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    def read() -> None:
        assert started.stdout is not None
        for line in started.stdout:
            lines.put((place, line))
        lines.put((place, ""))

    threading.Thread(target=read, daemon=True).start()
    return started


def stop(workers: list[subprocess.Popen[str]]) -> None:
    """Ctrl-C in a terminal reaches everybody, `kill` only this process: whoever does not end by himself is told."""
    for each in (signal.SIGINT, signal.SIGTERM):  # `uv run` and a terminal tell it twice
        signal.signal(each, signal.SIG_IGN)
    for one in workers:
        try:
            one.wait(timeout=GRACE)
        except subprocess.TimeoutExpired:
            one.terminate()
    for one in workers:
        one.wait()


def gathered(
    workers: list[subprocess.Popen[str]],
    lines: queue.Queue[tuple[int, str]],
    total: dict[str, Any],
    given: argparse.Namespace,
) -> dict[str, Any]:
    """What all rounds found until the time was over or somebody pressed Ctrl-C, on top of what was known; after each
    round, the sums are in the file."""
    started, at_work = time.monotonic(), len(workers)
    try:
        while at_work:
            told(f"{(time.monotonic() - started) / 60:.0f} of {given.minutes:.0f} min: {summary(total)}")
            try:
                place, line = lines.get(timeout=5)
            except queue.Empty:
                continue
            if line:
                found: dict[str, Any] = json.loads(line)
                following = max(total.pop("next_round", 1), found.pop("number") + 1)
            else:
                at_work -= 1
                code = workers[place].wait()
                found = {"failures": [f"a process ended with {code}; its last words stand above"] if code else []}
                following = total.pop("next_round", 1)
            for failure in found["failures"]:
                sys.stderr.write(f"\n{failure}\n")
            total = added(total, found) | {"next_round": following}
            if given.into:
                unfinished = given.into.with_suffix(".unfinished")
                unfinished.write_text(json.dumps(total, indent=1, sort_keys=True) + "\n")
                os.replace(unfinished, given.into)
    except KeyboardInterrupt:
        stop(workers)
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


def summary(found: dict[str, Any]) -> str:
    """One line."""
    histories = sum(tally["histories"] for tally in found.get("kinds", {}).values())
    kills, faults = (found.get(name, {}).get(name, 0) for name in ("kills", "faults"))
    raced, inputs = found.get("races", {}).get("seconds", 0) / 60, found.get("hostile", {}).get("inputs", 0)
    return (
        f"{histories:,} histories, {kills:,} kills, {faults:,} faults, {raced:.0f} min of races, "
        f"{inputs:,} hostile inputs; {len(found.get('failures', []))} failed"
    )


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
    parts = [("kills", "points"), ("kills", "formats"), ("faults", "kinds"), ("hostile", "kinds"), ("races", "done")]
    for title, part in parts:
        about = found.get(title, {}).get(part, {})
        print(f"{title}: {', '.join(f'{n:,} {what}' for what, n in sorted(about.items()))}")
    minutes = found.get("minutes", {})
    print(f"minutes of one process: {', '.join(f'{n:.0f} {what}' for what, n in minutes.items())}")
    print(summary(found))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="side by side, each with its Spark")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS), metavar="KIND")
    parser.add_argument("--round", type=int, help="the first one; by default 1, or where FILE ended")
    parser.add_argument("--histories", type=int, default=20, help="in each round")
    parser.add_argument("--steps", type=int, default=8, help="in each history")
    parser.add_argument("--kills", type=int, default=10, help="tried in each round")
    parser.add_argument("--faults", type=int, default=4, help="tried in each round")
    parser.add_argument("--race", type=float, default=36, help="seconds of a race in each round")
    parser.add_argument("--inputs", type=int, default=50, help="hostile ones in each round")
    parser.add_argument("--into", type=Path, metavar="FILE", help="add what was tried to that of earlier runs")
    parser.add_argument("--show", type=Path, metavar="FILE", help="tell what is in such a file, and try nothing")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
