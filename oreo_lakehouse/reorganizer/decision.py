"""What a reorganizer answers after each query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Decision:
    """The state to be in before the next query, and why.

    `kind` is `stay` or `move` for an answer to a query, `phase` when a new phase began without a move, `admit` or
    `evict` when the state space changed.
    """

    kind: str
    state: str
    reason: str
    phase: int
    counters: Mapping[str, float]
    query: int = 0
    """How many queries had been seen."""

    @property
    def moved(self) -> bool:
        return self.kind == "move"

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "state": self.state,
            "reason": self.reason,
            "phase": self.phase,
            "counters": dict(self.counters),
            "query": self.query,
        }
