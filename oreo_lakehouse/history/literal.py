"""What a constant of SQL means: a typed value, or the bounds within which it lies, or the reason why we cannot say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from oreo_lakehouse.predicates.values import Kind, Value


class NotUnderstood(Exception):  # noqa: N818 - not an error: it turns one condition into `Unknown(reason)`
    """A part of a query whose meaning we are not sure of; the text is the reason that records carry."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A typed constant between `low` and `high` (equal where it is certain); without a kind it is NULL.

    A wall-clock time whose zone is not known and the moment of `current_timestamp` are known only within bounds.
    Comparisons with such a literal are relaxed towards the safe side.
    """

    kind: Kind | None
    low: Value = 0
    high: Value = 0
    doubt: str = ""
    """Why the ends differ."""

    def shifted(self, move: Callable[[Any], Any], kind: Kind | None = None) -> Literal:
        """Both ends moved."""
        return replace(self, low=move(self.low), high=move(self.high), kind=kind or self.kind)


NULL = Literal(None)


def certain(kind: Kind, value: Value) -> Literal:
    """A literal that is known to be `value`."""
    return Literal(kind, value, value)


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time by its calendar parts."""

    months: int = 0
    days: int = 0
    micros: int = 0

    def __mul__(self, factor: int) -> Interval:
        return Interval(self.months * factor, self.days * factor, self.micros * factor)
