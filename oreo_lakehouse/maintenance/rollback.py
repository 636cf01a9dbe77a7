"""Undo the last layout, or go back to an earlier one, and nothing else: rows that came later stay."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.errors import ConflictError, RollbackError, UnknownOutcomeError
from oreo_lakehouse.maintenance.dossier import Dossier, live_layout, live_layouts, open_dossier
from oreo_lakehouse.maintenance.ledger import Ledger
from oreo_lakehouse.maintenance.lock import locked
from oreo_lakehouse.maintenance.moving import return_by_metadata
from oreo_lakehouse.maintenance.pending import Pending
from oreo_lakehouse.maintenance.progress import Progress, silent, spark_share
from oreo_lakehouse.maintenance.shardledgers import find_shard, shard_ledgers
from oreo_lakehouse.maintenance.shards import shard_folder
from oreo_lakehouse.reorganizer.online import INITIAL
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
    """The part of the table that went back; "" for the whole."""

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
        shard: of a partitioned table, the part that goes back; None: that of the layout in question.
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
        wanted = None if shard is None else find_shard(shards, shard, identity.name).id
        before, live = dossier.table.version(), live_layouts(dossier.table)
        if to is None:
            home, left, done = _undo(dossier, live, wanted, shard or identity.name, progress)
        else:
            home, left, done = _return(dossier, live, to, wanted, progress)
        # What happened to a shard stands in the shard's own ledger.
        own = Ledger(dossier.store, shard_folder(identity.uuid, home)) if home else dossier.ledger
        own.append(done.run_id, [*repaired, done.line])
        done.pending.remove(done.run_id)
    label = next((one.label for one in shards if one.id == home), "")
    returned = done.line[1].get("returned_to")
    return RolledBack(identity.name, identity.format, left, before, done.version, returned, label)


@dataclass(frozen=True)
class _Done:
    version: int
    run_id: str
    line: tuple[str, dict[str, Any]]
    pending: Pending
    """Where the intent stands until the line is written."""


def _undo(
    dossier: Dossier, live: Mapping[str, LayoutCommit], wanted: str | None, name: str, progress: Progress
) -> tuple[str, str, _Done]:
    """Undo the last layout; the shard that it was of, its id, and the ledger's line."""
    last = live_layout(dossier.table) if wanted is None else live.get(wanted)
    if last is None:
        raise RollbackError(f"{name} has no layout of ours to undo; `oreo status` shows its state")
    name, run_id = dossier.table.identity.name, uuid.uuid4().hex
    dossier.pending.add(run_id)
    try:
        with spark_share(dossier.table.spark, progress, "putting the replaced files back"):
            result = dossier.table.revert(last, run_id)
    except RollbackError:
        dossier.pending.remove(run_id)
        raise
    if isinstance(result, Unknown):
        raise UnknownOutcomeError(
            f"it is not known whether the rollback of {name} was committed ({result.reason}); the next run finds out"
        )
    if not isinstance(result, Committed):
        dossier.pending.remove(run_id)
        raise ConflictError(f"{name} was changed meanwhile ({result.reason}); run it again")
    facts = {"layout_id": last.layout_id, "undone_version": last.version, "version": result.version, "alpha": 0.0}
    return last.shard, last.layout_id, _Done(result.version, run_id, ("rollback", facts), dossier.pending)


def _return(
    dossier: Dossier, live: Mapping[str, LayoutCommit], to: str, wanted: str | None, progress: Progress
) -> tuple[str, str, _Done]:
    """Go back to a layout; the shard that does, the layout that it leaves, and the ledger's line."""
    name = dossier.table.identity.name
    commits = [
        commit
        for commit in dossier.table.layout_commits()
        if commit.action in (LAYOUT, RETURN) and (wanted is None or commit.shard in ("", wanted))
    ]
    matching = [commit for commit in commits if commit.layout_id.startswith(to)]
    known = ", ".join(dict.fromkeys(commit.layout_id for commit in commits)) or "none"
    if not matching:
        raise RollbackError(f"{name} never had a layout {to!r}; its layouts are {known} (`oreo layouts {name}`)")
    if len({commit.layout_id for commit in matching}) > 1:
        raise RollbackError(f"{to!r} means several layouts of {name}: {known}")
    if wanted is None and len({commit.shard for commit in matching}) > 1:
        raise RollbackError(f"several shards of {name} have had layout {to!r}: name one with --shard")
    target = matching[0]
    home = target.shard if wanted is None else wanted
    now = live.get(home) or live.get("")
    left = now.layout_id if now else INITIAL
    if target.layout_id == left:
        raise RollbackError(f"{name} is in layout {left} already")
    blocks = dossier.table.blocks()
    part = dossier.by_shard(blocks).get(home) if home else dossier
    if part is None:
        raise RollbackError(f"the shard of {name} that had layout {target.layout_id} has no rows now")
    done = return_by_metadata(part, target, part.table.blocks() if home else blocks, progress)
    layout = dossier.layout(target.layout_id)
    facts = {"layout": layout.describe() if layout else "", **done.facts, "alpha": 0.0}
    line = ("commit", facts | {"returned_to": target.layout_id})
    return home, left, _Done(done.version, done.run_id, line, part.pending)
