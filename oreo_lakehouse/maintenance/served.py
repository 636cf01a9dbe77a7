"""What queries really cost: under the layout that they met, under the one before it, and had we never come.

One line of the ledger for each run's new queries, in at most a few hundred buckets, so that the bill survives the
history's retention. What the layouts that were considered would have cost is kept as one sum each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from oreo_lakehouse.history.querybatch import at, workload_of
from oreo_lakehouse.layouts.skipping import Costs, Mode, service_costs
from oreo_lakehouse.maintenance.weighing import BYTES

if TYPE_CHECKING:
    from oreo_lakehouse.history.record import QueryRecord
    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.predicates.workload import Weights

BUCKETS = 200
DIGITS = 6
_CELLS = 1 << 30
"""Comparisons of a query with a file that a run's lines may cost; beyond, a bucket is projected from some of its
queries."""


def served_line(
    queries: Sequence[QueryRecord],
    layout: str,
    mode: Mode,
    *,
    now: Blocks,
    before: Blocks | None,
    untouched: Blocks | None,
    states: Mapping[str, float],
    share: float = 1.0,
    weights: Weights | None = None,
) -> dict[str, Any]:
    """The facts of a `served` line.

    Args:
        queries: the run's new ones, oldest first.
        layout: the id of the layout that they met.
        mode: what skips blocks.
        now: the metadata of the files that they met.
        before: of those before the live layout; None if there is no layout of ours.
        untouched: of those before our first layout; None if there is none yet.
        states: what the layouts under consideration would have cost in all.
        share: of the work that a run may do for such lines; a shard's is a part of it.
        weights: of the queries, where bytes count and not rows.
    """
    every = max(1, -(-len(queries) // BUCKETS))
    files = sum(len(blocks) for blocks in (now, before, untouched) if blocks is not None)
    step = min(max(1, int(len(queries) * files / (share * _CELLS))), every)
    chosen = range(0, len(queries), step)
    workload = workload_of(at(queries, chosen)).weighted(None if weights is None else weights[chosen])
    buckets = np.array([number // every for number in chosen])
    sizes = np.bincount(np.arange(len(queries)) // every)

    def sums(costs: Costs) -> list[float]:
        means = np.bincount(buckets, costs) / np.maximum(1, np.bincount(buckets))
        return np.round(means * sizes, DIGITS).tolist()

    actual = service_costs(workload, now, mode)
    weighed = {} if weights is None else {"weigh": BYTES, "weight": round(float(weights.sum()), DIGITS)}
    return {
        **weighed,
        "queries": len(queries),
        "first": _iso(queries[0]),
        "last": _iso(queries[-1]),
        "layout": layout,
        "every": every,
        "actual": sums(actual),
        "never": sums(actual if untouched is None else service_costs(workload, untouched, mode)),
        "previous": None if before is None else sums(service_costs(workload, before, mode)),
        "states": {state: round(cost, DIGITS) for state, cost in states.items()},
    }


def _iso(query: QueryRecord) -> str:
    return datetime.fromtimestamp(query.time_us / 1e6, tz=UTC).isoformat()
