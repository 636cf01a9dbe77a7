"""One maintenance run: observe -> decide -> plan -> stage -> verify -> commit -> record.

State is saved only after the table, so a run that dies anywhere is simply repeated: the next one starts from the same
state, sees the same queries and, with the same seed, decides the same.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.config import Config, load_config, parse_size
from oreo_lakehouse.layouts.skipping import service_costs
from oreo_lakehouse.maintenance.dossier import Dossier, live_layout, open_dossier
from oreo_lakehouse.maintenance.lock import locked
from oreo_lakehouse.maintenance.outcome import Outcome
from oreo_lakehouse.maintenance.progress import Progress, silent, spark_share
from oreo_lakehouse.maintenance.rewrite import Rewritten, rewrite
from oreo_lakehouse.maintenance.state import State
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.reorganizer.online import INITIAL, Advice, OnlineOptimizer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.history.record import QueryRecord
    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.tables.contract import RewritePlan


def maintain(
    spark: SparkSession,
    table: str,
    config: Config | None = None,
    *,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Outcome:
    """Decide about the queries that came since the last run and, when it pays, rewrite the table.

    Args:
        spark: a session that can write the table.
        table: as in SQL, or a path.
        config: settings; by default those that `load_config()` finds.
        dry_run: decide and plan, but write nothing at all.
        progress: told what is being done.

    Raises:
        OreoError: see `errors.py`; each names the problem, the place and the way out.
    """
    config = load_config() if config is None else config
    progress("opening the table", None)
    dossier = open_dossier(spark, table, config)
    if dry_run:
        return _Run(dossier, config, progress, dry_run=True).execute()
    identity = dossier.table.identity
    with locked(dossier.store, identity.uuid, identity.name):
        return _Run(dossier, config, progress, dry_run=False).execute()


@dataclass(frozen=True)
class _Evidence:
    """What a decision rests on, read once."""

    version: int
    current: str
    blocks: Blocks
    queries: list[QueryRecord]
    wanted_blocks: int


class _Run:
    def __init__(self, dossier: Dossier, config: Config, progress: Progress, *, dry_run: bool) -> None:
        self._dossier, self._config, self._progress, self._dry_run = dossier, config, progress, dry_run
        self._started = time.monotonic()
        self._notices: list[str] = []
        self._lines: list[tuple[str, dict[str, Any]]] = []

    def execute(self) -> Outcome:
        state, damage = self._dossier.states.load(set_aside=not self._dry_run)
        self._notices += damage
        if not self._dry_run:
            self._lines += [("repair", fact) for fact in self._dossier.pending.repair(self._dossier.table)]
            self._notices += [str(fact["what"]) for _, fact in self._lines]
        self._progress("reading the query history", None)
        queries, cursor = self._dossier.history.read_since(state.cursor)
        evidence = self._observe(queries)
        obstacle = self._obstacle(evidence, state)
        if obstacle is not None:
            return self._stay(evidence, None, obstacle)  # its queries wait for a run that can decide about them
        after = replace(state, number=state.number + 1, cursor=cursor, queries=state.queries + len(queries))
        optimizer, advice = self._decide(evidence, state)
        target, reason = advice.target, advice.reason
        if target is not None and advice.current_cost - advice.target_cost < self._config.decide.min_gain:
            optimizer.placed(evidence.current)
            reason = (
                f"{target.describe()} would save {advice.current_cost - advice.target_cost:.1%} of the rows a query "
                f"reads, less than decide.min_gain = {self._config.decide.min_gain:.1%}"
            )
            target = None
        if target is None:
            return self._stay(evidence, replace(after, optimizer=optimizer.to_json()), reason, advice)
        plan = self._dossier.table.plan(target, self._config.bid_column)
        self._notices += plan.warnings
        if self._dry_run:
            return self._outcome(evidence, "move", reason, plan)
        return self._move(evidence, after, optimizer, advice, plan)

    def _observe(self, queries: list[QueryRecord]) -> _Evidence:
        table = self._dossier.table
        with spark_share(table.spark, self._progress, "reading the table's file statistics"):
            version = table.version()
            blocks = table.blocks(version)
        live = live_layout(table)
        target_size = parse_size(self._config.layout.target_file_size)
        wanted = self._config.layout.blocks or max(1, round(blocks.total_bytes / target_size))
        return _Evidence(version, live.layout_id if live else INITIAL, blocks, queries, wanted)

    def _obstacle(self, evidence: _Evidence, state: State) -> str | None:
        """Why there is nothing to decide, or None."""
        name = self._dossier.table.identity.name
        if not evidence.queries:
            if state.queries == 0:
                return f"no query history yet: `oreo history import {name} FILE` adds one"
            return f"no new queries since the last run ({state.queries} seen in all)"
        if evidence.blocks.total_rows == 0:
            return "the table is empty"
        if evidence.wanted_blocks < 2:
            size = self._config.layout.target_file_size
            return f"the table fits in one file of {size} (layout.target_file_size): no layout could skip anything"
        return None

    def _decide(self, evidence: _Evidence, state: State) -> tuple[OnlineOptimizer, Advice]:
        decide, layout = self._config.decide, self._config.layout
        if state.optimizer is None:
            optimizer = OnlineOptimizer(decide, layout, decide.seed)
        else:
            optimizer = OnlineOptimizer.from_json(state.optimizer, decide, layout)
        predicates = [query.predicate for query in evidence.queries]
        table = self._dossier.table
        known = table.schema()
        columns = sorted(optimizer.columns(predicates) & known.keys())
        with spark_share(table.spark, self._progress, "sampling rows"):
            sample = table.sample(layout.sample_rows, decide.seed, columns or list(known)[:1])
        self._progress("deciding", None)
        advice = optimizer.advise(predicates, sample, evidence.blocks, evidence.wanted_blocks, evidence.current)
        self._lines += [("event", decision.to_json()) for decision in advice.decisions]
        return optimizer, advice

    def _stay(self, evidence: _Evidence, state: State | None, reason: str, advice: Advice | None = None) -> Outcome:
        self._lines.append(("decision", _decision(evidence, "stay", reason, advice)))
        if not self._dry_run:
            self._dossier.ledger.append(uuid.uuid4().hex, self._lines)
            if state is not None:
                self._dossier.states.save(state)
        return self._outcome(evidence, "stay", reason)

    def _move(
        self, evidence: _Evidence, state: State, optimizer: OnlineOptimizer, advice: Advice, plan: RewritePlan
    ) -> Outcome:
        started = time.monotonic()
        done = rewrite(self._dossier, plan, self._progress)
        seconds = time.monotonic() - started
        self._progress("recording", None)
        after = self._dossier.table.blocks(done.version)
        self._lines.append(("decision", _decision(evidence, "move", advice.reason, advice)))
        self._lines.append(("commit", self._receipt(evidence, advice, done, after, seconds)))
        optimizer.placed(plan.layout.id)
        self._dossier.ledger.append(done.run_id, self._lines)
        self._dossier.states.save(replace(state, optimizer=optimizer.to_json()))
        self._dossier.pending.remove(done.run_id)
        return replace(
            self._outcome(evidence, "move", advice.reason, done.plan),
            version_after=done.version,
            files_after=len(after),
            bytes_rewritten=done.staged.bytes,
        )

    def _receipt(
        self, evidence: _Evidence, advice: Advice, done: Rewritten, after: Blocks, seconds: float
    ) -> dict[str, Any]:
        """What was promised and what the new files really give, on the same recent queries by the same code."""
        recent = [query.predicate for query in evidence.queries[-self._config.decide.window :]]
        realised = service_costs(Workload.of(recent), after, self._config.decide.skipping)
        return {
            "layout_id": done.plan.layout.id,
            "layout": done.plan.layout.describe(),
            "version": done.version,
            "base_version": done.staged.base_version,
            "rows": done.staged.rows,
            "checksum": done.staged.certificate.checksum,
            "files_before": done.staged.replaced_files,
            "files_after": len(done.staged.paths),
            "bytes": done.staged.bytes,
            "seconds": round(seconds, 3),
            "cost_before": advice.current_cost,
            "cost_predicted": advice.target_cost,
            "cost_realised": float(realised.mean()),
        }

    def _outcome(self, evidence: _Evidence, decision: str, reason: str, plan: RewritePlan | None = None) -> Outcome:
        identity = self._dossier.table.identity
        current = None if evidence.current == INITIAL else evidence.current
        return Outcome(
            table=identity.name,
            format=identity.format,
            decision=decision,
            reason=reason,
            layout_id=plan.layout.id if plan else current,
            version_before=evidence.version,
            version_after=evidence.version,
            rows=evidence.blocks.total_rows,
            files_before=len(evidence.blocks),
            files_after=len(evidence.blocks),
            bytes_rewritten=0,
            queries_seen=len(evidence.queries),
            seconds=time.monotonic() - self._started,
            dry_run=self._dry_run,
            plan=plan,
            notices=tuple(self._notices),
        )


def _decision(evidence: _Evidence, decision: str, reason: str, advice: Advice | None) -> dict[str, Any]:
    """The ledger's line for a run's decision; `explain` has nothing else to read."""
    facts: dict[str, Any] = {
        "decision": decision,
        "reason": reason,
        "version": evidence.version,
        "current": evidence.current,
        "queries": len(evidence.queries),
    }
    if advice is not None:
        facts |= {
            "target": advice.target.id if advice.target else None,
            "current_cost": advice.current_cost,
            "target_cost": advice.target_cost,
            "alpha": advice.alpha,
            "phase": advice.phase,
            "counters": dict(advice.counters),
            "costs": dict(advice.costs),
        }
    return facts
