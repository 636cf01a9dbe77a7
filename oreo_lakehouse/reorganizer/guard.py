"""The guard: whatever the planner does, the bill stays close to that of a comparator with a proven bound.

The comparator B is an online algorithm over the same states, run on metadata alone. It follows one of several experts:
uniform D-UMTS, "never reorganise", and "stay in state s for ever" for every state s. Which one, is drawn by Hedge with
the Shrinking Dartboard (Geulen, Vöcking and Winkler, COLT 2010): an expert keeps weight exp(-rate x its cost), and the
chosen one is kept with probability exp(-rate x its cost of this query), else drawn anew in proportion to the weights.

What is bounded against whom, with rate = 1/(8 alpha) and N experts:
- E[B] <= 1.2 min(D-UMTS, never, best fixed state) + 10 alpha ln N. Hedge's expected cost is at most 1.065 L* + 8 alpha
  ln N, since rate x cost <= 1/8 (1 + 1/alpha) for every expert, even D-UMTS on a query at which it moves; the dartboard
  redraws at most rate x cost times in expectation, and each redraw costs at most alpha: another eighth. An expert that
  joins late is compared from then on.
- A <= 1.25 B + 5 alpha + 1 on every path, where A is what following the guard costs. While the planner is followed,
  A <= 1.25 B + 3 alpha held before its last move and query, which added at most alpha + 1; going over to B's state
  costs at most alpha more. From then on A and B pay the same, so A - 1.25 B only falls, until A <= 1.125 B + 1.5 alpha
  and the planner is followed again.
- With Theorem IV.1, E[A] <= 1.25 x 1.2 x 2 H(n) times the optimum over the same states, plus O(alpha log n).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from oreo_lakehouse.reorganizer.dumts import DUMTS
from oreo_lakehouse.reorganizer.randomness import generator_from_json, generator_to_json, new_generator

_RATE = 0.125
_LOOSE, _TIGHT = (1.25, 3.0), (1.125, 1.5)
_WORK = "D-UMTS"


class Comparator:
    """B: follows D-UMTS or a fixed state, by a hedge that seldom changes its mind."""

    def __init__(self, states: Iterable[str], alpha: float, seed: int) -> None:
        names = list(states)
        self.alpha = alpha
        self.dumts = DUMTS(names, alpha, seed)
        self.weights: dict[str, float] = dict.fromkeys([_WORK, *names], 1.0)
        self.expert = _WORK
        self.paid = 0.0
        self._random = new_generator(seed + 1)

    @property
    def state(self) -> str:
        return self.dumts.current if self.expert == _WORK else self.expert

    def observe(self, costs: Mapping[str, float]) -> None:
        """A query was served at these costs, one for each state."""
        before = self.state
        self.paid += costs[before]
        lost = {state: costs[state] for state in self.weights if state != _WORK}
        lost[_WORK] = costs[self.dumts.current]
        lost[_WORK] += self.alpha * self.dumts.observe(costs).moved
        rate = _RATE / self.alpha
        for expert in self.weights:
            self.weights[expert] *= math.exp(-rate * lost[expert])
        if self._random.random() >= math.exp(-rate * lost[self.expert]):
            self._draw()
        self._settle(before)
        top = max(self.weights.values())
        if top < 1e-100:
            self.weights = {expert: weight / top for expert, weight in self.weights.items()}

    def add_state(self, state: str) -> None:
        """It joins with an average weight."""
        if state not in self.weights:
            self.dumts.add_state(state)
            self.weights[state] = sum(self.weights.values()) / len(self.weights)

    def remove_state(self, state: str) -> None:
        before = self.state
        self.dumts.remove_state(state)
        del self.weights[state]
        if self.expert == state:
            self._draw()
        self._settle(before)

    def _draw(self) -> None:
        draw = self._random.random() * sum(self.weights.values())
        for self.expert, weight in self.weights.items():  # noqa: B020 - the last one drawn is the choice
            draw -= weight
            if draw < 0:
                return

    def _settle(self, before: str) -> None:
        if self.state != before:
            self.paid += self.alpha

    def to_json(self) -> dict[str, Any]:
        return {
            "dumts": self.dumts.to_json(),
            "weights": dict(self.weights),
            "expert": self.expert,
            "paid": self.paid,
            "random": generator_to_json(self._random),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any], alpha: float) -> Comparator:
        out = cls([""], alpha, 0)
        out.dumts = DUMTS.from_json(document["dumts"])
        out.dumts.alpha = alpha
        out.weights = {str(expert): float(weight) for expert, weight in document["weights"].items()}
        out.expert, out.paid = str(document["expert"]), float(document["paid"])
        out._random = generator_from_json(document["random"])
        return out


class Guard:
    """Lets a plan pass while it is not much dearer than the comparator.

    >>> guard = Guard(["a", "b"], alpha=4.0, seed=1)
    >>> guard.observe("a", {"a": 1.0, "b": 0.0})
    >>> guard.allowed("b")
    'b'
    """

    def __init__(self, states: Iterable[str], alpha: float, seed: int) -> None:
        self.comparator = Comparator(states, alpha, seed)
        self.paid = 0.0
        self.trusting = True
        """Whether the planner is followed."""

    @property
    def alpha(self) -> float:
        return self.comparator.alpha

    @property
    def limit(self) -> float:
        """What `paid` never exceeds."""
        return 1.25 * self.comparator.paid + 5 * self.alpha + 1

    def observe(self, state: str, costs: Mapping[str, float]) -> None:
        """A query was served in `state`."""
        self.paid += costs[state]
        self.comparator.observe(costs)
        factor, extra = _LOOSE if self.trusting else _TIGHT
        self.trusting = self.paid <= factor * self.comparator.paid + extra * self.alpha

    def allowed(self, wanted: str) -> str:
        """The state to be in: the planner's wish, or the comparator's state while the planner is not trusted."""
        return wanted if self.trusting else self.comparator.state

    def moved(self) -> None:
        """The table was moved."""
        self.paid += self.alpha

    def add_state(self, state: str) -> None:
        self.comparator.add_state(state)

    def remove_state(self, state: str) -> None:
        self.comparator.remove_state(state)

    def to_json(self) -> dict[str, Any]:
        return {"paid": self.paid, "trusting": self.trusting, "comparator": self.comparator.to_json()}

    @classmethod
    def from_json(cls, document: dict[str, Any], alpha: float) -> Guard:
        out = cls([""], alpha, 0)
        out.comparator = Comparator.from_json(document["comparator"], alpha)
        out.paid, out.trusting = float(document["paid"]), bool(document["trusting"])
        return out
