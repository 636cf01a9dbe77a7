"""Undo the last layout, and nothing else: rows that came later stay."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.errors import ConflictError, RollbackError, UnknownOutcomeError
from oreo_lakehouse.maintenance.dossier import live_layout, open_dossier
from oreo_lakehouse.maintenance.lock import locked
from oreo_lakehouse.maintenance.progress import Progress, silent, spark_share
from oreo_lakehouse.tables.contract import Committed, Unknown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class RolledBack:
    """The layout that was undone, and the table's versions around it."""

    table: str
    format: str
    layout_id: str
    version_before: int
    version_after: int

    def to_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "format": self.format,
            "layout_id": self.layout_id,
            "version_before": self.version_before,
            "version_after": self.version_after,
        }


def rollback(
    spark: SparkSession, table: str, config: Config | None = None, *, progress: Progress = silent
) -> RolledBack:
    """Put back the files that the live layout replaced, by a commit of its own that changes no row.

    Raises:
        RollbackError: there is no layout of ours, or it cannot be undone; the sentence says why and what to do instead.
        ConflictError: somebody changed the table meanwhile.
    """
    config = load_config() if config is None else config
    progress("opening the table", None)
    dossier = open_dossier(spark, table, config)
    identity = dossier.table.identity
    with locked(dossier.store, identity.uuid, identity.name):
        repaired = dossier.pending.repair(dossier.table)
        live = live_layout(dossier.table)
        if live is None:
            raise RollbackError(f"{identity.name} has no layout of ours to undo; `oreo status` shows its state")
        before = dossier.table.version()
        run_id = uuid.uuid4().hex
        with spark_share(spark, progress, "putting the replaced files back"):
            result = dossier.table.revert(live, run_id)
        if isinstance(result, Unknown):
            raise UnknownOutcomeError(
                f"it is not known whether the rollback of {identity.name} was committed ({result.reason}); "
                "`oreo status` tells once the catalog answers"
            )
        if not isinstance(result, Committed):
            raise ConflictError(f"{identity.name} was changed meanwhile ({result.reason}); run it again")
        facts = {"layout_id": live.layout_id, "undone_version": live.version, "version": result.version}
        dossier.ledger.append(run_id, [*(("repair", fact) for fact in repaired), ("rollback", facts)])
    return RolledBack(identity.name, identity.format, live.layout_id, before, result.version)
