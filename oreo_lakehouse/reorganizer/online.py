"""The loop that maintenance runs: a batch of queries in, advice out, and everything remembered as JSON in between.

A batch is about queries that ran already, so decisions in its middle cannot be applied back in time: the strategy sees
the queries one by one. Whether a move pays is decided so; of all moves of a batch at most one is made, and since it
costs the same wherever it goes, it goes to the best state that is known at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from oreo_lakehouse.config import DecideSettings, LayoutSettings
from oreo_lakehouse.errors import ConfigError, StoreError
from oreo_lakehouse.layouts.blocks import Blocks
from oreo_lakehouse.layouts.layout import Layout
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.predicates.columns import columns_of
from oreo_lakehouse.predicates.jsonform import from_json, to_json
from oreo_lakehouse.predicates.tree import Predicate
from oreo_lakehouse.predicates.workload import Weights, Workload
from oreo_lakehouse.reorganizer.decision import Decision
from oreo_lakehouse.reorganizer.paper import PaperStrategy
from oreo_lakehouse.reorganizer.planner import PlannerStrategy
from oreo_lakehouse.reorganizer.states import INITIAL, StateSpace
from oreo_lakehouse.reorganizer.strategy import Strategy

FORMAT_VERSION = 1
STRATEGIES: dict[str, Callable[[DecideSettings, LayoutSettings, int, int], Strategy]] = {
    "planner": PlannerStrategy,
    "paper": PaperStrategy,
}


@dataclass(frozen=True)
class Advice:
    """What a batch of queries led to. Costs are means over the recent window, per state and in full scans a query."""

    target: Layout | None
    """The layout to build; None: stay."""
    current_cost: float
    target_cost: float
    costs: dict[str, float]
    queries: int
    phase: int
    counters: dict[str, float]
    alpha: float
    reason: str
    decisions: tuple[Decision, ...]
    """Everything but "stay": moves, phases, admissions, evictions."""
    sums: dict[str, float]
    """What the batch's queries cost in each state, in all."""
    regret: dict[str, float]
    """What each state would have saved since the workload changed or the table moved, where the strategy counts it."""
    bound: dict[str, float] | None
    """The decisions' own account, query by query: `paid`, `comparator` and the `limit` that is proven of them."""
    weight: float = 1.0
    """What a scan of everything by one of the recent queries weighs, in the mean: a cost over it is the share read."""
    decided: Advice | None = None
    """The same, but for the layout that the decisions ended in, where `target` is a better one. It may be for free."""


