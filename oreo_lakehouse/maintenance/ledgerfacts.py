"""Doors for what a ledger's line says: of another kind than expected, or beyond all measure, it says nothing.

A ledger outlives releases, and its files lie where others may write: whoever reads a fact asks here what it is worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np
import numpy.typing as npt

_MOST = 1e15
"""No query, row, byte or scan was ever counted beyond it, and sums and ratios of what is below stay finite."""
_YEARS = range(1971, 9000)
"""Of a moment that days may be added to and taken from."""


def number(value: Any) -> float | None:
    """A fact as a number.

    >>> number(3), number("3"), number(True), number(float("inf"))
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= _MOST else None  # which NaN is not either


def whole(value: Any) -> int | None:
    """A fact as a whole number, as large as Iceberg's ids of snapshots are.

    >>> whole(7314341406455990983), whole(1 << 200), whole(1.0)
    (7314341406455990983, None, None)
    """
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def count(value: Any) -> int | None:
    """A fact that says how many of something there are."""
    return value if isinstance(value, int) and number(value) is not None and value >= 0 else None


def mapping(value: Any) -> Mapping[str, Any]:
    """A fact with names of its own; {} if it is none."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def numbers(value: Any) -> dict[str, float]:
    """The numbers in a fact with names of its own."""
    return {name: found for name, one in mapping(value).items() if (found := number(one)) is not None}


def texts(value: Any) -> dict[str, str]:
    """A fact with names of its own, as words for people."""
    return {name: str(one) for name, one in mapping(value).items()}


def mappings(value: Any) -> Sequence[Mapping[str, Any]]:
    """A fact that lists such facts."""
    return [mapping(one) for one in cast("list[Any]", value)] if isinstance(value, list) else []


def costs(value: Any) -> npt.NDArray[np.float64] | None:
    """A fact that lists numbers, at least one."""
    try:
        found = np.array(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found.ndim == 1 and len(found) and bool((np.abs(found) <= _MOST).all()) else None


def moment(value: Any) -> datetime | None:
    """A fact as a moment, in UTC where it names no zone."""
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    if found.year not in _YEARS:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
