"""Plan -> stage -> verify -> commit, again from the plan when somebody else changed the rewritten files meanwhile."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oreo_lakehouse.errors import ConflictError, UnknownOutcomeError, VerificationError
from oreo_lakehouse.maintenance.facts import wanted_facts
from oreo_lakehouse.maintenance.progress import Progress, spark_share
from oreo_lakehouse.tables.commits import FOLD
from oreo_lakehouse.tables.contract import Committed, RewritePlan, Staged, Unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.maintenance.dossier import Dossier
    from oreo_lakehouse.predicates.tree import Predicate

ATTEMPTS = 3


@dataclass(frozen=True)
class Rewritten:
    """A layout that is now visible."""

    version: int
    run_id: str
    plan: RewritePlan
    staged: Staged


def rewrite(
    dossier: Dossier, plan: RewritePlan, before: Blocks, progress: Progress, queries: Sequence[Predicate] = ()
) -> Rewritten:
    """Execute the plan; the intent stays on record until the outcome is known.

    Args:
        dossier: the table and what is kept of it.
        plan: what to rewrite, and into what.
        before: the table's block metadata now; it is kept under the run's id, for the ledger to compare with.
        progress: told what is being done.
        queries: what the layout was chosen for; the new files' facts speak of the columns that they ask about.

    Raises:
        VerificationError: staged rows differ from the table's; nothing was committed, the staged files are deleted.
        ConflictError: the rewritten files were changed by others on every attempt.
        UnknownOutcomeError: the commit may have landed; the next run finds out.
    """
    table, spark = dossier.table, dossier.table.spark
    dossier.keep_layout(plan.layout)
    columns, pairs = wanted_facts(plan.layout, queries)
    reason = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            plan = table.plan(plan.layout, plan.bid_column, plan.only if plan.action == FOLD else None)
        run_id = uuid.uuid4().hex
        dossier.pending.begin(run_id)
        with spark_share(spark, progress, "rewriting into new files"):
            staged = table.stage(plan, run_id)
        dossier.pending.add(run_id)
        try:
            with spark_share(spark, progress, "verifying the new files"):
                found = table.verify(staged, columns if queries else None, pairs)
        except VerificationError:
            _drop(dossier, staged)
            raise
        dossier.facts.record(run_id, found.facts)
        dossier.blocks.keep(run_id, before)
        progress("committing", None)
        certificate = f"{staged.certificate.rows} rows, checksum {staged.certificate.checksum}"
        result = table.commit(staged, {"oreo.certificate": certificate})
        if isinstance(result, Committed):
            return Rewritten(result.version, run_id, plan, staged)
        if isinstance(result, Unknown):
            raise UnknownOutcomeError(
                f"it is not known whether the layout of {table.identity.name} was committed ({result.reason}); no file "
                "was deleted, and the next run finds out"
            )
        reason = result.reason
        _drop(dossier, staged)
    raise ConflictError(
        f"{table.identity.name} was changed by others during each of {ATTEMPTS} rewrites (last: {reason}); "
        "run again when it is quieter"
    )


def _drop(dossier: Dossier, staged: Staged) -> None:
    dossier.table.discard(staged)
    dossier.blocks.drop(staged.run_id)
    dossier.pending.remove(staged.run_id)
