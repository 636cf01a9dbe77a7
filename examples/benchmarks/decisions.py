"""How well does it decide? The paper's workloads and ablations, with every baseline and the exact optimum.

    uv run --with tpchgen-cli examples/benchmarks/decisions.py                  # TPC-H, five seeds
    uv run ... examples/benchmarks/decisions.py --case fast --case sliding     # workloads that are hard to decide for
    uv run ... examples/benchmarks/decisions.py --sweep alpha --plot alpha.png

Costs are in full scans: a query costs the share of rows that it cannot skip, a move costs alpha. "x best" compares with
the better of static and never; static's layout is in place before the first query and costs it no move. TPC-H and
TPC-DS are generated on first use (`--with tpchgen-cli`; `--with duckdb --with duckdb-extensions --with
duckdb-extension-tpcds`).
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import streams
import telemetry
import tpcds
import tpch

from oreo_lakehouse.backtest.run import POLICIES, BacktestResult, run
from oreo_lakehouse.config import DecideSettings
from oreo_lakehouse.predicates.tree import Predicate
from oreo_lakehouse.report.plot import check_name, write_lines

ROWS, QUERIES, ALPHA, BLOCKS = 400_000, 30_000, 80.0, 40
REFERENCE = {
    "static": 12549,
    "greedy": 8407,
    "regret": 8951,
    "paper": 7754,
    "mts-optimal": 7257,
    "offline-optimal": 5076,
}
"""The authors' own code on TPC-H with these settings: their published totals' policies, run by us."""
Case = Callable[[Path, int, int], tuple[pa.Table, list[Predicate]]]


def _tpch(folder: Path, seed: int, count: int, **how: Any) -> tuple[pa.Table, list[Predicate]]:
    rows = tpch.rows(folder, ROWS)
    return rows, streams.segments(tpch.Templates(rows).all, count, seed, **how)


def _mixed(folder: Path, seed: int, count: int) -> tuple[pa.Table, list[Predicate]]:
    rows = tpch.rows(folder, ROWS)
    return rows, streams.mixtures(tpch.Templates(rows).all, count, seed)


def _tpcds(folder: Path, seed: int, count: int) -> tuple[pa.Table, list[Predicate]]:
    rows = tpcds.rows(folder, ROWS)
    return rows, streams.segments(tpcds.Templates(rows).all, count, seed)


CASES: dict[str, Case] = {
    "tpch": _tpch,
    "tpcds": _tpcds,
    "telemetry": lambda _, seed, count: (telemetry.rows(ROWS), telemetry.queries(count, seed)),
    "sliding": lambda _, seed, count: (telemetry.rows(ROWS), telemetry.queries(count, seed, date_only=True)),
    "fast": lambda folder, seed, count: _tpch(folder, seed, count, lengths=(60, 150)),
    "recurring": lambda folder, seed, count: _tpch(folder, seed, count, lengths=(80, 250), of=4),
    "mixed": _mixed,
}
SWEEPS: dict[str, Sequence[Any]] = {
    "alpha": (10, 40, 80, 120, 170, 300),
    "epsilon": (0.02, 0.05, 0.08, 0.15, 0.3),
    "gamma": (0, 1, 2, 3),
    "delta": (0, 40, 80),
    "source": ("SW", "RS", "SW+RS"),
}
PAPER = {
    "gamma": {0: (5.75, 2.32), 1: (5.56, 1.68), 2: (5.56, 1.68), 3: (5.56, 1.68)},
    "source": {"SW": (5.56, 1.68), "RS": (6.51, 2.00), "SW+RS": (5.59, 2.40)},
    "delta": {0: (5.56, 1.68), 40: (5.88, 1.68), 80: (6.20, 1.68)},
}
"""The paper's Table II for TPC-H: (query, movement) in thousands."""


def main() -> None:
    options = _options()
    if options.plot:
        check_name(options.plot)
    print_ = (lambda *_: None) if options.json else print
    if options.sweep:
        records = _sweep(options, print_)
    else:
        records = [record for case in options.case or ["tpch"] for record in _compare(options, case, print_)]
    if options.json:
        print(json.dumps(records))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=list(CASES), help="workload; may be repeated")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--mode", choices=["native", "bid"], default="native")
    parser.add_argument("--policies", default=",".join(POLICIES), help="comma-separated")
    parser.add_argument("--sweep", choices=list(SWEEPS), help="repeat one of the paper's ablations")
    parser.add_argument("--folder", type=Path, default=Path("oreo-benchmarks"), help="where generated tables are kept")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--plot", type=Path, help="a .html, .svg or .png file")
    return parser.parse_args()


