"""The queries of the last days, bounded, for looking at how they fare on the files as they are."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from oreo_lakehouse.maintenance.pruned import PruningEffect, pruning_effect
from oreo_lakehouse.predicates.columns import columns_of
from oreo_lakehouse.predicates.workload import Workload

if TYPE_CHECKING:
    from oreo_lakehouse.history.store import HistoryStore

DAYS = 7
MOST = 2_000
"""Queries that are looked at, evenly spread over the days: more would not change a share."""
_TOP = 5


@dataclass(frozen=True)
class Recent:
    """Queries of the days that end with the newest one."""

    queries: int
    since: datetime
    until: datetime
    workload: Workload
    columns: tuple[str, ...]
    """Those that most of them filter by, at most five."""
    pruning: PruningEffect | None
    """What pruning did for them; None where it was not on."""


def recent_queries(history: HistoryStore, total_rows: int, days: int = DAYS, most: int = MOST) -> Recent | None:
    """The last days of the history of a table of so many rows, up to its newest query; None if it is empty."""
    names = [entry.name for entry in history.store.entries(f"{history.folder}/days")]
    known = [day for name in names if (day := _day(name)) is not None]
    since = ""
    if known:  # a day file's name begins with its day; those that are too old for sure need not be opened
        since = (max(known) - timedelta(days=days + 1)).strftime("%Y-%m-%d")
    records, _ = history.read_since({"writers": {}, "days": [name for name in names if name[:10] < since]})
    if not len(records):
        return None
    until = records[len(records) - 1].time_us
    start = bisect_left(range(len(records)), until - days * 86_400_000_000, key=lambda i: records[i].time_us)
    count = len(records) - start
    step = max(1, -(-count // most))
    chosen = [records[i].predicate for i in range(start, len(records), step)]
    asked = Counter(column for predicate in chosen for column in sorted(columns_of(predicate)))
    return Recent(
        queries=count,
        since=_time(records[start].time_us),
        until=_time(until),
        workload=Workload.of(chosen),
        columns=tuple(column for column, _ in asked.most_common(_TOP)),
        pruning=pruning_effect(records[start:], total_rows),
    )


def _day(name: str) -> datetime | None:
    try:
        return max(datetime.fromisoformat(name[:10]), datetime(1970, 1, 1))
    except ValueError:
        return None


def _time(time_us: int) -> datetime:
    return datetime.fromtimestamp(time_us / 1e6, UTC)
