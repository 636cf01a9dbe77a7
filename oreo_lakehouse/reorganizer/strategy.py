"""A strategy sees a stream of queries and says, after each, which state the table should be in.

Two exist: the paper's (`paper.py`: D-UMTS and the Layout Manager) and the planner (`planner.py`), the default.
"""

from __future__ import annotations

from typing import Any, Protocol

from oreo_lakehouse.layouts.layout import Layout
from oreo_lakehouse.reorganizer.decision import Decision
from oreo_lakehouse.reorganizer.states import StateSpace


class Strategy(Protocol):
    """Owns the states' layouts and everything that is remembered between two queries."""

    @property
    def layouts(self) -> dict[str, Layout]:
        """Of all states but the initial one."""
        ...

    @property
    def current(self) -> str:
        """The state it wants the table to be in."""
        ...

    @property
    def states(self) -> list[str]: ...

    @property
    def phase(self) -> int: ...

    @property
    def counters(self) -> dict[str, float]: ...

    @property
    def regret(self) -> dict[str, float]:
        """What each state would have saved since the workload changed or the table moved; {} where nobody counts."""
        ...

    @property
    def bound(self) -> dict[str, float] | None:
        """What the decisions have cost, query by query, their comparator, and the limit proven of them, if any is."""
        ...

    def aim_at(self, blocks: int) -> None:
        """New layouts should have this many blocks."""
        ...

    def step(self, query: int, space: StateSpace) -> list[Decision]:
        """Serve one query; what was decided, the answer to the query last."""
        ...

    def destination(self, query: int, space: StateSpace) -> str:
        """The state to build if the table moves after this query, which need not be the one that a batch ended in."""
        ...

    def place(self, state: str) -> None:
        """The table is in this state, whatever was decided."""
        ...

    def recent(self) -> list[int]:
        """Positions in the stream of the queries that the present costs are taken over."""
        ...

    def kept(self) -> set[int]:
        """Positions in the stream that must be remembered."""
        ...

    def renumber(self, numbers: dict[int, int]) -> None:
        """The stream was cut to what is kept; old positions to new ones."""
        ...

    def to_json(self) -> dict[str, Any]: ...

    def restore(self, document: dict[str, Any], alpha: float) -> None:
        """Go on from what `to_json` described; alpha may have changed since."""
        ...
