"""A move is wanted: find out what it is really worth and whether it may be made; make it and draw up the receipt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from oreo_lakehouse.errors import RollbackError
from oreo_lakehouse.maintenance.forecast import forecast
from oreo_lakehouse.maintenance.holding import held_back, out_of_time
from oreo_lakehouse.maintenance.look import Look, look
from oreo_lakehouse.maintenance.moving import (
    Moved,
    move_by_rewrite,
    recent_cost,
    return_by_metadata,
    returnable_commit,
)
from oreo_lakehouse.maintenance.progress import spark_share
from oreo_lakehouse.maintenance.weighing import share_of

if TYPE_CHECKING:
    from oreo_lakehouse.layouts.layout import Layout
    from oreo_lakehouse.maintenance.alpha import Alpha
    from oreo_lakehouse.maintenance.deciding import Counsel
    from oreo_lakehouse.maintenance.evidence import Evidence
    from oreo_lakehouse.maintenance.outcome import Outcome
    from oreo_lakehouse.maintenance.run import Run
    from oreo_lakehouse.maintenance.state import State
    from oreo_lakehouse.tables.contract import RewritePlan

_SHRUNK = 0.5
"""A move whose gain a look at all rows cuts below this share of what the sample promised is not made."""


def leap(run: Run, target: Layout, evidence: Evidence, state: State, counsel: Counsel, alpha: Alpha) -> Outcome:
    """Take the table to `target`, unless something speaks against it; the run ends here either way."""
    decide, advice, dossier = run.config.decide, counsel.advice, run.dossier
    plan = dossier.table.plan(target, run.config.bid_column)
    run.notices += plan.warnings
    gain = advice.current_cost - advice.target_cost
    held = held_back(evidence, plan, gain / (advice.weight or 1.0), decide.min_gain, run.options, run.rewrite_rate())
    seen, expected = None, advice.target_cost
    looked: dict[str, float] | None = None
    if held is None and not run.options.shadow:
        seen = _look(run, target, evidence, plan)
        expected = recent_cost(evidence, seen.blocks, decide.skipping)
        looked = {"cost_promised": advice.target_cost, "cost_exact": expected}
        if not run.options.dry_run:
            dossier.blocks.keep(target.id, seen.blocks)
        if advice.current_cost - expected < max(decide.min_gain * advice.weight, _SHRUNK * gain):
            held = (
                f"a look at all rows shows that a recent query would read {expected:.1%} of the table in "
                f"{target.describe()}, not {advice.target_cost:.1%} as the sample promised: not worth a rewrite"
            )
    share = None if run.column_bytes is None or seen is None else share_of(seen.columns, run.column_bytes)
    if held is None and seen is not None and run.rewrite_rate() is None:  # alpha says what a first rewrite may take
        held = out_of_time(plan, alpha.value * seen.scan_seconds / (share or 1.0), run.options)
    if held is not None:
        return run.stay(evidence, state, counsel, alpha, held, held=held, looked=looked)
    if run.options.shadow:
        return _imagine(run, plan, evidence, state, counsel, alpha)
    if run.options.dry_run:
        outlook = forecast(evidence, plan, alpha.value, advice.current_cost, expected)
        return replace(run.outcome(evidence, "move", advice.reason, plan), forecast=outlook, alpha=str(alpha))
    done = _go(run, plan, evidence)
    run.progress("recording", None)
    run.record.advised(evidence, "move", advice.reason, counsel, alpha, looked=looked)
    price, scan = alpha.value, seen.scan_seconds if seen else None
    if done.facts["action"] == "return" and scan:
        price = done.facts["seconds"] / scan * (1.0 if share is None else share)
    receipt = {
        "layout": target.describe(),
        **done.facts,
        "scan_seconds": None if scan is None else round(scan, 3),
        "scan_share": share,
        "alpha": round(price, 3),
        "cost_before": advice.current_cost,
        "cost_predicted": advice.target_cost,
        "cost_exact": looked["cost_exact"] if looked else None,
        "cost_realised": recent_cost(evidence, done.after, decide.skipping),
        "queries_before": state.queries,
    }
    run.record.add("commit", [receipt])
    counsel.optimizer.placed(target.id)
    run.record.write(replace(state, optimizer=counsel.optimizer.to_json(), tail_regret=0.0), done.run_id)
    dossier.pending.remove(done.run_id)
    if run.config.layout.keep_sample:
        dossier.samples.follow(evidence.blocks, done.after)
    states = counsel.optimizer.states
    run.notices += dossier.tidy(done.run_id, done.after, states, run.config.layout.returnable_days)
    return replace(
        run.outcome(evidence, "move", advice.reason, done.plan or plan),
        version_after=done.version,
        files_after=len(done.after),
        bytes_rewritten=int(done.facts["bytes"]),
        alpha=str(alpha),
    )


def _look(run: Run, target: Layout, evidence: Evidence, plan: RewritePlan) -> Look:
    files = evidence.blocks.columns
    constant = [
        name for name in plan.partition_columns if name in files and (files[name].lower == files[name].upper).all()
    ]
    predicates = [query.predicate for query in evidence.queries]
    with spark_share(run.dossier.table.spark, run.progress, "looking at all rows before the leap"):
        only = evidence.blocks.names if run.dossier.shard else None
        return look(run.dossier.table, target, predicates, constant, run.config.decide.skipping, only)


def _go(run: Run, plan: RewritePlan, evidence: Evidence) -> Moved:
    earlier = returnable_commit(run.dossier, plan.layout.id)
    if earlier is not None:
        try:
            return return_by_metadata(run.dossier, earlier, evidence.blocks, run.progress)
        except RollbackError:  # something changed since we asked: then by a rewrite
            pass
    return move_by_rewrite(run.dossier, plan, evidence, run.progress)


def _imagine(run: Run, plan: RewritePlan, evidence: Evidence, state: State, counsel: Counsel, alpha: Alpha) -> Outcome:
    """A shadow run: from now on the table is imagined to be in the layout."""
    reason = f"{counsel.advice.reason} (shadow: nothing was written)"
    run.record.advised(evidence, "move", reason, counsel, alpha, shadow=True, held="shadow")
    run.record.write(replace(state, optimizer=counsel.optimizer.to_json(), shadow=plan.layout.id))
    return replace(run.outcome(evidence, "move", reason, plan), alpha=str(alpha))
