"""Try hard to make a table lose a row: random histories on both formats, as long as you like.

    uv run python examples/chaos.py --minutes 60
    uv run python examples/chaos.py --minutes 5 --kinds "delta mapped" "iceberg v3" --json

A history is a random sequence of appends, DELETE, UPDATE, MERGE, overwrites, ALTER TABLE, OPTIMIZE, VACUUM,
maintenance, rollbacks and returns, taken in a real table and in a model in memory. After every step both must hold the
same rows, older versions must read as they did, queries must answer the same with pruning and without, and no file may
be left that nobody owns. A history that fails is cut down and printed as a command that plays it again. Exit code 1 if
any failed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "chaos"))  # the suite plays a share of the same

from histories import HistoryFailedError, Tally, explored
from playground import playground
from world import KINDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS), metavar="KIND")
    parser.add_argument("--seed", type=int, default=1, help="of the first history; the next has the next one")
    parser.add_argument("--steps", type=int, default=15, help="in each history")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    started, failures = time.monotonic(), list[str]()
    tallies = {kind: Tally() for kind in given.kinds}
    with playground() as spark:
        for seed, kind in zip(itertools.count(given.seed), itertools.cycle(given.kinds), strict=False):
            if time.monotonic() - started > given.minutes * 60:
                break
            try:
                explored(spark, kind, seed, given.steps, tallies[kind])
            except HistoryFailedError as failure:
                failures.append(str(failure))
                sys.stderr.write(f"\n{kind}: {failure}\n")
            if sys.stderr.isatty():
                done = sum(tally.histories for tally in tallies.values())
                minutes = (time.monotonic() - started) / 60
                sys.stderr.write(f"\r\033[K{minutes:.0f} of {given.minutes:.0f} min: {done} histories, last {kind}")
    show(tallies, failures, as_json=given.json)
    return 1 if failures else 0


def show(tallies: dict[str, Tally], failures: list[str], *, as_json: bool) -> None:
    """What was tried, and what failed."""
    if as_json:
        print(json.dumps({"kinds": {kind: asdict(tally) for kind, tally in tallies.items()}, "failures": failures}))
        return
    print(f"{'':24s} {'histories':>9s} {'steps':>7s} {'layouts':>8s} {'questions':>9s} {'rows compared':>14s}")
    for kind, tally in tallies.items():
        print(
            f"{kind:24s} {tally.histories:9d} {sum(tally.steps.values()):7d} {tally.moves:8d} {tally.questions:9d} "
            f"{tally.rows_checked:14,d}"
        )
    print(f"{len(failures)} failed")


if __name__ == "__main__":
    raise SystemExit(main())
