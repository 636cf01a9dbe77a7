"""One call that replays a query log against a table's rows and compares policies; no Spark, no clock.

Everything is counted in full scans: a query costs the share of rows that it cannot skip, a move costs alpha.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from oreo_lakehouse.backtest.baselines import Baselines
from oreo_lakehouse.backtest.optimum import optimal_schedule
from oreo_lakehouse.backtest.simulator import Outcome, simulate
from oreo_lakehouse.config import DecideSettings, LayoutSettings
from oreo_lakehouse.errors import ConfigError, HistoryError
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.skipping import Mode
from oreo_lakehouse.predicates.columns import columns_of
from oreo_lakehouse.predicates.tree import Predicate
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.reorganizer.manager import Source
from oreo_lakehouse.reorganizer.paper import PaperStrategy
from oreo_lakehouse.reorganizer.planner import PlannerStrategy
from oreo_lakehouse.reorganizer.states import INITIAL, BlockCosts, StateSpace
from oreo_lakehouse.reorganizer.strategy import Strategy

POLICIES = ("oreo", "paper", "never", "static", "greedy", "regret", "mts-optimal", "offline-optimal", "optimum")
Progress = Callable[[str, float], None]
"""Called with (policy, share done)."""
_MOST_ROWS = 100_000
"""Rows that costs are computed on; of more, a sample: 2,500 rows a block when there are 40 blocks."""
_PAPER_GAMMA = 1.0
"""The paper's evaluation uses the predictor of section IV-C, which also replays the phase in states that are new."""


@dataclass(frozen=True)
class BacktestResult:
    """What each policy would have paid."""

    queries: int
    unparsed: int
    outcomes: dict[str, Outcome]
    seconds: float
    times: dict[str, float]
    """Seconds that each policy's replay took."""

    def to_json(self) -> dict[str, Any]:
        return {
            "queries": self.queries,
            "unparsed": self.unparsed,
            "policies": {
                name: {
                    "query": outcome.query,
                    "movement": outcome.movement,
                    "total": outcome.total,
                    "moves": len(outcome.moves),
                    "states": outcome.states,
                }
                for name, outcome in self.outcomes.items()
            },
            "seconds": self.seconds,
        }

    def advice(self) -> str:
        """One sentence for people."""
        ours, never = self.outcomes.get("oreo"), self.outcomes.get("never")
        if ours is None or never is None or never.total <= 0:
            return "Run the policies 'oreo' and 'never' to learn what reorganising would save."
        saved = 1 - ours.total / never.total
        if saved < 0.05 or not ours.moves:
            return "Reorganising would not have paid for this workload; leave the table as it is."
        return (
            f"Reorganising online would have saved {saved:.0%} of the reading and rewriting, "
            f"with {len(ours.moves)} rewrites over {self.queries:,} queries."
        )


def run(
    rows: pa.Table,
    predicates: Sequence[Predicate],
    times: Sequence[Any] | None = None,
    alpha: float = 80.0,
    blocks: int = 40,
    mode: Mode = "native",
    policies: Iterable[str] = POLICIES,
    seed: int = 1,
    progress: Progress | None = None,
    unparsed: int = 0,
    decide: DecideSettings | None = None,
    generators: Sequence[str] = ("qdtree",),
    delay: int = 0,
    source: Source = "SW",
) -> BacktestResult:
    """Replay queries against a table.

    Args:
        rows: the table, in the order in which its files hold it now.
        predicates: the queries' stored predicates; TRUE for one that could not be understood.
        times: when they ran, to sort them by; by default they are in order.
        alpha: the price of a rewrite, in full scans.
        blocks: k, into how many blocks the table is divided, by every layout and now.
        mode: what skips blocks.
        policies: some of `POLICIES`.
        seed: of every draw.
        progress: told how far each policy is.
        unparsed: how many of the queries were not understood; only reported.
        decide: further settings of the strategies.
        generators: of candidate layouts.
        delay: queries served in the old layout after a decision.
        source: what the paper's policy makes candidates from.

    Raises:
        ConfigError: no such policy.
        HistoryError: there are no queries.
    """
    began = time.perf_counter()
    wanted = list(dict.fromkeys(policies))
    unknown = [name for name in wanted if name not in POLICIES]
    if unknown:
        raise ConfigError(f"no policy {unknown[0]!r}; known are {', '.join(POLICIES)}")
    if not len(predicates):
        raise HistoryError("there are no queries to replay; give a log with at least one statement on this table")
    order = range(len(predicates)) if times is None else sorted(range(len(predicates)), key=lambda i: times[i])
    replay = _Replay(rows, [predicates[i] for i in order], blocks, mode)
    settings = replace(decide or DecideSettings(), alpha=alpha, mode=mode)
    paper = replace(settings, gamma=_PAPER_GAMMA)
    layout = LayoutSettings(generators=tuple(generators))
    baselines = Baselines(replay.space(), generators, blocks, alpha, settings.window)
    online: dict[str, Callable[[], Strategy]] = {
        "oreo": lambda: PlannerStrategy(settings, layout, blocks, seed),
        "paper": lambda: PaperStrategy(settings if decide else paper, layout, blocks, seed, source, "replayed"),
    }
    offline: dict[str, Callable[[], Outcome]] = {
        "never": baselines.never,
        "static": baselines.static,
        "greedy": baselines.greedy,
        "regret": baselines.regret,
        "mts-optimal": lambda: baselines.mts_optimal(seed, _PAPER_GAMMA),
        "offline-optimal": baselines.offline_optimal,
        "optimum": lambda: replay.optimum(alpha),
    }
    outcomes: dict[str, Outcome] = {}
    taken: dict[str, float] = {}
    for name in sorted(wanted, key=POLICIES.index):  # the optimum last: it chooses among all that the others made
        start = time.perf_counter()
        if name in online:

            def tell(done: int, total: int, name: str = name) -> None:
                if progress is not None:
                    progress(name, done / total)

            outcomes[name] = simulate(online[name](), replay.space(), alpha, delay, tell)
        else:
            outcomes[name] = offline[name]()
        taken[name] = time.perf_counter() - start
        if progress is not None:
            progress(name, 1.0)
    return BacktestResult(len(predicates), unparsed, outcomes, time.perf_counter() - began, taken)


class _Replay:
    """The rows and queries that all policies share."""

    def __init__(self, rows: pa.Table, predicates: Sequence[Predicate], blocks: int, mode: Mode) -> None:
        count = rows.num_rows
        at = np.arange(count)
        if count > _MOST_ROWS:
            at = np.sort(np.random.default_rng(0).choice(count, _MOST_ROWS, replace=False))
            rows = rows.take(pa.array(at))
        self.sample = Sample(rows, count)
        self.stream = Workload.of(predicates)
        self.mode: Mode = mode
        self.columns = sorted(frozenset[str]().union(*map(columns_of, set(predicates))))
        self.made: dict[str, BlockCosts] = {}
        files = (at * blocks // max(1, count)).astype(np.int32)
        self.initial = self.sample.blocks_of(files, blocks, self.columns)

    def space(self) -> StateSpace:
        out = StateSpace(self.sample, self.stream, self.mode, self.columns, self.made)
        out.add_blocks(INITIAL, self.initial)
        return out

    def optimum(self, alpha: float) -> Outcome:
        everything = slice(0, len(self.stream))
        initial = BlockCosts(self.stream, self.initial, self.mode)
        sources = [initial, *self.made.values()]
        return optimal_schedule(np.stack([source.costs(everything) for source in sources]), alpha)
