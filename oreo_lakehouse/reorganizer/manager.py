"""The paper's Layout Manager (section V): which candidates to make, and which of them become states.

Candidates are made every `window` queries from the last `window` ones (`SW`), from a time-biased sample of all of them
(`RS`), or from both. A candidate becomes a state if its cost vector on the sample is more than epsilon away, by
normalised L1 distance, from every state's (Algorithm 5, admit_state). The sample changes, so two states may become
alike: before new candidates are judged, the later one of such a pair is pruned (the end of section V). Over the cap,
the state whose loss raises the sample's least cost the least is evicted. The current state never leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from oreo_lakehouse.layouts.generators import generate
from oreo_lakehouse.layouts.layout import Layout
from oreo_lakehouse.reorganizer.reservoir import Reservoir
from oreo_lakehouse.reorganizer.states import CostSource, StateSpace

Source: TypeAlias = Literal["SW", "RS", "SW+RS"]
_SAMPLE = 1000
_DECAY = 1 / 2000
"""Of the query sample: half of it is younger than about 1,400 queries."""


@dataclass(frozen=True)
class Change:
    """What the manager asks of the state space: a layout to admit, or a state to evict."""

    admit: Layout | None = None
    source: CostSource | None = None
    evict: str = ""
    reason: str = ""


class LayoutManager:
    """Watches the stream and proposes changes of the state space.

    Args:
        generators: names of layout generators.
        blocks: k, the blocks that a layout should have.
        window: queries in the sliding window, and between two rounds of candidates.
        epsilon: the least distance of a new state from every other.
        max_states: the cap.
        source: what candidates are made from.
        seed: of the query sample.
    """

    def __init__(
        self,
        generators: Iterable[str],
        blocks: int,
        window: int,
        epsilon: float,
        max_states: int,
        source: Source = "SW",
        seed: int = 1,
    ) -> None:
        self.generators = tuple(generators)
        self.blocks, self.window, self.epsilon, self.max_states = blocks, window, epsilon, max_states
        self.source: Source = source
        self.reservoir = Reservoir(_SAMPLE, _DECAY, seed)
        self.recent: list[int] = []
        self.seen = 0

    def observe(self, query: int) -> bool:
        """A query arrived; True when it is time for candidates."""
        self.seen += 1
        self.recent.append(query)
        del self.recent[: -self.window]
        self.reservoir.add(query)
        return self.seen % self.window == 0

    def changes(self, space: StateSpace, states: list[str], current: str) -> Iterator[Change]:
        """New candidates, judged one by one; `states` must already reflect each change when the next is asked for."""
        for state, distance in self._alike(space, list(states), current):
            yield Change(evict=state, reason=f"its costs differ by only {distance:.3f} from another state's by now")
        for layout in self._candidates(space):
            if layout.blocks < 2 or layout.id in states:
                continue
            source = space.source_of(layout)
            distance = self._distance(space, states, source)
            if distance <= self.epsilon:
                continue
            while len(states) >= self.max_states:
                loser = self._least_useful(space, [s for s in states if s != current])
                yield Change(evict=loser, reason=f"{len(states)} states are the most allowed; least is lost without it")
            yield Change(layout, source, reason=f"its costs differ by {distance:.3f} from every state's")

    def _candidates(self, space: StateSpace) -> Iterator[Layout]:
        samples: list[list[int]] = []
        if self.source in ("SW", "SW+RS"):
            samples.append(self.recent)
        if self.source in ("RS", "SW+RS"):
            samples.append(self.reservoir.items)
        for queries in samples:
            workload = space.stream.take(queries)
            for name in self.generators:
                yield generate(name, space.sample, workload, self.blocks, space.mode)

    def _alike(self, space: StateSpace, states: list[str], current: str) -> Iterator[tuple[str, float]]:
        """States that an earlier one, or the current one, is as good as, with their distance to it."""
        costs = space.matrix(states, self.reservoir.items)
        weight = space.stream.weight(self.reservoir.items) or 1.0
        kept = [states.index(current)]
        for number, state in enumerate(states):
            if state != current:
                distance = float(np.abs(costs[kept] - costs[number]).mean(axis=1).min()) / weight
                if distance > self.epsilon:
                    kept.append(number)
                else:
                    yield state, distance

    def _distance(self, space: StateSpace, states: list[str], candidate: CostSource) -> float:
        """Algorithm 5: the distance to the nearest state."""
        queries = self.reservoir.items
        costs = candidate.costs(queries)
        weight = space.stream.weight(queries) or 1.0
        return float(np.abs(space.matrix(states, queries) - costs).mean(axis=1).min(initial=np.inf)) / weight

    def _least_useful(self, space: StateSpace, states: list[str]) -> str:
        costs = space.matrix(states, self.reservoir.items)
        if len(states) < 2:
            return states[0]
        ordered = np.sort(costs, axis=0)
        loss = np.where(costs == ordered[0], ordered[1] - ordered[0], 0.0).sum(axis=1)
        return states[int(np.argmin(loss))]

    def kept(self) -> set[int]:
        """Positions in the stream that must be remembered."""
        return {*self.recent, *self.reservoir.all_items}

    def renumber(self, numbers: dict[int, int]) -> None:
        self.recent = [numbers[query] for query in self.recent]
        self.reservoir.renumber(numbers)

    def to_json(self) -> dict[str, Any]:
        return {"seen": self.seen, "recent": list(self.recent), "reservoir": self.reservoir.to_json()}

    def restore(self, document: dict[str, Any]) -> None:
        self.seen = int(document["seen"])
        self.recent = [int(query) for query in document["recent"]]
        self.reservoir = Reservoir.from_json(document["reservoir"])
