"""Undo the last layout, or go back to an earlier one, and nothing else: rows that came later stay."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.errors import ConflictError, RollbackError, UnknownOutcomeError
from oreo_lakehouse.maintenance.dossier import Dossier, live_layout, live_layouts, open_dossier
from oreo_lakehouse.maintenance.ledger import Ledger
from oreo_lakehouse.maintenance.lock import locked
from oreo_lakehouse.maintenance.moving import return_by_metadata
from oreo_lakehouse.maintenance.progress import Progress, silent, spark_share
from oreo_lakehouse.maintenance.shardledgers import find_shard, shard_ledgers
from oreo_lakehouse.maintenance.shards import shard_folder
from oreo_lakehouse.tables.commits import LAYOUT, RETURN, Committed, Unknown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.tables.contract import LayoutCommit


@dataclass(frozen=True)
class RolledBack:
    """The layout that was undone, and the table's versions around it."""

    table: str
    format: str
    layout_id: str
    version_before: int
    version_after: int
    returned_to: str | None = None
    """The earlier layout that the table is in again; None: the live one was undone."""
    shard: str = ""
    """The part of the table whose layout was undone; "" for the whole."""

    def to_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "format": self.format,
            "layout_id": self.layout_id,
            "version_before": self.version_before,
            "version_after": self.version_after,
            "returned_to": self.returned_to,
            "shard": self.shard,
        }


def rollback(
    spark: SparkSession,
    table: str,
    config: Config | None = None,
    *,
    to: str | None = None,
    shard: str | None = None,
    progress: Progress = silent,
) -> RolledBack:
    """Put back the files that the live layout replaced, or go back to an earlier layout; no row changes.

    Args:
        spark: a session that can write the table.
        table: as in SQL, or a path.
        config: settings; by default those that `load_config()` finds.
        to: the id of an earlier layout, or its beginning; None: undo the live layout.
        shard: of a partitioned table, the part whose last layout is undone; None: that of the last layout.
        progress: told what is being done.

    Raises:
        RollbackError: there is no such layout, or it cannot be undone; the sentence says why and what to do instead.
        ConflictError: somebody changed the table meanwhile.
    """
    config = load_config() if config is None else config
    progress("opening the table", None)
    dossier = open_dossier(spark, table, config)
    identity = dossier.table.identity
    with locked(dossier.store, identity.uuid, identity.name):
        repaired = [("repair", fact) for fact in dossier.pending.repair(dossier.table)]
        shards = shard_ledgers(dossier.store, identity.uuid)
        wanted = None if shard is None else find_shard(shards, shard, identity.name)
        live = live_layout(dossier.table) if wanted is None else live_layouts(dossier.table).get(wanted.id)
        if live is None:
            raise RollbackError(
                f"{shard or identity.name} has no layout of ours to undo; `oreo status` shows its state"
            )
        before = dossier.table.version()
        if to is None:
            version, run_id, line = _undo(dossier, live, progress)
        else:
            version, run_id, line = _return(dossier, live, to, progress)
        # What was undone of a shard stands in the shard's own ledger.
        own = dossier.ledger if not live.shard or to else Ledger(dossier.store, shard_folder(identity.uuid, live.shard))
        own.append(run_id, [*repaired, line])
    label = next((one.label for one in shards if one.id == live.shard and not to), "")
    returned = line[1].get("returned_to")
    return RolledBack(identity.name, identity.format, live.layout_id, before, version, returned, label)


def _undo(dossier: Dossier, live: LayoutCommit, progress: Progress) -> tuple[int, str, tuple[str, dict[str, Any]]]:
    name, run_id = dossier.table.identity.name, uuid.uuid4().hex
    with spark_share(dossier.table.spark, progress, "putting the replaced files back"):
        result = dossier.table.revert(live, run_id)
    if isinstance(result, Unknown):
        raise UnknownOutcomeError(
            f"it is not known whether the rollback of {name} was committed ({result.reason}); `oreo status` tells once "
            "the catalog answers"
        )
    if not isinstance(result, Committed):
        raise ConflictError(f"{name} was changed meanwhile ({result.reason}); run it again")
    facts = {"layout_id": live.layout_id, "undone_version": live.version, "version": result.version, "alpha": 0.0}
    return result.version, run_id, ("rollback", facts)


def _return(
    dossier: Dossier, live: LayoutCommit, wanted: str, progress: Progress
) -> tuple[int, str, tuple[str, dict[str, Any]]]:
    name = dossier.table.identity.name
    of_table = [commit for commit in dossier.table.layout_commits() if not commit.shard]
    commits = [commit for commit in of_table if commit.action in (LAYOUT, RETURN)]
    matching = [commit for commit in commits if commit.layout_id.startswith(wanted)]
    known = ", ".join(dict.fromkeys(commit.layout_id for commit in commits)) or "none"
    if live.shard and any(c.layout_id.startswith(wanted) for c in dossier.table.layout_commits() if c.shard):
        raise RollbackError(
            f"layout {wanted!r} is one of a shard of {name}: a shard's last layout is undone by --shard, an earlier "
            "one is gone back to by a rewrite only"
        )
    if not matching:
        raise RollbackError(f"{name} never had a layout {wanted!r}; its layouts are {known} (`oreo layouts {name}`)")
    if len({commit.layout_id for commit in matching}) > 1:
        raise RollbackError(f"{wanted!r} means several layouts of {name}: {known}")
    if matching[0].layout_id == live.layout_id:
        raise RollbackError(f"{name} is in layout {live.layout_id} already")
    done = return_by_metadata(dossier, matching[0], dossier.table.blocks(), progress)
    layout = dossier.layout(matching[0].layout_id)
    facts = {"layout": layout.describe() if layout else "", **done.facts, "alpha": 0.0}
    return done.version, done.run_id, ("commit", facts | {"returned_to": matching[0].layout_id})
