"""The planner's states: four families, and what it takes to be admitted.

A candidate enters if its costs differ by more than epsilon from every state's on the time-biased sample or on the last
few queries: the sample alone would reject layouts for brand-new templates. A **recent** one, made for the present
regime, a **mixture**, made for the whole past, and one made for what lies **ahead**, where literals slide, also enter
if they are the best for just that; a **blend** of recent and old does not. Mixtures have a cap of their own: the one
with the worst mean leaves. Of the others, the one whose loss raises the least costs the least leaves; never the current
state. A kind of query, or a mix of kinds, has at most two states of each other family, so that later, better ones
replace those made from its first ten queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oreo_lakehouse.layouts.layout import Layout, layout_from_json
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.reorganizer.states import INITIAL, StateSpace

_EPSILON = 0.02
_RECENT = 40
_BETTER = 0.98
_WINDOW = 200
"""Queries that a recent candidate is made for."""
_MOST_MIXTURES = 6
_MOST_OF_A_KIND = 2


@dataclass(frozen=True)
class Admission:
    """A state came, and perhaps another had to leave for it."""

    state: str
    evicted: str
    uncovered: str
    """The mix of kinds of query for which the evicted state was the last one, or ""."""
    reason: str


class StatePool:
    """Admitted layouts by id."""

    def __init__(self, max_states: int) -> None:
        self.max_states = max_states
        self.layouts: dict[str, Layout] = {}
        self.families: dict[str, str] = {INITIAL: "recent"}
        self.mixes: dict[str, str] = {}
        """The mix of kinds of query that each state was made for, unless it was made for the whole past."""

    @property
    def states(self) -> list[str]:
        return list(self.families)

    def admit(
        self,
        space: StateSpace,
        family: str,
        layout: Layout,
        mix: str,
        sample: list[int],
        query: int,
        current: str,
        ahead: Workload | None = None,
    ) -> Admission | None:
        """Admit a candidate if it is worth it.

        Args:
            space: where costs come from; the new state is added to it.
            family: `recent`, `blend`, `ahead` or `mixture`.
            layout: the candidate.
            mix: of kinds of query that it was made for.
            sample: positions of the time-biased sample.
            query: position of the latest query.
            current: the state that must not leave.
            ahead: queries to come that it was made for, if it was.
        """
        if layout.id in self.families:
            return None
        source = space.source_of(layout)
        recent = slice(max(0, query + 1 - _RECENT), query + 1)
        distance = max(self._distance(space, source.costs(part), part) for part in (sample, recent))
        reason = f"its costs differ by {distance:.3f} from every state's"
        if distance <= _EPSILON:
            if ahead is not None:
                least, own = space.outlook(self.states, ahead).min(), source.costs_of(ahead).mean()
            else:
                made_for = sample if family == "mixture" else slice(max(0, query + 1 - _WINDOW), query + 1)
                least, own = space.matrix(self.states, made_for).mean(axis=1).min(), source.costs(made_for).mean()
            if family == "blend" or own > _BETTER * least:
                return None
            reason = "it is the best layout for the queries that it was made for"
        evicted, lost = self._evict(space, family, mix, sample, recent, current, ahead)
        self.layouts[layout.id] = layout
        self.families[layout.id] = family
        self.mixes[layout.id] = "" if family == "mixture" else mix
        space.add(layout.id, source)
        uncovered = "" if lost in self.mixes.values() else lost
        return Admission(layout.id, evicted, uncovered, f"{layout.describe()}; {reason}")

    def _evict(
        self,
        space: StateSpace,
        family: str,
        mix: str,
        sample: list[int],
        recent: slice,
        current: str,
        ahead: Workload | None,
    ) -> tuple[str, str]:
        """Make room: the state that had to leave ("" if none) and the mix it was made for."""
        mixture = family == "mixture"
        peers = [s for s, other in self.families.items() if (other == "mixture") == mixture and s != current]
        alike = [s for s in peers if not mixture and (self.mixes.get(s), self.families[s]) == (mix, family)]
        if len(alike) >= _MOST_OF_A_KIND:
            means = space.matrix(alike, recent).mean(axis=1) if ahead is None else space.outlook(alike, ahead)
            loser = alike[int(np.argmax(means))]
        elif len(peers) + 1 >= (_MOST_MIXTURES if family == "mixture" else self.max_states):
            loser = self._loser(space, peers, family, sample, recent)
        else:
            return "", ""
        lost = self.mixes.get(loser, "")
        self.remove(space, loser)
        return loser, lost

    def remove(self, space: StateSpace | None, state: str) -> None:
        del self.families[state]
        self.layouts.pop(state, None)
        self.mixes.pop(state, None)
        if space is not None:
            space.remove(state)

    def _distance(self, space: StateSpace, costs: np.ndarray, queries: Any) -> float:
        weight = space.stream.weight(queries) or 1.0  # a share of what they read, whatever a scan of it weighs
        return float(np.abs(space.matrix(self.states, queries) - costs).mean(axis=1).min()) / weight

    def _loser(self, space: StateSpace, peers: list[str], family: str, sample: list[int], recent: slice) -> str:
        costs = space.matrix(peers, sample)
        if family == "mixture":
            return peers[int(np.argmax(costs.mean(axis=1)))]
        return peers[int(np.argmin(_loss(costs) + _loss(space.matrix(peers, recent))))]

    def to_json(self) -> list[Any]:
        return [
            [state, family, self.mixes.get(state, ""), self._layout_json(state)]
            for state, family in self.families.items()
        ]

    def _layout_json(self, state: str) -> dict[str, Any] | None:
        layout = self.layouts.get(state)
        return None if layout is None else layout.to_json()

    def restore(self, document: list[Any]) -> None:
        self.families = {str(state): str(family) for state, family, _, _ in document}
        self.mixes = {str(state): str(mix) for state, _, mix, layout in document if layout is not None}
        self.layouts = {str(state): layout_from_json(layout) for state, _, _, layout in document if layout is not None}


def _loss(costs: np.ndarray) -> np.ndarray:
    """By how much the least costs would rise in the mean without each state."""
    if len(costs) < 2 or not costs.shape[1]:
        return np.zeros(len(costs))
    lowest = np.partition(costs, 1, axis=0)[:2]
    return np.where(costs == lowest[0], lowest[1] - lowest[0], 0.0).mean(axis=1)
