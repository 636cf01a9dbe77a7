"""Every layout that a table has had: which is live, which can be returned to and until when, which is gone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.maintenance.dossier import Dossier, live_layouts, open_dossier
from oreo_lakehouse.maintenance.shardledgers import shard_ledgers
from oreo_lakehouse.tables.commits import FOLD, ROLLBACK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.tables.contract import LayoutCommit

SOON = timedelta(days=1)
"""A layout that the table's clean-up may take within this time is worth a warning."""


@dataclass(frozen=True)
class KnownLayout:
    """A layout commit of ours and what has become of it."""

    layout_id: str
    layout: str
    """In words; "" if its description is lost."""
    version: int
    time: datetime
    state: str
    """`live`, `returnable` or `gone`."""
    until: datetime | None
    """From when on VACUUM or expire_snapshots may delete a returnable layout's files."""
    reason: str
    shard: str = ""
    """The part of the table that it is a layout of; "" for the whole."""

    def to_json(self) -> dict[str, Any]:
        return {
            "layout_id": self.layout_id,
            "layout": self.layout,
            "version": self.version,
            "time": self.time.isoformat(),
            "state": self.state,
            "until": self.until.isoformat() if self.until else None,
            "reason": self.reason,
            "shard": self.shard,
        }


def layouts(spark: SparkSession, table: str, config: Config | None = None) -> list[KnownLayout]:
    """The table's layouts, newest first; changes nothing and opens no data file."""
    config = load_config() if config is None else config
    return known_layouts(open_dossier(spark, table, config))


def known_layouts(dossier: Dossier) -> list[KnownLayout]:
    """The layouts of a table that is open already."""
    live, parts = live_layouts(dossier.table), dossier.by_shard(dossier.table.blocks())
    commits = [commit for commit in dossier.table.layout_commits() if commit.action not in (FOLD, ROLLBACK)]
    labels = {shard.id: shard.label for shard in shard_ledgers(dossier.store, dossier.table.identity.uuid)}
    return [
        _known(
            parts.get(commit.shard, dossier),
            commit,
            commit == live.get(commit.shard),
            labels.get(commit.shard, commit.shard),
        )
        for commit in commits
    ]


def _known(dossier: Dossier, commit: LayoutCommit, is_live: bool, shard: str) -> KnownLayout:
    layout = dossier.layout(commit.layout_id)
    words = layout.describe() if layout else ""
    if is_live:
        state, until, reason = "live", None, f"{shard or 'The table'} is in it."
    elif shard and dossier.shard is None:
        state, until, reason = "gone", None, "Its shard has no rows now."
    else:
        found = dossier.table.returnable(commit)
        state, until, reason = "returnable" if found.possible else "gone", found.until, found.reason
    return KnownLayout(commit.layout_id, words, commit.version, commit.time, state, until, reason, shard)


def retention_warnings(found: list[KnownLayout], name: str, fmt: str) -> list[str]:
    """A sentence for each layout that can still be returned to and that the table's clean-up may take soon."""
    sweeper, setting = "VACUUM", "delta.deletedFileRetentionDuration"
    if fmt == "iceberg":
        sweeper, setting = "expire_snapshots", "layout.returnable_days"
    return [
        f"from {one.until:%Y-%m-%d %H:%M} UTC on, {sweeper} may delete layout {one.layout_id} of {name}, which can "
        f"still be returned to; raise {setting} to keep it longer"
        for one in found
        if one.state == "returnable" and one.until is not None and one.until < datetime.now(UTC) + SOON
    ]
