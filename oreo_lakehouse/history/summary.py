"""What a table's history holds, for people: `oreo history TABLE`."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.predicates.columns import columns_of
from oreo_lakehouse.predicates.tree import (
    And,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Like,
    Or,
    Predicate,
)

TOP = 10
PERIODS = 12


@dataclass(frozen=True)
class Template:
    """Queries that differ only in their literals."""

    shape: str
    count: int
    over_time: tuple[int, ...]
    """How many in each of equal periods between the first and the last record."""


@dataclass(frozen=True)
class HistorySummary:
    """What a table's history holds."""

    scans: int
    queries: int
    first: str
    """Time of the oldest record, ISO, UTC; "" if there is none."""
    last: str
    sources: dict[str, int]
    exactness: dict[str, int]
    statuses: dict[str, int]
    columns: dict[str, int]
    """The columns that most scans filter by."""
    reasons: dict[str, int]
    """Why scans were not understood exactly."""
    templates: tuple[Template, ...]
    dropped: int
    """Scans that live capture, of any application and table, saw and could not keep."""
    unreadable: tuple[str, ...]
    """Files that were set aside."""

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def summarise(history: HistoryStore) -> HistorySummary:
    """Look at all records of a table."""
    records, _ = history.read_since({})
    shapes = [shape(record.predicate) for record in records]
    return HistorySummary(
        scans=len(records),
        queries=len({record.query_id for record in records}),
        first=_iso(records[0]) if records else "",
        last=_iso(records[-1]) if records else "",
        sources=dict(Counter(record.source for record in records).most_common()),
        exactness=dict(Counter(record.exactness.value for record in records).most_common()),
        statuses=dict(Counter(record.status for record in records).most_common()),
        columns=dict(Counter(c for r in records for c in sorted(columns_of(r.predicate))).most_common(TOP)),
        reasons=dict(Counter(reason for r in records for reason in r.reasons).most_common(TOP)),
        templates=tuple(
            Template(text, count, _over_time(records, shapes, text)) for text, count in Counter(shapes).most_common(TOP)
        ),
        dropped=_dropped(history),
        unreadable=tuple(history.set_aside()),
    )


def shape(predicate: Predicate) -> str:
    """The predicate as people read it, without its literals.

    >>> from oreo_lakehouse.predicates.tree import Op
    >>> from oreo_lakehouse.predicates.values import Kind
    >>> shape(And((Compare("day", Op.GE, Kind.DATE, 1), Or((IsNull("a"), In("b", Kind.INTEGER, (1, 2)))))))
    'day >= ? AND (a IS NULL OR b IN (?))'
    """
    match predicate:
        case Constant(value):
            return "everything" if value else "nothing"
        case Compare(column, op):
            return f"{column} {op.value} ?"
        case In(column, negated=negated):
            return f"{column} {'NOT ' * negated}IN (?)"
        case IsNull(column, negated):
            return f"{column} IS {'NOT ' * negated}NULL"
        case Like(column, negated=negated):
            return f"{column} {'NOT ' * negated}LIKE ?"
        case CompareColumns(left, op, right):
            return f"{left} {op.value} {right}"
        case And(children) | Or(children):
            parts = [f"({shape(c)})" if isinstance(c, And | Or) else shape(c) for c in children]
            return (" AND " if isinstance(predicate, And) else " OR ").join(parts)
        case _:
            raise TypeError(f"{type(predicate).__name__} is not part of a stored predicate; relax it first")


def _over_time(records: list[QueryRecord], shapes: list[str], text: str) -> tuple[int, ...]:
    start, end = records[0].time_us, records[-1].time_us + 1
    counts = [0] * PERIODS
    for record, own in zip(records, shapes, strict=True):
        if own == text:
            counts[(record.time_us - start) * PERIODS // (end - start)] += 1
    return tuple(counts)


def _dropped(history: HistoryStore) -> int:
    """Each capture writes its own count, ever larger, in newer files: the last one of each counts."""
    last: dict[str, int] = {}
    for entry in history.store.entries("capture"):
        try:
            found = json.loads(history.store.read(f"capture/{entry.name}") or b"{}")
            last[entry.name.split("-")[1]] = int(found["dropped"])
        except (ValueError, KeyError, IndexError, TypeError):
            continue
    return sum(last.values())


def _iso(record: QueryRecord) -> str:
    return datetime.fromtimestamp(record.time_us / 1e6, UTC).isoformat(timespec="seconds")
