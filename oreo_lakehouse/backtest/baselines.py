"""The paper's baselines (section VI-A3 and VI-C), over the same cost model and candidates as the strategies.

never            stays in the initial layout.
static           one layout for the whole workload, seen in advance and in place from the first query on.
greedy           at every window, switches to a candidate made from it if that is cheaper on it.
regret           switches when a candidate would have saved alpha since the last switch.
mts-optimal      D-UMTS over fixed states: the best layout for each query template.
offline-optimal  switches to the best layout for the template whenever the template changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from oreo_lakehouse.backtest.simulator import Outcome
from oreo_lakehouse.layouts.generators import generate
from oreo_lakehouse.layouts.layout import Layout
from oreo_lakehouse.predicates.shape import comparisons, places
from oreo_lakehouse.reorganizer.dumts import DUMTS
from oreo_lakehouse.reorganizer.states import INITIAL, CostSource, StateSpace

_MOST_QUERIES = 2000
"""From which a layout for a whole workload or template is built, evenly spread."""
_MOST_TEMPLATES = 32


class Baselines:
    """Makes the candidates once; every baseline is a method."""

    def __init__(self, space: StateSpace, generators: Sequence[str], blocks: int, alpha: float, window: int) -> None:
        self.space, self.generators, self.blocks = space, tuple(generators), blocks
        self.alpha, self.window = alpha, window

    @property
    def _everything(self) -> slice:
        return slice(0, len(self.space.stream))

    def never(self) -> Outcome:
        return Outcome(self.space.costs(INITIAL, self._everything), (), self.alpha, 1)

    def static(self) -> Outcome:
        sources = [self.space.source_of(layout) for layout in self._layouts(np.arange(len(self.space.stream)))]
        costs = [source.costs(self._everything) for source in sources]
        return Outcome(min(costs, key=lambda c: float(c.sum())), (), self.alpha, 1)

    def greedy(self) -> Outcome:
        current = self.space.known[INITIAL]
        served, moves = [np.zeros(0)], list[int]()
        for start, stop, candidates in self._windows:
            served.append(current.costs(slice(start, stop)))
            best = min(candidates, key=lambda c: float(c.costs(slice(start, stop)).sum()), default=current)
            if best.costs(slice(start, stop)).sum() < served[-1].sum():
                current = best
                moves.append(stop - 1)
        return Outcome(np.concatenate(served), tuple(moves), self.alpha, 2)

    def regret(self) -> Outcome:
        current, since = self.space.known[INITIAL], 0
        pool: list[CostSource] = []
        served, moves = [np.zeros(0)], list[int]()
        for start, stop, candidates in self._windows:
            costs = current.costs(slice(start, stop))
            pool = [source for source in pool if source is not current] + candidates
            saved = [np.cumsum(current.costs(slice(since, stop)) - s.costs(slice(since, stop))) for s in pool]
            # A candidate of this window exists from its end on; older ones may pay off in its middle.
            ripe = [
                (self._first(gain, start - since, source in candidates), n)
                for n, (gain, source) in enumerate(zip(saved, pool, strict=True))
            ]
            at, number = min(ripe, default=(stop, -1))
            if at < stop - since and number >= 0:
                switch = since + at
                moves.append(switch)
                cut = switch + 1
                served += [current.costs(slice(start, cut)), pool[number].costs(slice(cut, stop))]
                current, since = pool[number], cut
            else:
                served.append(costs)
        return Outcome(np.concatenate(served), tuple(moves), self.alpha, len(pool) + 1)

    def _first(self, gain: np.ndarray, window: int, new: bool) -> int:
        """The first query of the window after which the gain exceeds alpha."""
        from_query = len(gain) - 1 if new else window
        over = np.flatnonzero(gain[from_query:] > self.alpha)
        return from_query + int(over[0]) if len(over) else len(gain)

    def mts_optimal(self, seed: int, gamma: float) -> Outcome:
        sources = self._templates[1]
        names = [INITIAL, *(str(number) for number in range(len(sources)))]
        costs = np.stack([s.costs(self._everything) for s in (self.space.known[INITIAL], *sources)]).T
        reorganizer = DUMTS(names, self.alpha, seed, gamma)
        served, moves = np.zeros(len(costs)), list[int]()
        for query, row in enumerate(costs.tolist()):
            served[query] = row[names.index(reorganizer.current)]
            if reorganizer.observe(dict(zip(names, row, strict=True))).moved:
                moves.append(query)
        return Outcome(served, tuple(moves), self.alpha, len(names))

    def offline_optimal(self) -> Outcome:
        template, sources = self._templates
        costs = np.stack([s.costs(self._everything) for s in sources])
        changes = np.flatnonzero(np.append(True, template[1:] != template[:-1]))
        return Outcome(costs[template, np.arange(len(template))], tuple(changes.tolist()), self.alpha, len(sources))

    @cached_property
    def _windows(self) -> list[tuple[int, int, list[CostSource]]]:
        """The stream in windows, each with the candidates made from it."""
        out: list[tuple[int, int, list[CostSource]]] = []
        for start in range(0, len(self.space.stream), self.window):
            stop = min(start + self.window, len(self.space.stream))
            full = stop - start == self.window
            out.append(
                (start, stop, [self.space.source_of(x) for x in self._layouts(np.arange(start, stop))] if full else [])
            )
        return out

    @cached_property
    def _templates(self) -> tuple[np.ndarray, list[CostSource]]:
        """Each query's template (the columns of its literals; rare ones share the last), and the best layout for each.

        A template whose condition is drawn, such as `< 30` or `>= 30`, has several shapes, but is one template.
        """
        found: dict[object, list[np.ndarray]] = {}
        for group in self.space.stream.groups:
            key = tuple(places(group.shape)), comparisons(group.shape)
            found.setdefault(key, []).append(group.queries)
        templates = sorted(map(np.concatenate, found.values()), key=lambda queries: -len(queries))
        template = np.full(len(self.space.stream), min(len(templates), _MOST_TEMPLATES) - 1)
        for number, queries in enumerate(templates[: _MOST_TEMPLATES - 1]):
            template[queries] = number
        sources: list[CostSource] = []
        for number in range(int(template.max()) + 1):
            queries = np.flatnonzero(template == number)
            made = [self.space.source_of(layout) for layout in self._layouts(queries)]
            sources.append(min(made, key=lambda source: float(source.costs(queries).sum())))
        return template, sources

    def _layouts(self, queries: np.ndarray) -> list[Layout]:
        if len(queries) > _MOST_QUERIES:
            queries = queries[np.linspace(0, len(queries) - 1, _MOST_QUERIES).astype(np.intp)]
        workload = self.space.stream.take(queries)
        return [generate(name, self.space.sample, workload, self.blocks, self.space.mode) for name in self.generators]
