"""Taking the table to a layout: by metadata alone where its files still exist, else by a rewrite; and the receipt."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.errors import ConflictError, RollbackError, UnknownOutcomeError
from oreo_lakehouse.layouts.skipping import service_costs
from oreo_lakehouse.maintenance.rewrite import rewrite
from oreo_lakehouse.tables.contract import Committed, LayoutCommit, RewritePlan, Unknown

if TYPE_CHECKING:
    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.layouts.skipping import Mode
    from oreo_lakehouse.maintenance.dossier import Dossier
    from oreo_lakehouse.maintenance.evidence import Evidence
    from oreo_lakehouse.maintenance.progress import Progress


@dataclass(frozen=True)
class Moved:
    """A layout that is visible now."""

    version: int
    run_id: str
    after: Blocks
    facts: dict[str, Any]
    """Of the ledger's `commit` line, but for what the decision promised."""
    plan: RewritePlan | None = None
    """As executed; None for a return."""


def returnable_commit(dossier: Dossier, layout_id: str) -> LayoutCommit | None:
    """An earlier commit of the layout whose files can be made current again without rewriting a row."""
    for commit in dossier.table.layout_commits():
        if commit.layout_id == layout_id and commit.action == "layout" and dossier.table.returnable(commit).possible:
            return commit
    return None


def return_by_metadata(dossier: Dossier, commit: LayoutCommit, before: Blocks, progress: Progress) -> Moved:
    """Make an earlier layout's files current again. The intent stays until the caller has recorded what was done.

    Raises:
        RollbackError: it is impossible; the sentence says why.
        ConflictError: somebody changed the table meanwhile.
        UnknownOutcomeError: the commit may have landed.
    """
    table, run_id, started = dossier.table, uuid.uuid4().hex, time.monotonic()
    progress("bringing an earlier layout's files back", None)
    dossier.blocks.keep(run_id, before)
    dossier.pending.add(run_id)
    try:
        result = table.return_to(commit, run_id)
    except RollbackError:
        dossier.pending.remove(run_id)
        dossier.blocks.drop(run_id)
        raise
    if isinstance(result, Unknown):
        raise UnknownOutcomeError(
            f"it is not known whether {table.identity.name} was returned to layout {commit.layout_id} "
            f"({result.reason}); the next run finds out"
        )
    if not isinstance(result, Committed):
        dossier.pending.remove(run_id)
        raise ConflictError(f"{table.identity.name} was changed meanwhile ({result.reason}); run it again")
    after = table.blocks(result.version)
    facts = {
        "action": "return",
        "layout_id": commit.layout_id,
        "version": result.version,
        "base_version": commit.version,
        "rows": after.total_rows,
        "files_before": len(before),
        "files_after": len(after),
        "bytes": 0,
        "bytes_before": before.total_bytes,
        "seconds": round(time.monotonic() - started, 3),
    }
    return Moved(result.version, run_id, after, facts)


def move_by_rewrite(dossier: Dossier, plan: RewritePlan, evidence: Evidence, progress: Progress) -> Moved:
    """Stage, verify, commit; see `rewrite`."""
    started = time.monotonic()
    done = rewrite(dossier, plan, evidence.blocks, progress, [query.predicate for query in evidence.queries])
    seconds = time.monotonic() - started
    progress("reading what the new files hold", None)
    after = dossier.table.blocks(done.version)
    facts = {
        "action": plan.action,
        "layout_id": done.plan.layout.id,
        "layout": done.plan.layout.describe(),
        "version": done.version,
        "base_version": done.staged.base_version,
        "rows": done.staged.rows,
        "checksum": done.staged.certificate.checksum,
        "files_before": done.staged.replaced_files,
        "files_after": len(done.staged.paths),
        "bytes": done.staged.bytes,
        "bytes_before": done.plan.bytes,
        "seconds": round(seconds, 3),
    }
    return Moved(done.version, done.run_id, after, facts, done.plan)


def recent_cost(evidence: Evidence, blocks: Blocks, mode: Mode) -> float:
    """What a recent query costs on these blocks."""
    return float(service_costs(evidence.recent(), blocks, mode).mean()) if len(evidence.queries) else 0.0
