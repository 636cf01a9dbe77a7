"""Replays a stream of queries against a strategy and counts what it would have paid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.reorganizer.states import INITIAL, StateSpace
from oreo_lakehouse.reorganizer.strategy import Strategy

Progress = Callable[[int, int], None]
"""Called with (queries done, queries in all) now and then."""
_EVERY = 500


@dataclass(frozen=True)
class Outcome:
    """What a policy paid: service costs a query, in full scans, and when it moved."""

    costs: npt.NDArray[np.float64]
    moves: tuple[int, ...]
    """Positions of the queries after which it moved."""
    alpha: float
    states: int
    """The most states it had at once."""

    @property
    def query(self) -> float:
        return float(self.costs.sum())

    @property
    def movement(self) -> float:
        return self.alpha * len(self.moves)

    @property
    def total(self) -> float:
        return self.query + self.movement

    def cumulative(self) -> npt.NDArray[np.float64]:
        """Everything paid up to and including each query."""
        paid = self.costs.copy()
        np.add.at(paid, np.array(self.moves, np.intp), self.alpha)
        return np.cumsum(paid)


def simulate(
    strategy: Strategy,
    space: StateSpace,
    alpha: float,
    delay: int = 0,
    progress: Progress | None = None,
) -> Outcome:
    """Serve the whole stream, each query in the state that was decided before it.

    Args:
        strategy: fresh, in the initial state.
        space: knows the initial state and the stream.
        alpha: the price of a move.
        delay: queries still served in the old state after a decision (the paper's Delta). The price is due at once.
        progress: told now and then how far it is.
    """
    total = len(space.stream)
    costs = np.zeros(total)
    moves: list[int] = []
    most = 1
    serving, arrives = INITIAL, 0
    pending = INITIAL
    for query in range(total):
        if pending != serving and query >= arrives:
            serving = pending
        costs[query] = space.cost(serving, query)
        for decision in strategy.step(query, space):
            if decision.moved and decision.state != pending:
                moves.append(query)
                pending, arrives = decision.state, query + 1 + delay
        most = max(most, len(strategy.states))
        if progress is not None and (query + 1) % _EVERY == 0:
            progress(query + 1, total)
    return Outcome(costs, tuple(moves), alpha, most)
