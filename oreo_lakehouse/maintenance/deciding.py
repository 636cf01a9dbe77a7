"""From evidence to advice: wake the optimizer, tell it what changed meanwhile, sample the table, feed it queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from oreo_lakehouse.history.querybatch import at
from oreo_lakehouse.history.summary import shape
from oreo_lakehouse.layouts.skipping import service_costs
from oreo_lakehouse.maintenance.evidence import RECENT
from oreo_lakehouse.maintenance.progress import Progress, spark_share
from oreo_lakehouse.reorganizer.online import Advice, OnlineOptimizer

if TYPE_CHECKING:
    from oreo_lakehouse.config import Config
    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.layouts.skipping import Mode
    from oreo_lakehouse.maintenance.alpha import Alpha
    from oreo_lakehouse.maintenance.dossier import Dossier
    from oreo_lakehouse.maintenance.evidence import Evidence
    from oreo_lakehouse.maintenance.state import State

HOT = 5
"""Kinds of queries that an explanation names."""
MOST, LEAST = 20_000, 250
WORK = 2_000_000
"""Queries times blocks that a run decides by: candidates are built again and again, and that takes as long as there are
blocks. At most `MOST` queries and at least `LEAST` decide for a table or shard. Of a larger batch the latest half of
them are decided about one by one, the older ones in thinned-out order: what was asked long ago in one go matters for
which layouts are considered, not for when to move."""


@dataclass(frozen=True)
class Counsel:
    """The optimizer after a batch, what it says, and what it had to be told first."""

    optimizer: OnlineOptimizer
    advice: Advice
    notices: tuple[str, ...]


def take_counsel(
    dossier: Dossier,
    evidence: Evidence,
    state: State,
    config: Config,
    alpha: Alpha,
    progress: Progress,
    *,
    dry_run: bool,
) -> Counsel:
    """Ask the optimizer about the new queries.

    In shadow (`state.shadow` is set), the table is imagined to be where earlier shadow runs would have taken it.
    """
    settings, layout = replace(config.decide, alpha=alpha.value), config.layout
    if state.optimizer is None:
        optimizer = OnlineOptimizer(settings, layout, settings.seed)
    else:
        optimizer = OnlineOptimizer.from_json(state.optimizer, settings, layout)
    notices = _changed_columns(optimizer, evidence, state)
    deciding = thinned(len(evidence.queries), max(evidence.wanted_blocks, evidence.blocks_together))
    predicates = [query.predicate for query in at(evidence.queries, deciding)]
    if len(deciding) < len(evidence.queries):
        notices = (*notices, f"{len(evidence.queries):,} new queries at once: {len(deciding):,} of them decide")
    table = dossier.table
    columns = sorted(optimizer.columns(predicates) & evidence.schema.keys()) or list(evidence.schema)[:1]
    with spark_share(table.spark, progress, "sampling rows"):
        secret = {name.lower() for name in columns} & {name.lower() for name in config.history.redact}
        if secret or not layout.keep_sample:
            sample = table.sample(layout.sample_rows, settings.seed, columns)
            if not dry_run:  # one listing a run: rows that were kept before somebody switched it off must go
                dossier.samples.forget()
        else:
            keys = table.column_keys()
            known = {name: f"{keys.get(name, '')} {evidence.schema[name].value}" for name in columns}
            sample = dossier.samples.draw(
                table, evidence.blocks, layout.sample_rows, settings.seed, known, keep=not dry_run
            )
    progress("deciding", None)
    exact = {name: blocks for name in optimizer.states if (blocks := dossier.blocks.get(name)) is not None}
    current = state.shadow or evidence.current
    advice = optimizer.advise(
        predicates,
        sample,
        evidence.blocks,
        evidence.wanted_blocks,
        current,
        exact,
        table_state=evidence.current,
        weights=None if evidence.weights is None else evidence.weights[deciding],
    )
    return Counsel(optimizer, advice, notices)


def thinned(count: int, blocks: int) -> list[int]:
    """Positions of the queries that decide, of a batch of so many, where the layouts in question have so many blocks.

    >>> thinned(3, 40), len(thinned(1_000_000, 40)), thinned(1_000_000, 40)[-1], len(thinned(1_000_000, 1_000))
    ([0, 1, 2], 20000, 999999, 2000)
    """
    most = min(MOST, max(LEAST, WORK // max(1, blocks)))
    if count <= most:
        return list(range(count))
    older = np.linspace(0, count - most // 2 - 1, most - most // 2).astype(int)
    return [*older.tolist(), *range(count - most // 2, count)]


def _changed_columns(optimizer: OnlineOptimizer, evidence: Evidence, state: State) -> tuple[str, ...]:
    """Forget layouts by columns that are gone or of another kind now; a sentence for each such column."""
    now = {name: kind.value for name, kind in evidence.schema.items()}
    notices: list[str] = []
    for name in sorted({column for layout in optimizer.layouts.values() for column in layout.columns}):
        before = state.kinds.get(name)
        if name in now and before in (None, now[name]):
            continue
        how = "is gone (dropped or renamed)" if name not in now else f"changed from {before} to {now[name]}"
        count = optimizer.forget_column(name)
        notices.append(f"column {name} {how}: {count} known layouts by it are forgotten")
    return tuple(notices)


def hot_queries(evidence: Evidence, then: Blocks | None, mode: Mode) -> list[dict[str, Any]]:
    """The kinds of queries that weigh most in a decision, without their literals."""
    workload = evidence.recent()
    cost_now = service_costs(workload, evidence.blocks, mode)
    cost_then = None if then is None else service_costs(workload, then, mode)
    kinds: dict[str, list[int]] = {}
    for number, query in enumerate(evidence.queries[-RECENT:]):
        kinds.setdefault(shape(query.predicate), []).append(number)
    weight = cost_now if cost_then is None else np.abs(cost_now - cost_then)
    ordered = sorted(kinds.items(), key=lambda item: -float(weight[item[1]].sum()))
    return [
        {
            "shape": text,
            "queries": len(at),
            "cost_now": round(float(cost_now[at].mean()), 6),
            "cost_target": None if cost_then is None else round(float(cost_then[at].mean()), 6),
        }
        for text, at in ordered[:HOT]
    ]
