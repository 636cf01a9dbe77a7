"""The planner: move when a layout is worth its price for the rest of this regime and for those that come after it.

A change detector cuts the stream into regimes. From the regimes seen so far follow how long the present one may last
(its residual life R) and what each state is worth when it ends (its tail value U). The best state b minimises
R x (mean service cost lately) + U; the table moves there if that saves more than alpha, and the stream has already
shown some of it: regret since the change, or a clear advantage in what comes later. Where literals slide with time,
costs are those of projected queries. The guard has the last word; what it proves is in `guard.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oreo_lakehouse.config import DecideSettings, LayoutSettings
from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.layouts.layout import Layout
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.reorganizer.change import ChangeDetector
from oreo_lakehouse.reorganizer.decision import Decision
from oreo_lakehouse.reorganizer.guard import Guard
from oreo_lakehouse.reorganizer.outlook import Outlook
from oreo_lakehouse.reorganizer.pool import StatePool
from oreo_lakehouse.reorganizer.prospects import Promise, Prospects, mean_over
from oreo_lakehouse.reorganizer.regimes import RegimeLog
from oreo_lakehouse.reorganizer.scout import Scout
from oreo_lakehouse.reorganizer.shares import kind_of
from oreo_lakehouse.reorganizer.states import INITIAL, StateSpace

_SETTLE = 10
"""Queries after a change before anything is decided: the first candidates for it are there then."""
_HURRY = 50
"""Queries after a change in which each is a chance to move; later only every tenth."""
_REGRET = 0.05
_LATER = 0.75
_RIPE, _PATIENCE = 200, 0.5
"""Queries after a change from which on its candidates are as good as they get, and what waiting for them may cost."""
_DRIFTING = 1.5
"""How often a move must pay for itself while literals slide: a later one does as well, and reaches further."""
_LOOK_BACK = 400
"""Queries that a new state is compared on for its regret."""
_KEPT = 640
"""Of the latest queries: what the detector of drift and the projections look at."""


class PlannerStrategy:
    """The default strategy.

    Args:
        decide: alpha and the cap on states.
        layout: names of the generators.
        blocks: k, the blocks that a layout should have.
        seed: of every draw.
    """

    def __init__(self, decide: DecideSettings, layout: LayoutSettings, blocks: int, seed: int) -> None:
        self.alpha = decide.alpha
        self.pool = StatePool(decide.max_states)
        self.detector = ChangeDetector()
        self.log = RegimeLog()
        self.prospects = Prospects(self.log, decide.alpha)
        self.scout = Scout(layout.generators, blocks, seed)
        self.outlook = Outlook(seed)
        self.guard = Guard([INITIAL], decide.alpha, seed)
        self._current = INITIAL
        self._regret: dict[str, float] = {}
        """What each state would have saved since the change or the last move."""
        self._latest: list[int] = []

    def aim_at(self, blocks: int) -> None:
        self.scout.blocks = blocks

    @property
    def layouts(self) -> dict[str, Layout]:
        return self.pool.layouts

    @property
    def current(self) -> str:
        return self._current

    @property
    def states(self) -> list[str]:
        return self.pool.states

    @property
    def phase(self) -> int:
        """Regimes finished."""
        return len(self.log.past)

    @property
    def counters(self) -> dict[str, float]:
        """Of the D-UMTS that guards the plan."""
        return self.guard.comparator.dumts.counters

    @property
    def regret(self) -> dict[str, float]:
        return dict(self._regret)

    @property
    def bound(self) -> dict[str, float] | None:
        return {"paid": self.guard.paid, "comparator": self.guard.comparator.paid, "limit": self.guard.limit}

    def step(self, query: int, space: StateSpace) -> list[Decision]:
        out: list[Decision] = []
        costs = space.at(query, self.pool.states)
        self.guard.observe(self._current, costs)
        for state, cost in costs.items():
            self._regret[state] = self._regret.get(state, 0.0) + costs[self._current] - cost
        kind = kind_of(space.stream.group_of(query).shape)
        self._remember(query, kind)
        signal = self.detector.observe(kind)
        if signal:
            self._regime(signal, space, query)
            out.append(self._decide("phase", _SIGNALS[signal]))
        since = self.detector.since
        for family, layout in self.scout.candidates(space, query, since, self.detector.mix):
            out += self._admit(space, query, family, layout)
        for layout, ahead in self.outlook.observe(space, query, since, self.scout.generators, self.scout.blocks):
            out += self._admit(space, query, "ahead", layout, ahead)
        wanted, reason = self._wish(space, query, since)
        allowed = self.guard.allowed(wanted)
        if allowed != self._current:
            if allowed != wanted:
                reason = "the plan has cost more than its guard allows; follow the guard"
            self._current = allowed
            self._regret = {}
            self.guard.moved()
            out.append(self._decide("move", reason))
        return out

    def _remember(self, query: int, kind: str) -> None:
        self.scout.observe(query)
        self.log.observe(query, kind)
        self._latest.append(query)
        del self._latest[:-_KEPT]

    def _regime(self, signal: str, space: StateSpace, query: int) -> None:
        if signal == "change":
            self.log.change(self.detector.since)
            self._regret = self._saved(space, self.pool.states, query)
            self.outlook.clear()
        else:
            self.log.undo()
        self.prospects.outdated()

    def _admit(
        self, space: StateSpace, query: int, family: str, layout: Layout, ahead: Workload | None = None
    ) -> list[Decision]:
        mix, sample = self.detector.mix(), self.scout.biased.items
        found = self.pool.admit(space, family, layout, mix, sample, query, self._current, ahead)
        if found is None:
            return []
        self.guard.add_state(found.state)
        self.prospects.outdated()
        self._regret |= self._saved(space, [found.state], query)
        out = [self._decide("admit", found.reason, found.state)]
        if found.evicted:
            self.scout.covered.pop(found.uncovered, None)
            self._forget(found.evicted)
            out.append(self._decide("evict", "as many states as allowed; least is lost without it", found.evicted))
        return out

    def _saved(self, space: StateSpace, states: list[str], query: int) -> dict[str, float]:
        """What states would have saved since the change."""
        back = slice(query + 1 - min(self.detector.since, _LOOK_BACK), query + 1)
        saved = space.costs(self._current, back).sum() - space.matrix(states, back).sum(axis=1)
        return dict(zip(states, saved.tolist(), strict=True))

    def _forget(self, state: str) -> None:
        self.guard.remove_state(state)
        self.prospects.forget(state)
        self._regret.pop(state, None)

    def _wish(self, space: StateSpace, query: int, since: int) -> tuple[str, str]:
        """The state that the planner would be in now, and why."""
        stay = self._current, ""
        if since < _SETTLE or len(self.pool.states) < 2 or (since > _HURRY and since % _SETTLE):
            return stay
        states = self.pool.states
        promise = self._promise(space, query, since)
        worth, means, later = promise.worth, promise.means, promise.later
        here, best = states.index(self._current), int(np.argmin(worth))
        gain = float(worth[here] - worth[best])
        if gain < (_DRIFTING if self.outlook and self._current != INITIAL else 1.0) * self.alpha:
            return stay
        regret = self._regret.get(states[best], 0.0)
        if self.outlook:
            regret = self._saved(space, [states[best]], query)[states[best]]
        if regret < _REGRET * self.alpha and later[here] - later[best] < _LATER * self.alpha:
            return stay
        if not self.outlook and self._can_wait(since, float(means[here] - means[best])):
            return stay
        return states[best], (
            f"it is expected to save {gain:.0f} scans over the next {promise.rest:.0f} queries and what follows them; "
            f"a recent query costs {means[best]:.3f} of a scan there and {means[here]:.3f} here"
        )

    def _can_wait(self, since: int, gain: float) -> bool:
        """Whether better candidates will come soon, and a move to one of them instead would cost less than two moves.

        Of one kind of query ten tell enough; of a mix, the first ones tell little of what a layout for it should be.
        """
        cheap = since < _RIPE and gain * (_RIPE - since) < _PATIENCE * self.alpha
        return cheap and len(self.detector.kinds()) != 1

    def _promise(self, space: StateSpace, query: int, since: int) -> Promise:
        return self.prospects.of(space, query, since, self.pool.states, self.outlook)

    def destination(self, query: int, space: StateSpace) -> str:
        """The best of all states: the price is the same for each. Where literals slide, it stays as it was decided."""
        since, states = self.detector.since, self.pool.states
        if since < _SETTLE or self.outlook or not self.guard.trusting:
            return self._current
        return states[int(np.argmin(self._promise(space, query, since).worth))]

    def _decide(self, kind: str, reason: str, state: str = "") -> Decision:
        counters = self.counters if kind == "move" else {}
        return Decision(kind, state or self._current, reason, self.phase, counters, self.log.seen)

    def place(self, state: str) -> None:
        if state not in self.pool.families:
            self.pool.families[state] = "recent"
            self.guard.add_state(state)
        self._current = state
        for other in self.pool.states:
            if other != state and other not in self.pool.layouts:  # nobody can make it again
                self.pool.remove(None, other)
                self._forget(other)
        self.prospects.outdated()

    def recent(self) -> list[int]:
        return self._latest[-mean_over(self.detector.since) :]

    def kept(self) -> set[int]:
        return {*self._latest, *self.scout.kept(), *self.log.kept()}

    def renumber(self, numbers: dict[int, int]) -> None:
        self._latest = [numbers[query] for query in self._latest]
        self.scout.renumber(numbers)
        self.log.renumber(numbers)
        self.prospects.renumbered()

    def to_json(self) -> dict[str, Any]:
        return {
            "policy": "planner",
            "pool": self.pool.to_json(),
            "detector": self.detector.to_json(),
            "log": self.log.to_json(),
            "scout": self.scout.to_json(),
            "outlook": self.outlook.to_json(),
            "guard": self.guard.to_json(),
            "current": self._current,
            "regret": dict(self._regret),
            "latest": list(self._latest),
        }

    def restore(self, document: dict[str, Any], alpha: float) -> None:
        """Go on from what `to_json` described; alpha may have changed since.

        Raises:
            StoreError: the document is not one of ours.
        """
        try:
            self.pool.restore(document["pool"])
            self.detector = ChangeDetector.from_json(document["detector"])
            self.log = RegimeLog.from_json(document["log"])
            self.prospects = Prospects(self.log, self.alpha)
            self.scout.restore(document["scout"])
            self.outlook.restore(document["outlook"])
            self.guard = Guard.from_json(document["guard"], alpha)
            self._current = str(document["current"])
            self._regret = {str(state): float(regret) for state, regret in document["regret"].items()}
            self._latest = [int(query) for query in document["latest"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StoreError(f"malformed state: the planner cannot be read ({error})") from error


_SIGNALS = {
    "change": "the workload has changed: most of the latest queries are of a kind that was rare",
    "undo": "the workload had not changed after all",
}
