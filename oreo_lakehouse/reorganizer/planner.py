"""The planner: move when a layout is worth its price for the rest of this regime and for those that come after it."""

from __future__ import annotations

from typing import Any

import numpy as np

from oreo_lakehouse.config import DecideSettings, LayoutSettings
from oreo_lakehouse.layouts.layout import Layout
from oreo_lakehouse.predicates.workload import shape_columns
from oreo_lakehouse.reorganizer.change import ChangeDetector
from oreo_lakehouse.reorganizer.decision import Decision
from oreo_lakehouse.reorganizer.regimes import RegimeLog, tail_value
from oreo_lakehouse.reorganizer.scout import Scout
from oreo_lakehouse.reorganizer.states import INITIAL, CostSource, StateSpace

_MEAN_OVER = 50
_SETTLE = 5
_REGRET = 0.15
_WORTH = 0.75
_LONGEST = 1000.0
_EPSILON = 0.02
_RECENT = 40
_MIXTURES = 6


class PlannerStrategy:
    def __init__(self, decide: DecideSettings, layout: LayoutSettings, blocks: int, seed: int) -> None:
        self.alpha, self.max_states = decide.alpha, decide.max_states
        self.layouts: dict[str, Layout] = {}
        self.families: dict[str, str] = {INITIAL: "recent"}
        self.detector = ChangeDetector()
        self.log = RegimeLog()
        self.scout = Scout(layout.generators, blocks, seed)
        self._current = INITIAL
        self._since_move = 0
        self._values: dict[str, float] = {}
        self._stale = True
        self._regime_costs: dict[str, dict[tuple[int, ...], float]] = {}

    @property
    def current(self) -> str:
        return self._current

    @property
    def states(self) -> list[str]:
        return list(self.families)

    @property
    def phase(self) -> int:
        return len(self.log.past)

    @property
    def counters(self) -> dict[str, float]:
        return dict(self._values)

    def step(self, query: int, space: StateSpace) -> list[Decision]:
        self.scout.observe(query)
        self.log.observe(query)
        self._since_move += 1
        signal = self.detector.observe(",".join(sorted(shape_columns(space.stream.group_of(query).shape))))
        if signal == "change":
            self.log.change(self.detector.since)
            self._since_move = min(self._since_move, self.detector.since)
            self._stale = True
        elif signal == "undo":
            self.log.undo()
            self._stale = True
        out: list[Decision] = []
        for family, layout in self.scout.candidates(space, query, self.detector.since):
            out += self._admit(space, query, family, layout)
        move = self._consider(space, query)
        return [*out, move] if move is not None else out

    def _consider(self, space: StateSpace, query: int) -> Decision | None:
        since = self.detector.since
        if since < _SETTLE or len(self.families) < 2:
            return None
        if self._stale:
            self._revalue(space)
        states = self.states
        recent = slice(query + 1 - min(since, _MEAN_OVER), query + 1)
        means = space.matrix(states, recent).mean(axis=1)
        rest = min(_LONGEST, self.log.residual_life())
        later = np.array([self._values[s] for s in states])
        worth = rest * means + later
        here, best = states.index(self._current), int(np.argmin(worth))
        gain = worth[here] - worth[best]
        if gain < self.alpha:
            return None
        back = slice(query + 1 - min(since, self._since_move, 400), query + 1)
        regret = float((space.costs(self._current, back) - space.costs(states[best], back)).sum())
        if regret < _REGRET * self.alpha and later[here] - later[best] < _WORTH * self.alpha:
            return None
        self._current = states[best]
        self._since_move = 0
        return Decision(
            "move", self._current, f"saves {gain:.0f} over {rest:.0f} queries", self.phase, {}, self.log.seen
        )

    def _revalue(self, space: StateSpace) -> None:
        states = self.states
        costs = np.array([self._means(space, s) for s in states]).reshape(len(states), len(self.log.past))
        self._values = dict(zip(states, tail_value(self.log, costs, self.alpha).tolist(), strict=True))
        self._stale = False

    def _means(self, space: StateSpace, state: str) -> list[float]:
        known = self._regime_costs.setdefault(state, {})
        missing = [r for r in self.log.past if r.queries not in known]
        if missing:
            costs = space.costs(state, [q for r in missing for q in r.queries])
            ends = np.cumsum([len(r.queries) for r in missing])
            for regime, part in zip(missing, np.split(costs, ends[:-1]), strict=True):
                known[regime.queries] = float(part.mean())
        return [known[r.queries] for r in self.log.past]

    def _admit(self, space: StateSpace, query: int, family: str, layout: Layout) -> list[Decision]:
        if layout.id in self.families:
            return []
        source = space.source_of(layout)
        sample, recent = self.scout.biased.items, slice(max(0, query + 1 - _RECENT), query + 1)
        peers = [s for s, f in self.families.items() if f == family]
        far = max(self._distance(space, source, sample), self._distance(space, source, recent))
        if family == "mixture":
            means = space.matrix(peers, sample).mean(axis=1)
            better = not len(peers) or source.costs(sample).mean() <= 0.99 * means.min()
            if far <= _EPSILON and not better:
                return []
        elif far <= _EPSILON:
            return []
        out: list[Decision] = []
        limit = _MIXTURES if family == "mixture" else self.max_states
        if len(peers) >= limit:
            loser = self._loser(space, [s for s in peers if s != self._current], family, sample, recent)
            self._drop(space, loser)
            out.append(Decision("evict", loser, "", self.phase, {}, self.log.seen))
        self.layouts[layout.id] = layout
        self.families[layout.id] = family
        space.add(layout.id, source)
        self._stale = True
        out.append(Decision("admit", layout.id, layout.describe(), self.phase, {}, self.log.seen))
        return out

    def _distance(self, space: StateSpace, source: CostSource, queries: Any) -> float:
        costs = source.costs(queries)
        return float(np.abs(space.matrix(self.states, queries) - costs).mean(axis=1).min())

    def _loser(self, space: StateSpace, peers: list[str], family: str, sample: Any, recent: slice) -> str:
        costs = space.matrix(peers, sample)
        if family == "mixture":
            return peers[int(np.argmax(costs.mean(axis=1)))]
        late = space.matrix(peers, recent)
        loss = _loss(costs) / costs.shape[1] + _loss(late) / late.shape[1]
        return peers[int(np.argmin(loss))]

    def _drop(self, space: StateSpace, state: str) -> None:
        del self.families[state]
        self.layouts.pop(state, None)
        self._regime_costs.pop(state, None)
        space.remove(state)

    def place(self, state: str) -> None:
        self._current = state

    def recent(self) -> list[int]:
        return []

    def kept(self) -> set[int]:
        return self.scout.kept() | self.log.kept()

    def renumber(self, numbers: dict[int, int]) -> None:
        self.scout.renumber(numbers)
        self.log.renumber(numbers)
        self._regime_costs.clear()

    def to_json(self) -> dict[str, Any]:
        return {}


def _loss(costs: np.ndarray) -> np.ndarray:
    """By how much the least costs would rise without each state."""
    if len(costs) < 2:
        return np.zeros(len(costs))
    lowest = np.partition(costs, 1, axis=0)[:2]
    return np.where(costs == lowest[0], lowest[1] - lowest[0], 0.0).sum(axis=1)
