"""The middle of a run, for a table or a shard of it: take counsel about the new queries, then leap, fold or stay."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.maintenance.deciding import take_counsel
from oreo_lakehouse.maintenance.evidence import Evidence, obstacle
from oreo_lakehouse.maintenance.folding import Tail, fold, tail_cost, tail_of
from oreo_lakehouse.maintenance.leap import leap
from oreo_lakehouse.maintenance.moving import returnable_commit
from oreo_lakehouse.maintenance.weighing import weigh_notice

if TYPE_CHECKING:
    from oreo_lakehouse.maintenance.alpha import Alpha
    from oreo_lakehouse.maintenance.outcome import Outcome
    from oreo_lakehouse.maintenance.run import Run
    from oreo_lakehouse.maintenance.state import State


def judge(run: Run, state: State, evidence: Evidence, cursor: dict[str, Any], alpha: Alpha) -> Outcome:
    """Decide, and do it.

    Args:
        run: the run.
        state: what was remembered.
        evidence: what there is to decide by.
        cursor: where the history was read up to.
        alpha: the price of a rewrite.
    """
    dossier, config, queries = run.dossier, run.config, evidence.queries
    weigh = config.decide.weigh
    if state.number and state.weigh != weigh:
        run.notices.append(weigh_notice(weigh, state.weigh))
        state = replace(state, optimizer=None, shadow=None, tail_regret=0.0)
    state = replace(state, weigh=weigh)
    tail = None
    if evidence.live is not None:
        tail = tail_of(evidence.blocks, dossier.facts.names(), evidence.wanted_blocks)
    undone = _foreign_rewrites(run, evidence) if run.options.after_optimize else ""
    if tail is not None and undone:
        repaired = fold(run, tail, evidence, replace(state, number=state.number + 1), alpha, undone)
        if repaired is not None:  # the new queries wait for the next run
            return repaired
    nothing = obstacle(evidence, dossier.table.identity.name, state.queries, config.layout.target_file_size)
    if nothing is not None:  # queries wait for a run that can decide about them
        run.record.decided(evidence, "stay", nothing)
        run.record.write(None)
        return run.outcome(evidence, "stay", nothing)
    counsel = take_counsel(dossier, evidence, state, config, alpha, run.progress, dry_run=run.options.dry_run)
    run.notices += counsel.notices
    run.record.add("event", (decision.to_json() for decision in counsel.advice.decisions))
    run.record.served(evidence, counsel)
    regret = state.tail_regret + (tail_cost(evidence, tail, config.decide.skipping) if tail else 0.0)
    after = replace(
        state,
        number=state.number + 1,
        cursor=cursor,
        queries=state.queries + len(queries),
        kinds={name: kind.value for name, kind in evidence.schema.items()},
        tail_regret=max(0.0, regret),
    )
    decided = counsel.advice.decided
    if decided is not None and decided.target and returnable_commit(dossier, decided.target.id) is not None:
        counsel = replace(counsel, advice=decided)  # its files are there still: by metadata alone, it is for free
    advice = counsel.advice
    due = tail is not None and regret >= alpha.value * tail.share
    too_little = advice.current_cost - advice.target_cost < config.decide.min_gain * advice.weight
    if advice.target is not None and not (due and too_little):
        return leap(run, advice.target, evidence, after, counsel, alpha)
    if tail is not None and due:
        counsel.optimizer.placed(after.shadow or evidence.current)
        saved = replace(after, optimizer=counsel.optimizer.to_json())
        folded = fold(run, tail, evidence, saved, alpha, _due(tail, regret, alpha))
        if folded is not None:
            return folded
    return run.stay(evidence, after, counsel, alpha, advice.reason)


def _due(tail: Tail, regret: float, alpha: Alpha) -> str:
    return (
        f"{tail.rows:,} rows in {len(tail.names):,} files lie outside the layout; they have cost the queries "
        f"{regret:.1f} scans, and folding them in costs {alpha.value * tail.share:.1f}"
    )


def _foreign_rewrites(run: Run, evidence: Evidence) -> str:
    """What others undid of the layout, as a reason to repair it; "" if nothing."""
    if evidence.live is None:
        return ""
    found = run.dossier.table.foreign_rewrites(evidence.live)
    if evidence.live.shard:  # of what others replaced, only what was this shard's
        own = run.dossier.facts.names({commit.run_id for commit in run.dossier.table.layout_commits()})
        mine = (replace(one, files=tuple(name for name in one.files if name in own)) for one in found)
        found = [one for one in mine if one.files]
    run.record.add(
        "foreign",
        (
            {"version": f.version, "operation": f.operation, "time": f.time.isoformat(), "files": len(f.files)}
            for f in found
        ),
    )
    for one in found:
        run.notices.append(
            f"{one.operation} (version {one.version}, {one.time:%Y-%m-%d %H:%M} UTC) replaced {len(one.files):,} files "
            "of the layout"
        )
    if not found:
        return ""
    names = ", ".join(dict.fromkeys(one.operation for one in found))
    count = sum(len(one.files) for one in found)
    return f"{names} by others replaced {count:,} files of the layout: what they wrote is folded in again"
