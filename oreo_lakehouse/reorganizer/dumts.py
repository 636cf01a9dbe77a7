"""D-UMTS: the paper's Algorithms 1 to 4, uniform metrical task systems over a set of states that changes.

Every state has a counter of the service cost it would have paid in this phase; it is full at alpha. When the current
state is full, jump to a random state that is not; when none is left, a new phase begins. A new state waits for the next
phase. Theorem IV.1: the expected total cost is at most 2 H(|S_max|) times the best schedule in hindsight over the same
states, with uniform jumps (gamma = 0 or floor = 1).

Where the text is silent or wrong:
- Algorithm 4 never takes a removed state out of S, so the next reset would revive it; here it leaves S.
- A phase starts where the last one ended ("stay put", section IV-A), not at a random state.
- Weighted jumps (section IV-C) alone have no bound; a share `floor` of every jump is uniform. Each uniform jump that
  the proof counts then comes after at most 1/floor expected jumps, so the bound grows by that factor at most.
- Activating a state in mid-phase (`replayed` or `median`) is allowed once per phase and state, and a state that is
  added when its counter would already be full waits. An adversary that adds states for ever can still prolong a phase,
  so the theorem is claimed for `deferred` alone.
- alpha may change between runs: counters are costs, not shares of alpha, and go on counting; a state that was full in
  this phase stays full.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.reorganizer.decision import Decision
from oreo_lakehouse.reorganizer.randomness import generator_from_json, generator_to_json, new_generator

Activation: TypeAlias = Literal["deferred", "replayed", "median"]
_LEAST_WEIGHT = 1e-6
"""Of a state that skipped nothing in the last phase, so that some state can always be drawn."""


class DUMTS:
    """Which state to be in, by counters.

    Args:
        states: the first states; the table is in the first of them.
        alpha: the movement cost, in full scans.
        seed: of the generator that draws jumps.
        gamma: jumps go to a state with probability proportional to (share of rows skipped in the last phase) ^ gamma.
        floor: the share of jumps that is uniform whatever gamma says.

    >>> reorganizer = DUMTS(["a", "b"], alpha=2.0, seed=1)
    >>> [reorganizer.observe({"a": 1.0, "b": 0.1}).state for _ in range(3)]
    ['a', 'b', 'b']
    """

    def __init__(self, states: list[str], alpha: float, seed: int, gamma: float = 0.0, floor: float = 0.1) -> None:
        if not states:
            raise ValueError("D-UMTS needs at least one state")
        self.alpha, self.gamma, self.floor = alpha, gamma, floor
        self.states: list[str] = list(states)
        self.current = states[0]
        self.phase = 0
        self.queries = 0
        self._random = new_generator(seed)
        self._phase_queries: dict[str, int] = {}
        self._skipped: dict[str, float] = {}
        self._counters: dict[str, float] = {}
        self._active: list[str] = []
        self._reset()

    @property
    def counters(self) -> dict[str, float]:
        """The counters of this phase, of all states that take part in it."""
        return dict(self._counters)

    @property
    def phase_queries(self) -> int:
        """Queries served in this phase."""
        return max(self._phase_queries.values(), default=0)

    @property
    def active(self) -> tuple[str, ...]:
        """States whose counter is not full: S_A in the paper."""
        return tuple(self._active)

    def observe(self, costs: Mapping[str, float]) -> Decision:
        """A query was served at these costs, one for each state: Algorithm 3, UpdateCounters."""
        self.queries += 1
        for state in self._counters:  # line 1; the counters of full states go on, for the predictor alone
            self._counters[state] += costs[state]
            self._phase_queries[state] += 1
        self._active = [s for s in self._active if self._counters[s] < self.alpha]  # line 2
        if self.current in self._active:  # line 3
            return self._decide("stay", "the current state's counter is not full")
        if not self._active:  # lines 4 and 5, without the jump of line 6: stay put
            self._reset()
            if self.current in self._active:
                return self._decide("phase", "all counters are full: a new phase begins in the same state")
        return self._jump("its counter was full")  # line 6

    def add_state(self, state: str, activation: Activation = "deferred", counter: float = 0.0) -> None:
        """Algorithm 4, lines 12 and 13. `counter` is the cost of the phase's queries replayed in the new state."""
        if state in self.states:
            return
        self.states.append(state)
        if activation == "median":
            counter = float(np.median([*self._counters.values()])) if self._counters else 0.0
        if activation != "deferred" and counter < self.alpha and self._counters:
            self._counters[state] = counter
            self._phase_queries[state] = max(self._phase_queries.values())
            self._active.append(state)

    def remove_state(self, state: str) -> Decision | None:
        """Algorithm 4, lines 5 to 11; the decision if this forces a move."""
        self.states.remove(state)
        if not self.states:
            raise ValueError("the last state cannot be removed")
        self._counters.pop(state, None)
        self._phase_queries.pop(state, None)
        self._skipped.pop(state, None)
        if state in self._active:
            self._active.remove(state)
        if not self._active:
            self._reset()
        return self._jump("it was removed") if state == self.current else None

    def place(self, state: str) -> None:
        """The table is in this state, whatever was decided: a move was made elsewhere, or not made at all."""
        if state not in self.states:
            self.add_state(state)
        self.current = state

    def to_json(self) -> dict[str, Any]:
        return {
            "alpha": self.alpha,
            "gamma": self.gamma,
            "floor": self.floor,
            "states": list(self.states),
            "current": self.current,
            "phase": self.phase,
            "queries": self.queries,
            "counters": dict(self._counters),
            "active": list(self._active),
            "phase_queries": dict(self._phase_queries),
            "skipped": dict(self._skipped),
            "random": generator_to_json(self._random),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> DUMTS:
        """The reorganizer that `to_json` described, in the middle of its phase.

        Raises:
            StoreError: the document is not one of ours.
        """
        try:
            states = [str(s) for s in cast("list[Any]", document["states"])]
            out = cls(states, float(document["alpha"]), 0, float(document["gamma"]), float(document["floor"]))
            out.current, out.phase, out.queries = str(document["current"]), document["phase"], document["queries"]
            out._counters = {str(s): float(c) for s, c in document["counters"].items()}
            out._active = [str(s) for s in document["active"]]
            out._phase_queries = {str(s): int(n) for s, n in document["phase_queries"].items()}
            out._skipped = {str(s): float(w) for s, w in document["skipped"].items()}
            out._random = generator_from_json(document["random"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StoreError(f"malformed state: the reorganizer's counters cannot be read ({error})") from error
        return out

    def _reset(self) -> None:
        """Algorithm 2, ResetStates; what each state skipped in the phase that ends feeds the predictor."""
        for state, queries in self._phase_queries.items():
            if queries:
                self._skipped[state] = max(0.0, 1.0 - self._counters[state] / queries)
        self._active = list(self.states)
        self._counters = dict.fromkeys(self.states, 0.0)
        self._phase_queries = dict.fromkeys(self.states, 0)
        self.phase += 1

    def _jump(self, why: str) -> Decision:
        left = self.current
        uniform = np.full(len(self._active), 1.0 / len(self._active))
        weight = np.array([max(_LEAST_WEIGHT, self._skipped.get(s, 1.0)) for s in self._active]) ** self.gamma
        chances = self.floor * uniform + (1.0 - self.floor) * weight / weight.sum()
        draw = self._random.random()
        chosen = int(np.searchsorted(np.cumsum(chances), draw, "right"))
        self.current = self._active[min(chosen, len(self._active) - 1)]
        return self._decide("move", f"left {left}: {why}")

    def _decide(self, kind: str, reason: str) -> Decision:
        return Decision(kind, self.current, reason, self.phase, dict(self._counters), self.queries)
