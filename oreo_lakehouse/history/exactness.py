"""How well a scan's predicate was understood."""

from __future__ import annotations

from enum import StrEnum

from oreo_lakehouse.predicates.relax import relax
from oreo_lakehouse.predicates.tree import TRUE, Predicate

FOREIGN = "a condition on another table"
"""The reason of what another table's columns decide. Leaving it out loses nothing of this table's own predicate."""


class Exactness(StrEnum):
    """How the stored predicate relates to the scan's real one. It is always implied by it."""

    EXACT = "exact"
    """The same rows."""
    RELAXED = "relaxed"
    """Some condition was not understood and left out; the reasons say which."""
    UNKNOWN = "unknown"
    """Nothing was understood: the predicate is TRUE although the query had one."""


def stored(parsed: Predicate) -> tuple[Predicate, Exactness, tuple[str, ...]]:
    """The stored form of a parsed predicate, how exact it is, and why it is not."""
    predicate, reasons = relax(parsed)
    lost = tuple(reason for reason in reasons if reason != FOREIGN)
    if not lost:
        return predicate, Exactness.EXACT, ()
    return predicate, Exactness.UNKNOWN if predicate == TRUE else Exactness.RELAXED, lost
