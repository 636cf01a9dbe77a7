"""A telemetry table (a log of ingestion jobs) and dashboards that look at its last hours, weeks or months.

Stands for the paper's third workload, which is not public: range predicates on the arrival time, from a few hours to a
few months, and filters on the collector's name. "Now" slides over half a year while the queries run.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from oreo_lakehouse.predicates.tree import And, Compare, Op, Predicate
from oreo_lakehouse.predicates.values import Kind

_START = 1_700_000_000
_DAYS = 180
_DAY = 86_400
_COLLECTORS = 200
_STATUS = ("ok", "retried", "late", "failed")


def rows(count: int, seed: int = 1) -> pa.Table:
    """`count` log lines in the order of their job ids, which is not that of their arrival."""
    random = np.random.default_rng(seed)
    arrival = _START * 1_000_000 + random.integers(0, _DAYS * _DAY * 1_000_000, count)
    weights = 1 / np.arange(1, _COLLECTORS + 1) ** 0.8
    collector = random.choice(_COLLECTORS, count, p=weights / weights.sum())
    return pa.table(
        {
            "job_id": pa.array(np.arange(count)),
            "arrival_time": pa.array(arrival, pa.timestamp("us", "UTC")),
            "collector": pa.array([f"collector-{number:03d}" for number in collector]),
            "status": pa.array(random.choice(_STATUS, count, p=[0.9, 0.05, 0.03, 0.02])),
            "bytes": pa.array(random.lognormal(12, 2, count)),
            "duration_ms": pa.array(random.integers(1, 100_000, count)),
        }
    )


def queries(count: int, seed: int, date_only: bool = False) -> list[Predicate]:
    """`count` dashboard queries; `date_only` leaves only short looks at the latest data."""
    random = np.random.default_rng(seed)
    out: list[Predicate] = []
    for number in range(count):
        now = _START + int((0.25 + 0.75 * number / count) * _DAYS * _DAY)
        kind = random.random()
        days = float(random.uniform(0.1, 2)) if date_only or kind < 0.5 else float(np.exp(random.uniform(0, 4.5)))
        after = Compare("arrival_time", Op.GE, Kind.TIMESTAMP, (now - int(days * _DAY)) * 1_000_000)
        until = Compare("arrival_time", Op.LT, Kind.TIMESTAMP, now * 1_000_000)
        parts: list[Predicate] = [after, until]
        if not date_only and kind > 0.35:
            name = f"collector-{min(int(random.exponential(25)), _COLLECTORS - 1):03d}"
            parts.append(Compare("collector", Op.EQ, Kind.STRING, name))
        if not date_only and kind > 0.85:
            parts.append(Compare("status", Op.EQ, Kind.STRING, "failed"))
        out.append(And(tuple(parts)))
    return out
