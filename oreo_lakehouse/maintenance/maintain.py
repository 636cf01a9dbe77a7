"""One maintenance run: observe -> decide -> look -> plan -> stage -> verify -> commit -> record.

State is saved only after the table, so a run that dies anywhere is simply repeated: the next one starts from the same
state, sees the same queries and, with the same seed, decides the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.history.compaction import tend
from oreo_lakehouse.maintenance.alpha import alpha_of
from oreo_lakehouse.maintenance.deciding import take_counsel
from oreo_lakehouse.maintenance.dossier import open_dossier
from oreo_lakehouse.maintenance.evidence import Evidence, observe, obstacle
from oreo_lakehouse.maintenance.folding import Tail, fold, tail_cost, tail_of
from oreo_lakehouse.maintenance.leap import leap
from oreo_lakehouse.maintenance.lock import locked
from oreo_lakehouse.maintenance.options import RunOptions
from oreo_lakehouse.maintenance.progress import Progress, silent, spark_share
from oreo_lakehouse.maintenance.pruned import last_mode, mode_notices, pruning_effect
from oreo_lakehouse.maintenance.run import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.maintenance.alpha import Alpha
    from oreo_lakehouse.maintenance.outcome import Outcome


def maintain(
    spark: SparkSession,
    table: str,
    config: Config | None = None,
    *,
    options: RunOptions | None = None,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Outcome:
    """Decide about the queries that came since the last run and, when it pays, rewrite the table.

    Args:
        spark: a session that can write the table.
        table: as in SQL, or a path.
        config: settings; by default those that `load_config()` finds.
        options: what the run may do and spend.
        dry_run: decide and plan, but write nothing at all; short for `RunOptions(dry_run=True)`.
        progress: told what is being done.

    Raises:
        OreoError: see `errors.py`; each names the problem, the place and the way out.
    """
    config = load_config() if config is None else config
    options = options or RunOptions()
    options = replace(options, dry_run=options.dry_run or dry_run)
    progress("opening the table", None)
    dossier = open_dossier(spark, table, config)
    identity = dossier.table.identity
    config = config.for_table(table, identity.name)
    if options.dry_run:
        return _execute(Run(dossier, config, options, progress))
    with locked(dossier.store, identity.uuid, identity.name):
        return _execute(Run(dossier, config, options, progress))


def _execute(run: Run) -> Outcome:
    dossier, config = run.dossier, run.config
    state, damage = dossier.states.load(set_aside=not run.options.dry_run)
    run.notices += damage
    if not run.options.shadow:
        state = replace(state, shadow=None)
    run.settle()
    run.progress("reading the query history", None)
    if not run.options.dry_run:
        tend(dossier.history, config.history)
    queries, cursor = dossier.history.read_since(state.cursor)
    with spark_share(dossier.table.spark, run.progress, "reading the table's file statistics"):
        evidence = observe(dossier, queries, config.layout, config.decide.skipping)
    run.notices += mode_notices(
        config.decide.skipping,
        last_mode(dossier.ledger.lines(["decision"])),
        len(queries),
        pruning_effect(queries, evidence.blocks.total_rows),
    )
    alpha = alpha_of(config.decide.alpha, dossier.ledger.lines(["commit", "calibration"]))
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
    counsel = take_counsel(dossier, evidence, state, config, alpha, run.progress)
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
    advice = counsel.advice
    due = tail is not None and regret >= alpha.value * tail.share
    too_little = advice.current_cost - advice.target_cost < config.decide.min_gain
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
