"""What a table's history holds, for people: `oreo history TABLE`."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from oreo_lakehouse.history.querybatch import QueryBatch
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
    batch, _ = history.read_since({})
    often = np.bincount(batch.codes, minlength=len(batch.templates)).tolist()
    shapes, columns = Counter[str](), Counter[str]()
    for template, count in zip(batch.templates, often, strict=True):
        shapes[shape(template.example)] += count
        columns.update(dict.fromkeys(sorted(columns_of(template.example)), count))
    reasons = batch.table.column("reasons").combine_chunks().flatten()
    return HistorySummary(
        scans=len(batch),
        queries=len(batch.table.column("query_id").unique()),
        first=_iso(batch.times[0]) if batch else "",
        last=_iso(batch.times[-1]) if batch else "",
        sources=_counts(batch.table.column("source")),
        exactness=_counts(batch.table.column("exactness")),
        statuses=_counts(batch.table.column("status")),
        columns=dict(columns.most_common(TOP)),
        reasons=dict(list(_counts(reasons).items())[:TOP]),
        templates=tuple(Template(text, count, _over_time(batch, text)) for text, count in shapes.most_common(TOP)),
        dropped=_dropped(history),
        unreadable=tuple(history.set_aside()),
    )


def _counts(column: pa.ChunkedArray | pa.Array) -> dict[str, int]:
    """How often each text occurs, the most frequent first."""
    found = [(item["values"], item["counts"]) for item in column.value_counts().to_pylist()]
    return dict(sorted(found, key=lambda pair: -pair[1]))


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


def _over_time(batch: QueryBatch, text: str) -> tuple[int, ...]:
    """How many queries of a shape fall in each of equal periods."""
    start, end = int(batch.times[0]), int(batch.times[-1]) + 1
    own = np.array([shape(template.example) == text for template in batch.templates], bool)[batch.codes]
    periods = (batch.times[own] - start) / (end - start) * PERIODS
    return tuple(np.bincount(np.minimum(periods.astype(np.int64), PERIODS - 1), minlength=PERIODS).tolist())


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


def _iso(time_us: int) -> str:
    return datetime.fromtimestamp(int(time_us) / 1e6, UTC).isoformat(timespec="seconds")
