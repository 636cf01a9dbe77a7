"""Where the planner's candidates come from, and when.

recent   the queries since the change, made up to a window by augmentation: 10, 25, 60 and 200 queries after a change to
         a kind of query, or a mix of kinds, not met before, and every 400.
blend    the same with a few old queries at a low weight, which take the cuts that the recent ones do not need: with the
         second and the fourth of them, and every 800.
mixture  samples of the whole past, uniform and time-biased, each kind of query with the share that it is expected to
         have in the long run (`shares.py`): layouts that serve many regimes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from oreo_lakehouse.layouts.generators import generate
from oreo_lakehouse.layouts.layout import Layout
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.reorganizer.augment import augmented
from oreo_lakehouse.reorganizer.randomness import new_generator
from oreo_lakehouse.reorganizer.reservoir import Reservoir
from oreo_lakehouse.reorganizer.shares import long_run, weighed
from oreo_lakehouse.reorganizer.states import StateSpace

_WINDOW = 200
_AFTER_CHANGE = (10, 25, 60, 200)
_EVERY = 400
_MOST_COVERED = 200
"""Mixes that are remembered, of the many that there may be."""
_BLEND_AT = (25, 200)
_OLD = 300
_OLD_WEIGHT = 0.05
_DECAY = 1 / 2000
_MIXTURE = 600
_MIXTURES_AT = (200, 400, 700, 1000)
_BIASED_FROM = 1500
"""Before that, the time-biased sample is much the same as the uniform one."""


class Scout:
    """Remembers queries and makes candidates of them.

    Args:
        generators: names of layout generators.
        blocks: k, the blocks that a layout should have.
        seed: of every draw.
    """

    def __init__(self, generators: Sequence[str], blocks: int, seed: int) -> None:
        self.generators, self.blocks = tuple(generators), blocks
        self.biased = Reservoir(1000, _DECAY, seed)
        self.uniform = Reservoir(_MIXTURE, 0.0, seed + 1)
        self.seen = 0
        self.mixtures = 0
        self.covered: dict[str, int] = {}
        """By mix of kinds of query: from how many queries the candidate for it was made."""
        self._seed = seed

    def observe(self, query: int) -> None:
        self.seen += 1
        self.biased.add(query)
        self.uniform.add(query)

    def candidates(
        self, space: StateSpace, query: int, since: int, mix: Callable[[], str]
    ) -> Iterator[tuple[str, Layout]]:
        """The candidates that are due now, with their family.

        Args:
            space: the stream and the sample.
            query: position of the latest query.
            since: queries since the change.
            mix: of kinds of query, as the change detector sees it. One that came back needs no early candidates again.
        """
        early = since in _AFTER_CHANGE and since > self.covered.get(mix(), 0)
        regular = since > 0 and since % _EVERY == 0
        if not (early or regular or self._mixture_due()):
            return
        random = new_generator((self._seed, 2, self.seen))
        if early or regular:
            self._cover(mix(), since)
            window = slice(query + 1 - min(since, _WINDOW), query + 1)
            recent = self._recent(space, window, random)
            yield from self._made("recent", space, recent, None)
            if since in _BLEND_AT or since % (2 * _EVERY) == 0:
                yield from self._made("blend", space, *self._blend(space, recent, random))
        if self._mixture_due():
            self.mixtures += 1
            spread = self.mixtures % 2 == 0
            for reservoir in (self.uniform, self.biased)[: 1 + (self.seen >= _BIASED_FROM)]:
                items = np.sort(reservoir.items)
                chosen = items[random.permutation(len(items))[:_MIXTURE]]
                workload = space.stream.take(np.sort(chosen))
                counts = long_run(workload)
                if spread:
                    workload = augmented(workload, space.sample, len(workload), random, spread=True)
                yield from self._made("mixture", space, workload, weighed(workload, counts))

    def _cover(self, mix: str, since: int) -> None:
        self.covered[mix] = max(since, self.covered.pop(mix, 0))
        for oldest in list(self.covered)[:-_MOST_COVERED]:
            del self.covered[oldest]

    def _mixture_due(self) -> bool:
        seen = self.seen
        return seen in _MIXTURES_AT or (seen > 1000 and seen % (500 if seen <= 5000 else 1000) == 0)

    def _recent(self, space: StateSpace, window: slice, random: np.random.Generator) -> Workload:
        seen = space.stream.take(window)
        return Workload.concat([seen, augmented(seen, space.sample, _WINDOW - len(seen), random)])

    def _blend(self, space: StateSpace, recent: Workload, random: np.random.Generator) -> tuple[Workload, np.ndarray]:
        old = np.array(self.biased.items)[random.permutation(len(self.biased.items))[:_OLD]]
        weights = np.repeat([1.0, _OLD_WEIGHT], [len(recent), len(old)])
        return Workload.concat([recent, space.stream.take(old)]), weights

    def _made(
        self, family: str, space: StateSpace, workload: Workload, weights: np.ndarray | None
    ) -> Iterator[tuple[str, Layout]]:
        for name in self.generators:
            layout = generate(name, space.sample, workload, self.blocks, space.mode, weights)
            if layout.blocks > 1:
                yield family, layout

    def kept(self) -> set[int]:
        """Positions in the stream that must be remembered."""
        return {*self.biased.all_items, *self.uniform.all_items}

    def renumber(self, numbers: dict[int, int]) -> None:
        self.biased.renumber(numbers)
        self.uniform.renumber(numbers)

    def to_json(self) -> dict[str, Any]:
        return {
            "biased": self.biased.to_json(),
            "uniform": self.uniform.to_json(),
            "seen": self.seen,
            "mixtures": self.mixtures,
            "covered": dict(self.covered),
        }

    def restore(self, document: dict[str, Any]) -> None:
        self.biased, self.uniform = (Reservoir.from_json(document[name]) for name in ("biased", "uniform"))
        self.seen, self.mixtures = int(document["seen"]), int(document["mixtures"])
        self.covered = {str(kind): int(count) for kind, count in document["covered"].items()}
