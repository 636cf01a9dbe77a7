"""How fast is the core? Each figure that the decisions rest on, measured on one core.

    uv run --with tpchgen-cli examples/benchmarks/speed.py

Prints a table (or `--json`) with the limit that each figure should keep. Seconds are the processor's, not the clock's.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import streams
import tpch

from oreo_lakehouse.backtest.run import POLICIES, run
from oreo_lakehouse.layouts.blocks import Blocks, ColumnStats
from oreo_lakehouse.layouts.generators import generate
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.skipping import service_costs
from oreo_lakehouse.predicates.tree import And, Compare, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.predicates.workload import Workload

ROWS, WINDOW, BLOCKS, MANY, STREAM = 400_000, 200, 40, 10_000, 30_000


def evaluation(folder: Path) -> float:
    """Microseconds to judge one query against one layout, over the 13 TPC-H templates mixed."""
    rows = tpch.rows(folder, ROWS)
    workload = Workload.of(streams.mixtures(tpch.Templates(rows).all, MANY, seed=1))
    sample = Sample(rows.slice(0, 100_000), ROWS)
    blocks = sample.blocks(generate("qdtree", sample, workload.take(slice(0, WINDOW)), BLOCKS))
    return _best(lambda: service_costs(workload, blocks)) / MANY * 1e6


def tree(folder: Path) -> float:
    """Seconds for the slowest qd-tree of the 13 templates, each from a window of its own, on all rows."""
    rows = tpch.rows(folder, ROWS)
    sample, slowest = Sample(rows), 0.0
    for name, template in tpch.Templates(rows).all.items():
        random = np.random.default_rng(1)
        workload = Workload.of([template(random) for _ in range(WINDOW)])
        generate("qdtree", sample, workload, BLOCKS)  # encodes the columns: once for a sample
        taken = _best(lambda workload=workload: generate("qdtree", sample, workload, BLOCKS))
        print(f"  qd-tree for {name}: {taken:.2f} s")
        slowest = max(slowest, taken)
    return slowest


def many(_: Path) -> float:
    """Seconds to judge 10,000 queries against 10,000 blocks."""
    random = np.random.default_rng(1)
    columns: dict[str, ColumnStats] = {}
    for name in "abc":
        low = random.integers(0, 10**6, MANY)
        columns[name] = ColumnStats.of(Kind.INTEGER, low.tolist(), (low + 1000).tolist(), [0] * MANY)
    blocks = Blocks(np.full(MANY, 1000), columns)
    queries = [
        And((Compare("a", Op.GE, Kind.INTEGER, int(x)), Compare("b", Op.LT, Kind.INTEGER, int(x) + 5000)))
        for x in random.integers(0, 10**6, MANY)
    ]
    workload = Workload.of(queries)
    return _best(lambda: service_costs(workload, blocks), tries=1)


def online(folder: Path) -> float:
    """Seconds to decide for 30,000 TPC-H queries, candidates and all."""
    return _replay(folder, ["oreo"])


def everybody(folder: Path) -> float:
    """The same with every baseline and the exact optimum."""
    return _replay(folder, POLICIES)


def _replay(folder: Path, policies: Sequence[str]) -> float:
    rows = tpch.rows(folder, ROWS)
    queries = streams.segments(tpch.Templates(rows).all, STREAM, seed=1)
    return _best(lambda: run(rows, queries, blocks=BLOCKS, policies=policies), tries=1)


def _best(work: Callable[[], object], tries: int = 3) -> float:
    """Processor seconds of the quickest try: what another process takes from this one does not count."""
    taken: list[float] = []
    for _ in range(tries):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


FIGURES: dict[str, tuple[Callable[[Path], float], str, float, int]] = {
    "a query against a layout": (evaluation, "us", 1.0, 2048),
    "qd-tree on 400,000 rows": (tree, "s", 0.3, 2048),
    "10,000 queries x 10,000 blocks": (many, "s", 20.0, 1024),
    "deciding for 30,000 queries": (online, "s", 30.0, 2048),
    "with all baselines": (everybody, "s", 180.0, 2048),
}
"""What, in which unit, and the most that it may take of time and of memory (MB)."""


def _measure(name: str, folder: Path, queue: multiprocessing.Queue[tuple[float, int]]) -> None:
    pa.set_cpu_count(1)
    value = FIGURES[name][0](folder)
    queue.put((value, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("oreo-benchmarks"), help="where generated tables are kept")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tpch.rows(options.folder, ROWS)
    records: list[dict[str, object]] = []
    context = multiprocessing.get_context("spawn")  # a process each: peak memory is its own
    for name, (_, unit, limit, limit_mb) in FIGURES.items():
        queue: multiprocessing.Queue[tuple[float, int]] = context.Queue()
        process = context.Process(target=_measure, args=(name, options.folder, queue))
        process.start()
        value, peak = queue.get()
        process.join()
        records.append({"figure": name, "value": value, "unit": unit, "limit": limit, "peak_mb": peak})
        print(f"{name:<32}{value:>9.2f} {unit:<3} of {limit:g}{peak:>7,} MB of {limit_mb:,}")
    if options.json:
        print(json.dumps(records))


if __name__ == "__main__":
    main()
