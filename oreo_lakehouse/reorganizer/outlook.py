"""What queries will cost while their literals slide: projected queries instead of past ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from oreo_lakehouse.layouts.generators import generate
from oreo_lakehouse.layouts.layout import Layout
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.reorganizer.augment import augmented
from oreo_lakehouse.reorganizer.drift import Drift, find_drift, project, room
from oreo_lakehouse.reorganizer.randomness import new_generator
from oreo_lakehouse.reorganizer.states import StateSpace

_EVERY = 50
_EARLY = (10, 25)
"""Queries after a change at which to look for the first time: a bound that is always "now" shows at once."""
_LOOK_AT = 600
_FROM = 300
"""The latest queries, which are moved along the drift."""
_AVERAGE_OF = 4
_AHEAD = 10_000.0
"""How far ahead costs are projected and candidates built for."""
_BUILT_FOR = (10_000.0, 20_000.0)
_LEAST_LIFE = 2500.0
_PROJECTED = 100
_CANDIDATES_EVERY = 800
_BUILT_FROM = 500


class Outlook:
    """Looks for drift now and then; while there is some, knows each state's cost on queries to come."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._seen = 0
        self._drifting = False
        self._room = 0.0
        """Queries until the ranges reach the end of the table."""
        self._means: dict[str, list[float]] = {}

    def __bool__(self) -> bool:
        return self._drifting

    def clear(self) -> None:
        self._drifting = False
        self._means = {}

    def observe(
        self, space: StateSpace, query: int, since: int, generators: Sequence[str], blocks: int
    ) -> Iterator[tuple[Layout, Workload]]:
        """Look again if it is time; candidates, and the queries to come that they were made for."""
        self._seen += 1
        if since not in _EARLY and (since <= 0 or since % _EVERY):
            return
        window, drift = self._look(space, query, since)
        if not drift:
            self.clear()
            return
        self._drifting = True
        self._update(space, window, drift, [*self._means])
        if since in _EARLY or since % _CANDIDATES_EVERY == 0:
            random = self._random()
            latest = window.take(slice(-_FROM, None))
            more = augmented(latest, space.sample, _FROM - len(latest), random, move=False)
            for horizon in _BUILT_FOR:
                ahead = min(horizon, max(_LEAST_LIFE, self._room))
                workload = project(Workload.concat([more, latest]), drift, ahead, _BUILT_FROM, random)
                for name in generators:
                    yield generate(name, space.sample, workload, blocks, space.mode), workload

    def means(self, space: StateSpace, query: int, since: int, states: Sequence[str]) -> np.ndarray:
        """Each state's mean service cost on queries to come."""
        self._means = {state: self._means[state] for state in states if state in self._means}
        missing = [state for state in states if state not in self._means]
        if missing:
            self._update(space, *self._look(space, query, since), missing)
        return np.array([float(np.mean(self._means[state])) for state in states])

    def life(self, rest: float, since: int) -> float:
        """A drift is expected to last as long again as it has lasted, within what can be foreseen."""
        return max(_LEAST_LIFE, min(rest, float(since), _AHEAD, self._room))

    def _random(self) -> np.random.Generator:
        return new_generator((self._seed, 3, self._seen))

    def _look(self, space: StateSpace, query: int, since: int) -> tuple[Workload, Drift]:
        window = space.stream.take(slice(max(0, query + 1 - min(since, _LOOK_AT)), query + 1))
        drift = find_drift(window)
        self._room = max(0.0, room(window, drift, space.sample))
        return window, drift

    def _update(self, space: StateSpace, window: Workload, drift: Drift, states: Sequence[str]) -> None:
        # Never beyond the table's end: what is asked there costs nothing in any state, and would hide every gain.
        workload = project(window.take(slice(-_FROM, None)), drift, min(_AHEAD, self._room), _PROJECTED, self._random())
        known = [state for state in states if state in space]
        weight = window.weight(slice(-_FROM, None))  # queries to come read the columns that the latest ones read
        for state, mean in zip(known, space.outlook(known, workload).tolist(), strict=True):
            self._means[state] = [*self._means.get(state, []), weight * mean][-_AVERAGE_OF:]

    def to_json(self) -> dict[str, Any]:
        return {"drifting": self._drifting, "room": self._room, "means": self._means, "seen": self._seen}

    def restore(self, document: dict[str, Any]) -> None:
        self._drifting = bool(document["drifting"])
        self._means = {str(s): [float(m) for m in means] for s, means in document["means"].items()}
        self._seen, self._room = int(document["seen"]), float(document["room"])
