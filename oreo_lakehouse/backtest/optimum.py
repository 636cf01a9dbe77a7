"""The exact offline optimum: the cheapest schedule in hindsight over given states, by dynamic programming."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.backtest.simulator import Outcome


def optimal_schedule(costs: npt.NDArray[np.float64], alpha: float, start: int = 0) -> Outcome:
    """The schedule with the least service plus movement cost.

    With one price for all moves, the best way to be in state s at query t either was there before or came from the
    cheapest state: w_t(s) = min(w_{t-1}(s), min w_{t-1} + alpha) + c_t(s).

    Args:
        costs: (states x queries).
        alpha: the price of a move.
        start: the state that the table is in at first.

    >>> optimal_schedule(np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]), alpha=1.5).total
    2.5
    """
    states, queries = costs.shape
    paid = np.full(states, np.inf)
    paid[start] = 0.0
    came = np.zeros((queries, states), np.int32)
    own = np.arange(states, dtype=np.int32)
    by_query = np.ascontiguousarray(costs.T)
    for query in range(queries):
        best = int(np.argmin(paid))
        moves = paid > paid[best] + alpha
        came[query] = np.where(moves, best, own)
        paid = np.where(moves, paid[best] + alpha, paid) + by_query[query]
    state = int(np.argmin(paid))
    path = np.zeros(queries, np.int32)
    moved: list[int] = []
    for query in range(queries - 1, -1, -1):
        path[query] = state
        before = int(came[query, state])
        if before != state:
            moved.append(query)
        state = before
    served = by_query[np.arange(queries), path]
    return Outcome(served, tuple(reversed(moved)), alpha, len(np.unique(path)))