def _seeds(options: argparse.Namespace) -> range:
    return range(options.first_seed, options.first_seed + options.seeds)


def _compare(options: argparse.Namespace, case: str, print_: Callable[..., None]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    curves: dict[str, npt.NDArray[np.float64]] = {}
    for seed in _seeds(options):
        result = _run(options, case, seed, ALPHA, DecideSettings(gamma=1.0))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        records.append({"case": case, "seed": seed, **result.to_json(), "times": result.times, "peak_mb": peak})
        print_(
            f"\n{case}, seed {seed}: {result.queries:,} queries, alpha {ALPHA:.0f}, {result.seconds:.0f} s, "
            f"at most {peak:,} MB so far"
        )
        print_(
            f"{'policy':<17}{'query':>9}{'movement':>10}{'total':>9}{'moves':>7}{'x optimum':>11}{'x best':>8}"
            f"{'seconds':>9}{'reference':>11}"
        )
        totals = {name: outcome.total for name, outcome in result.outcomes.items()}
        least = min((totals[name] for name in ("static", "never") if name in totals), default=float("nan"))
        for name, outcome in result.outcomes.items():
            told = f"{REFERENCE[name]:>11,}" if case == "tpch" and name in REFERENCE else ""
            print_(
                f"{name:<17}{outcome.query:>9,.0f}{outcome.movement:>10,.0f}{outcome.total:>9,.0f}"
                f"{len(outcome.moves):>7}{outcome.total / totals.get('optimum', float('nan')):>11.3f}"
                f"{outcome.total / least:>8.3f}{result.times[name]:>9.1f}{told}"
            )
            curves[name] = curves.get(name, 0.0) + outcome.cumulative() / options.seeds  # the mean of all seeds
        sys.stdout.flush()
    if options.plot:
        write_lines(options.plot, f"{case}: cost of queries and rewrites, in full scans", "queries", curves)
    return records


def _sweep(options: argparse.Namespace, print_: Callable[..., None]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    curves: dict[str, list[float]] = {}
    case = (options.case or ["tpch"])[0]
    print_(
        f"{options.sweep:>8}  {'policy':<8}{'query':>9}{'movement':>10}{'total':>9}{'states':>8}   the paper's Table II"
    )
    for value in SWEEPS[options.sweep]:
        alpha = float(value) if options.sweep == "alpha" else ALPHA
        decide = DecideSettings(gamma=1.0)
        if options.sweep in ("epsilon", "gamma"):
            decide = replace(decide, **{options.sweep: float(value)})
        for policy in ("paper", "oreo"):
            results = [_run(options, case, seed, alpha, decide, value, [policy]) for seed in _seeds(options)]
            numbers = [result.to_json()["policies"][policy] for result in results]
            mean = {key: sum(n[key] for n in numbers) / len(numbers) for key in numbers[0]}
            records.append({"sweep": options.sweep, "value": value, "policy": policy, **mean})
            curves.setdefault(policy, []).append(mean["total"])
            told = PAPER.get(options.sweep, {}).get(value) if policy == "paper" else None
            beside = f"   query {told[0] * 1000:,.0f}, movement {told[1] * 1000:,.0f}" if told else ""
            print_(
                f"{value!s:>8}  {policy:<8}{mean['query']:>9,.0f}{mean['movement']:>10,.0f}{mean['total']:>9,.0f}"
                f"{mean['states']:>8.1f}{beside}"
            )
    if options.plot:
        lines = {policy: np.array(totals) for policy, totals in curves.items()}
        ticks = [str(value) for value in SWEEPS[options.sweep]]
        write_lines(options.plot, f"{case}: total cost, in full scans", options.sweep, lines, ticks)
    return records


def _run(
    options: argparse.Namespace,
    case: str,
    seed: int,
    alpha: float,
    decide: DecideSettings,
    value: Any = None,
    policies: Sequence[str] = (),
) -> BacktestResult:
    rows, queries = CASES[case](options.folder, seed, options.queries)

    def progress(policy: str, share: float) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{case} {seed}: {policy:<16} {share:>4.0%} ")

    return run(
        rows,
        queries,
        alpha=alpha,
        blocks=BLOCKS,
        mode=options.mode,
        policies=policies or options.policies.split(","),
        seed=seed,
        progress=progress,
        decide=decide,
        delay=int(value) if options.sweep == "delta" else 0,
        source=value if options.sweep == "source" else "SW",
    )


if __name__ == "__main__":
    main()
