"""What each state promises from here on: in the rest of this regime, and in those that come after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oreo_lakehouse.reorganizer.outlook import Outlook
from oreo_lakehouse.reorganizer.regimes import RegimeLog, tail_value
from oreo_lakehouse.reorganizer.states import StateSpace

_MEAN_OVER, _LONGEST_MEAN = 50, 600
"""Queries that present costs are means over: at first, and at most. A long life makes much of what a short mean has by
chance, and among many states the luckiest looks best: so it is half of the regime's queries once these are more."""
_LONGEST = 1000.0
"""Queries that a regime is expected to last yet at most, unless it has lasted longer."""


def mean_over(since: int) -> int:
    """Of how many queries present costs are the mean, so many queries after a change."""
    return max(_MEAN_OVER, min(since // 2, _LONGEST_MEAN))


@dataclass(frozen=True)
class Promise:
    """What states will cost, one number each, in the order in which they were named."""

    rest: float
    """Queries that the present regime will last yet."""
    means: np.ndarray
    """What one of them costs."""
    later: np.ndarray
    """The tail value: what it costs to be in that state when the regime ends, against the best of them."""

    @property
    def worth(self) -> np.ndarray:
        return self.rest * self.means + self.later


class Prospects:
    """Prices states by the log of regimes; remembers what it found out of past ones."""

    def __init__(self, log: RegimeLog, alpha: float) -> None:
        self._log, self._alpha = log, alpha
        self._later: dict[str, float] | None = None
        self._past_costs: dict[str, dict[tuple[int, ...], float]] = {}

    def of(self, space: StateSpace, query: int, since: int, states: Sequence[str], outlook: Outlook) -> Promise:
        """After this query, so long since the change; by projected queries where literals slide."""
        later = np.array([self._tails(space, states)[state] for state in states])
        rest = min(max(_LONGEST, float(self._log.age)), self._log.residual_life())
        if outlook:
            return Promise(outlook.life(rest, since), outlook.means(space, query, since, states), later)
        latest = slice(query + 1 - min(since, mean_over(since)), query + 1)
        return Promise(rest, space.matrix(states, latest).mean(axis=1), later)

    def outdated(self) -> None:
        """Regimes or states are others now."""
        self._later = None

    def forget(self, state: str) -> None:
        self._past_costs.pop(state, None)
        self._later = None

    def renumbered(self) -> None:
        """Queries have other numbers now."""
        self._past_costs.clear()
        self._later = None

    def _tails(self, space: StateSpace, states: Sequence[str]) -> dict[str, float]:
        """The tail value of each state."""
        if self._later is None:
            costs = np.array([self._means(space, state) for state in states]).reshape(len(states), -1)
            self._later = dict(zip(states, tail_value(self._log, costs, self._alpha).tolist(), strict=True))
        return self._later

    def _means(self, space: StateSpace, state: str) -> list[float]:
        """The state's mean cost in each past regime."""
        known = self._past_costs.setdefault(state, {})
        missing = [regime for regime in self._log.past if regime.queries not in known]
        if missing:
            costs = space.costs(state, [query for regime in missing for query in regime.queries])
            ends = np.cumsum([len(regime.queries) for regime in missing])
            for regime, part in zip(missing, np.split(costs, ends[:-1]), strict=True):
                known[regime.queries] = float(part.mean())
        return [known[regime.queries] for regime in self._log.past]
