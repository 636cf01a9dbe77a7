"""What queries will cost while their literals slide: projected queries instead of past ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from oreo_lakehouse.layouts.generators import generate
from oreo_lakehouse.layouts.layout import Layout
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.reorganizer.drift import Drift, find_drift, project
from oreo_lakehouse.reorganizer.randomness import generator_from_json, generator_to_json, new_generator
from oreo_lakehouse.reorganizer.states import StateSpace

_EVERY = 50
_LOOK_AT = 600
_LEAST = 300
_AVERAGE_OF = 4
_SOON, _LATE = 2500.0, 10_000.0
_PROJECTED = 100
_CANDIDATES = ((400, 4000.0), (800, _LATE))
"""(every so many queries, built for so many queries ahead)."""
_BUILT_FROM = 500


class Outlook:
    """Looks for drift now and then; while there is some, knows each state's cost on queries to come."""

    def __init__(self, seed: int) -> None:
        self._random = new_generator(seed + 3)
        self._drifting = False
        self._means: dict[str, list[float]] = {}

    def __bool__(self) -> bool:
        return self._drifting

    def clear(self) -> None:
        self._drifting = False
        self._means = {}

    def observe(
        self, space: StateSpace, query: int, since: int, generators: Sequence[str], blocks: int
    ) -> Iterator[Layout]:
        """Look again if it is time; candidates for the queries to come."""
        if since < _LEAST or since % _EVERY:
            return
        window, drift = self._look(space, query, since)
        if not drift:
            self.clear()
            return
        self._drifting = True
        self._update(space, window, drift, since, [*self._means])
        for every, horizon in _CANDIDATES:
            if since % every == 0:
                recent = window.take(slice(-_LEAST, None))
                workload = project(recent, drift, horizon, _BUILT_FROM, self._random)
                for name in generators:
                    yield generate(name, space.sample, workload, blocks, space.mode)

    def means(self, space: StateSpace, query: int, since: int, states: Sequence[str]) -> np.ndarray:
        """Each state's mean service cost on queries to come."""
        self._means = {state: self._means[state] for state in states if state in self._means}
        missing = [state for state in states if state not in self._means]
        if missing:
            self._update(space, *self._look(space, query, since), since, missing)
        return np.array([float(np.mean(self._means[state])) for state in states])

    def life(self, rest: float, since: int) -> float:
        """A drift is expected to last as long again as it has lasted, within what can be foreseen."""
        return max(_SOON, min(rest, _horizon(since)))

    def _look(self, space: StateSpace, query: int, since: int) -> tuple[Workload, Drift]:
        window = space.stream.take(slice(max(0, query + 1 - min(since, _LOOK_AT)), query + 1))
        return window, find_drift(window)

    def _update(self, space: StateSpace, window: Workload, drift: Drift, since: int, states: Sequence[str]) -> None:
        recent = window.take(slice(-_LEAST, None))
        workload = project(recent, drift, _horizon(since), _PROJECTED, self._random)
        known = [state for state in states if state in space]
        for state, mean in zip(known, space.outlook(known, workload).tolist(), strict=True):
            self._means[state] = [*self._means.get(state, []), mean][-_AVERAGE_OF:]

    def to_json(self) -> dict[str, Any]:
        return {"drifting": self._drifting, "means": self._means, "random": generator_to_json(self._random)}

    def restore(self, document: dict[str, Any]) -> None:
        self._drifting = bool(document["drifting"])
        self._means = {str(s): [float(m) for m in means] for s, means in document["means"].items()}
        self._random = generator_from_json(document["random"])


def _horizon(since: int) -> float:
    """How far ahead costs are projected."""
    return min(max(_SOON, float(since)), _LATE)
