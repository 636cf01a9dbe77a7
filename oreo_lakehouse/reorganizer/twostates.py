"""Two states with different prices there and back: the asymmetric case of the paper's technical report.

Such as "keep a second copy" (dear to make, cheap to drop). With two states no randomness is needed: stay until the
other state would have been cheaper by the price of a round trip, counted from the moment that was best for this one,
then move. This is Bruno and Chaudhuri's Online-SI (ICDE 2007) with both prices free. It pays at most three times the
best schedule in hindsight, plus two round trips: over a cycle of two moves each state has saved a round trip on the
other, so any schedule pays that much or a round trip itself, while this one pays one round trip for moving and at most
two more for waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.reorganizer.decision import Decision


class TwoStates:
    """Which of two states to be in.

    Args:
        first: the state that the table is in.
        second: the other one.
        there: the price of moving from first to second.
        back: the price of moving from second to first.

    >>> reorganizer = TwoStates("plain", "copied", there=3.0, back=0.0)
    >>> [reorganizer.observe({"plain": 1.0, "copied": 0.0}).state for _ in range(3)]
    ['plain', 'plain', 'copied']
    """

    def __init__(self, first: str, second: str, there: float, back: float) -> None:
        self.first, self.second, self.there, self.back = first, second, there, back
        self.current = first
        self.queries = 0
        self.excess = 0.0
        """What the current state cost more than the other, since the moment that was best for the current one."""

    def observe(self, costs: Mapping[str, float]) -> Decision:
        """A query was served at these costs."""
        self.queries += 1
        other = self.second if self.current == self.first else self.first
        self.excess = max(0.0, self.excess + costs[self.current] - costs[other])
        if self.excess < self.there + self.back:
            return Decision("stay", self.current, "a round trip has not paid yet", 1, self._counters(), self.queries)
        left, self.current, self.excess = self.current, other, 0.0
        reason = f"left {left}: it has cost a round trip more"
        return Decision("move", self.current, reason, 1, self._counters(), self.queries)

    def _counters(self) -> dict[str, float]:
        return {self.current: self.excess}

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> TwoStates:
        """The reorganizer that `to_json` described.

        Raises:
            StoreError: the document is not one of ours.
        """
        try:
            states = str(document["first"]), str(document["second"])
            out = cls(*states, float(document["there"]), float(document["back"]))
            out.current, out.queries = str(document["current"]), int(document["queries"])
            out.excess = float(document["excess"])
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"malformed state: two states cannot be read ({error})") from error
        return out