class OnlineOptimizer:
    """Decides for one table, batch after batch.

    Args:
        settings: when a change of layout pays.
        layout_settings: what candidates look like.
        seed: of every random draw.
    """

    def __init__(self, settings: DecideSettings, layout_settings: LayoutSettings, seed: int) -> None:
        if settings.policy not in STRATEGIES:
            raise ConfigError(f"'decide.policy' must be one of {', '.join(STRATEGIES)}, not {settings.policy!r}")
        self.settings, self.layout_settings, self.seed = settings, layout_settings, seed
        self._strategy: Strategy = STRATEGIES[settings.policy](settings, layout_settings, 0, seed)
        self._remembered: list[Predicate] = []
        self._weights: list[float] | None = None
        """Of the remembered queries; None where nothing is weighed."""

    def advise(
        self,
        predicates: Sequence[Predicate],
        sample: pa.Table,
        table_blocks: Blocks,
        blocks: int,
        current: str,
        exact: Mapping[str, Blocks] | None = None,
        table_state: str | None = None,
        weights: Weights | None = None,
    ) -> Advice:
        """Feed a batch of queries, oldest first.

        Args:
            predicates: the queries' stored predicates.
            sample: rows of the table, for candidates.
            table_blocks: the real files' metadata: what the current state costs.
            blocks: k, how many blocks a layout should have.
            current: the id of the layout that the table is in, or "initial".
            exact: block metadata of layouts that is known from all rows, and better than the sample's.
            table_state: the state that `table_blocks` describes, where `current` is only imagined (a shadow run).
            weights: of a scan of the whole table by each query, in [0, 1]; None: all weigh the same.
        """
        strategy = self._strategy
        strategy.aim_at(blocks)
        self.placed(current)
        first = len(self._remembered)
        everything = [*self._remembered, *predicates]
        weighed = None
        if weights is not None or self._weights is not None:
            weighed = np.concatenate(
                [
                    np.ones(first) if self._weights is None else np.array(self._weights),
                    np.ones(len(predicates)) if weights is None else weights,
                ]
            )
        space = self._space(Workload.of(everything, weighed), everything, Sample(sample, table_blocks.total_rows))
        for state in strategy.states:
            layout = strategy.layouts.get(state)
            if layout is None or state == (current if table_state is None else table_state):
                space.add_blocks(state, table_blocks)
            elif exact is not None and state in exact:
                space.add_blocks(state, exact[state])
            else:
                space.add(state, space.source_of(layout))
        decisions: list[Decision] = []
        for query in range(first, len(everything)):
            decisions += [d for d in strategy.step(query, space) if d.kind != "stay"]
        advice = self._advice(space, current, slice(first, len(everything)), decisions)
        kept = sorted(strategy.kept())
        strategy.renumber({query: number for number, query in enumerate(kept)})
        self._remembered = [everything[query] for query in kept]
        self._weights = None if weighed is None else weighed[kept].tolist()
        return advice

    def columns(self, predicates: Sequence[Predicate]) -> frozenset[str]:
        """The columns that a sample must have to decide about these queries."""
        asked = [columns_of(predicate) for predicate in (*self._remembered, *predicates)]
        laid_out = [frozenset(layout.columns) for layout in self._strategy.layouts.values()]
        return frozenset[str]().union(*asked, *laid_out)

    @property
    def states(self) -> list[str]:
        """The ids of the layouts under consideration, the present one among them."""
        return self._strategy.states

    @property
    def layouts(self) -> Mapping[str, Layout]:
        """Those of them that can be built."""
        return self._strategy.layouts

    def forget_column(self, column: str) -> int:
        """The table has no such column any more: layouts by it cannot be built; how many those were."""
        gone = [state for state, layout in self._strategy.layouts.items() if column in layout.columns]
        for state in gone:
            del self._strategy.layouts[state]
        self._strategy.place(self._strategy.current)
        return len(gone)

    def placed(self, layout_id: str) -> None:
        """The table is in this layout: a move was committed, or was not made after all."""
        self._strategy.place(layout_id)

    def to_json(self) -> dict[str, Any]:
        document = {
            "version": FORMAT_VERSION,
            "seed": self.seed,
            "queries": [to_json(predicate) for predicate in self._remembered],
            "strategy": self._strategy.to_json(),
        }
        return document if self._weights is None else {**document, "weights": self._weights}

    @classmethod
    def from_json(
        cls, document: dict[str, Any], settings: DecideSettings, layout_settings: LayoutSettings
    ) -> OnlineOptimizer:
        """Go on from what `to_json` described, with the settings in force now; another policy starts anew.

        Raises:
            StoreError: the document is of a newer format, or not one of ours.
        """
        if document.get("version") != FORMAT_VERSION:
            raise StoreError(f"optimizer format {document.get('version')!r} is not supported; upgrade")
        try:
            out = cls(settings, layout_settings, int(document["seed"]))
            if document["strategy"]["policy"] != settings.policy:
                return out
            out._remembered = [from_json(query) for query in document["queries"]]
            if document.get("weights") is not None:
                out._weights = [float(weight) for weight in document["weights"]]
                if len(out._weights) != len(out._remembered):
                    raise ValueError("as many weights as queries are expected")
            out._strategy.restore(document["strategy"], settings.alpha)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"malformed state: the optimizer cannot be read ({error})") from error
        return out

    def _space(self, stream: Workload, queries: list[Predicate], sample: Sample) -> StateSpace:
        columns = frozenset[str]().union(*map(columns_of, queries))
        return StateSpace(sample, stream, self.settings.skipping, columns)

    def _advice(self, space: StateSpace, current: str, batch: slice, decisions: list[Decision]) -> Advice:
        strategy, recent = self._strategy, self._strategy.recent()
        states = list(dict.fromkeys([*strategy.states, strategy.current]))
        means = space.matrix(states, recent).mean(axis=1) if recent else np.zeros(len(states))
        costs = dict(zip(states, means.tolist(), strict=True))
        wanted = strategy.current
        if wanted != current and batch.stop > batch.start:
            # On the way there each further move had to pay for itself; of them all, only one is really made.
            wanted = strategy.destination(batch.stop - 1, space)
        target = strategy.layouts.get(wanted) if wanted != current else None
        here = costs.get(current, 1.0)
        part = "the table" if space.stream.weights is None else "the table's bytes"

        def gain(state: str) -> str:
            return f"a recent query reads {here:.1%} of {part} now and {costs[state]:.1%} there"

        reason = f"a recent query reads {here:.1%} of {part}, and no move pays for itself yet"
        advice = Advice(
            target=target,
            current_cost=here,
            target_cost=costs[wanted],
            costs=costs,
            queries=batch.stop - batch.start,
            phase=strategy.phase,
            counters=strategy.counters,
            alpha=self.settings.alpha,
            reason=reason if target is None else gain(wanted),
            decisions=tuple(decisions),
            sums=dict(zip(states, space.matrix(states, batch).sum(axis=1).tolist(), strict=True)),
            regret=strategy.regret,
            bound=strategy.bound,
            weight=space.stream.weight(recent) if recent else 1.0,
        )
        ended = strategy.current
        if target is None or ended == wanted or ended not in strategy.layouts:
            return advice
        other = replace(advice, target=strategy.layouts[ended], target_cost=costs[ended], reason=gain(ended))
        return replace(advice, decided=other)


__all__ = ["INITIAL", "Advice", "OnlineOptimizer"]
