"""The tail: rows that lie in files which are not the layout's, folded into it by rewriting just those files.

Appends, UPDATE and MERGE, and foreign OPTIMIZE or rewrite_data_files runs leave such files. They are known by their
names: every file that we wrote has recorded facts. Folding costs alpha times the tail's share of the bytes. What the
tail costs the queries is counted as they come, and when that sum reaches the price, it is paid: so the two together
are at most twice what the best moment in hindsight would have cost (ski rental). Small files that earlier folds left in
the same blocks are merged in passing once there is more than one a block.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from oreo_lakehouse.layouts.skipping import Mode, might_match
from oreo_lakehouse.maintenance.moving import move_by_rewrite, recent_cost
from oreo_lakehouse.predicates.workload import Workload

if TYPE_CHECKING:
    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.maintenance.alpha import Alpha
    from oreo_lakehouse.maintenance.evidence import Evidence
    from oreo_lakehouse.maintenance.outcome import Outcome
    from oreo_lakehouse.maintenance.run import Run
    from oreo_lakehouse.maintenance.state import State

_SMALL = 0.25
"""A file of ours with less than this share of a block's rows is a piece that some fold left."""
_CHUNK = 256
"""Queries judged at a time."""


@dataclass(frozen=True)
class Tail:
    """Files that are not the layout's."""

    names: tuple[str, ...]
    rows: int
    bytes: int
    share: float
    """Of the table's bytes."""
    pieces: tuple[str, ...]
    """Small files of ours that are merged in passing; empty while there are few."""

    @property
    def all_names(self) -> tuple[str, ...]:
        return (*self.names, *self.pieces)


def tail_of(blocks: Blocks, ours: Collection[str], wanted_blocks: int) -> Tail | None:
    """What lies outside the layout; None if nothing does.

    Args:
        blocks: the table's present files.
        ours: names of the files that runs of ours wrote.
        wanted_blocks: how many blocks a layout has.
    """
    foreign = np.array([name not in ours for name in blocks.names], np.bool_)
    if not foreign.any():
        return None
    small = ~foreign & (blocks.rows < _SMALL * blocks.total_rows / max(1, wanted_blocks))
    pieces = small if small.sum() > wanted_blocks else np.zeros_like(small)
    size = int(blocks.sizes[foreign].sum())
    return Tail(
        names=tuple(np.array(blocks.names, object)[foreign]),
        rows=int(blocks.rows[foreign].sum()),
        bytes=size,
        share=size / max(1, blocks.total_bytes),
        pieces=tuple(np.array(blocks.names, object)[pieces]),
    )


def tail_cost(evidence: Evidence, tail: Tail, mode: Mode) -> float:
    """What the new queries paid for the tail's not being folded: scans beyond what the layout itself costs them."""
    blocks, outside = evidence.blocks, set(tail.names)
    inside = np.array([name not in outside for name in blocks.names], np.bool_)
    laid_out = int(blocks.rows[inside].sum())
    if laid_out == 0 or not evidence.queries:
        return 0.0
    total = 0.0
    for start in range(0, len(evidence.queries), _CHUNK):
        part = [query.predicate for query in evidence.queries[start : start + _CHUNK]]
        reads = might_match(Workload.of(part), blocks, mode) * blocks.rows
        lost = reads.sum(axis=1) / blocks.total_rows - reads[:, inside].sum(axis=1) / laid_out
        total += float((lost if evidence.weights is None else lost * evidence.weights[start : start + _CHUNK]).sum())
    return total


def fold(run: Run, tail: Tail, evidence: Evidence, state: State, alpha: Alpha, why: str) -> Outcome | None:
    """Rewrite the tail into the live layout; the run ends here. None if the layout's description is lost.

    Args:
        run: the run.
        tail: what to fold.
        evidence: the table as it is.
        state: what to save at the end.
        alpha: the price of rewriting the whole table.
        why: the reason, for people.
    """
    assert evidence.live is not None
    dossier, config = run.dossier, run.config
    layout = dossier.layout(evidence.live.layout_id)
    if layout is None or any(column not in evidence.schema for column in layout.columns):
        return None
    chosen = _affordable(tail, evidence.blocks, run.options.budget)
    left = run.options.seconds_left()
    late = left is not None and tail.bytes / (run.rewrite_rate() or float("inf")) > left
    if late or not chosen:
        reason = f"{why}, but --{'max-minutes' if late else 'budget'} leaves no room for it"
        run.record.decided(evidence, "stay", reason)
        run.record.write(state)
        return run.outcome(evidence, "stay", reason)
    plan = dossier.table.plan(layout, config.bid_column, chosen)
    run.notices += plan.warnings
    more: dict[str, Any] = {"alpha": alpha.value, "alpha_source": alpha.source, "shadow": run.options.shadow}
    run.record.decided(evidence, "fold", why, more)
    if run.reads_only:
        run.record.write(state)
        return replace(run.outcome(evidence, "fold", why, plan), alpha=str(alpha))
    before = recent_cost(evidence, evidence.blocks, config.decide.skipping)
    done = move_by_rewrite(dossier, plan, evidence, run.progress)
    receipt = {
        **done.facts,
        "alpha": round(alpha.value * plan.bytes / max(1, evidence.blocks.total_bytes), 6),
        "cost_before": before,
        "cost_realised": recent_cost(evidence, done.after, config.decide.skipping),
        "queries_before": state.queries,
    }
    run.record.add("commit", [receipt])
    run.record.write(replace(state, tail_regret=0.0), done.run_id)
    dossier.pending.remove(done.run_id)
    if config.layout.keep_sample:
        dossier.samples.follow(evidence.blocks, done.after)
    return replace(
        run.outcome(evidence, "fold", why, done.plan),
        version_after=done.version,
        files_after=len(done.after),
        bytes_rewritten=int(done.facts["bytes"]),
        alpha=str(alpha),
    )


def _affordable(tail: Tail, blocks: Blocks, budget: int | None) -> tuple[str, ...]:
    """As many of the files as the budget allows, in the table's order."""
    if budget is None:
        return tail.all_names
    sizes = dict(zip(blocks.names, blocks.sizes.tolist(), strict=True))
    spent = np.cumsum([sizes[name] for name in tail.all_names])
    return tuple(name for name, sum_ in zip(tail.all_names, spent, strict=True) if sum_ <= budget)
