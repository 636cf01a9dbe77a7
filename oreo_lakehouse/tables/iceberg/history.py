"""Our commits in a table's own history: what a `replace` snapshot of ours carries in its summary."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.errors import TableError
from oreo_lakehouse.tables.commits import LAYOUT, RETURN, ROLLBACK, ForeignRewrite, LayoutCommit

if TYPE_CHECKING:
    from oreo_lakehouse.tables.contract import Staged
    from oreo_lakehouse.tables.iceberg.engine import Engine

LAYOUT_TAG = "oreo-layout-"
"""How the tags begin that keep our own snapshots from expiring."""
_PREFIX = "oreo."


@dataclass(frozen=True)
class Snapshot:
    """A retained snapshot, as far as a commit of ours is told from others."""

    id: int
    millis: int
    main: bool
    summary: dict[str, str]


def layout_summary(staged: Staged, note: dict[str, str]) -> dict[str, str]:
    """The summary of a layout commit; keys of `note` that lack the prefix get it."""
    ours = {
        "oreo.action": staged.action,
        "oreo.layout-id": staged.layout_id,
        "oreo.run-id": staged.run_id,
        "oreo.base-version": str(staged.base_version),
        "oreo.rows": str(staged.certificate.rows),
        "oreo.checksum": staged.certificate.checksum,
        **_of_shard(staged.shard),
    }
    return {_PREFIX + key.removeprefix(_PREFIX): value for key, value in note.items()} | ours


def rollback_summary(commit: LayoutCommit, run_id: str) -> dict[str, str]:
    """The summary of a commit that undoes a layout."""
    return {
        "oreo.action": ROLLBACK,
        "oreo.layout-id": commit.layout_id,
        "oreo.run-id": run_id,
        "oreo.base-version": str(commit.version),
        "oreo.layout-run-id": commit.run_id,
        **_of_shard(commit.shard),
    }


def return_summary(target: LayoutCommit, run_id: str, base_version: int, shard: str) -> dict[str, str]:
    """The summary of a commit that brings an earlier layout's own files back, to a shard or ("") to the whole table."""
    return {
        "oreo.action": RETURN,
        "oreo.layout-id": target.layout_id,
        "oreo.run-id": run_id,
        "oreo.base-version": str(base_version),
        "oreo.layout-run-id": target.run_id,
        **_of_shard(shard),
    }


def _of_shard(shard: str) -> dict[str, str]:
    return {"oreo.shard": shard} if shard else {}


def find_run(engine: Engine, table: Any, run_id: str) -> int | None:
    """The snapshot that a run committed, in any branch of the table's history."""
    found = (s.id for s in _snapshots(engine, table) if s.summary.get("oreo.run-id") == run_id)
    return next(found, None)


def layout_commits(engine: Engine, table: Any) -> list[LayoutCommit]:
    """Our commits in the table's current history, newest first."""
    return commits_among(_snapshots(engine, table))


def commits_among(snapshots: list[Snapshot]) -> list[LayoutCommit]:
    """Our commits among snapshots in the order of commits, newest first."""
    return [
        LayoutCommit(
            version=snapshot.id,
            layout_id=snapshot.summary["oreo.layout-id"],
            run_id=snapshot.summary["oreo.run-id"],
            time=_moment(snapshot.millis),
            action=snapshot.summary.get("oreo.action", LAYOUT),
            base_version=int(snapshot.summary.get("oreo.base-version", "-1")),
            layout_run_id=snapshot.summary.get("oreo.layout-run-id", ""),
            shard=snapshot.summary.get("oreo.shard", ""),
        )
        for snapshot in reversed(snapshots)
        if snapshot.main and _is_ours(snapshot.summary)
    ]


def _is_ours(summary: Mapping[str, str]) -> bool:
    """Whether a summary is in our words: any writer may put there what he likes."""
    base = summary.get("oreo.base-version", "-1")
    return {"oreo.layout-id", "oreo.run-id"} <= summary.keys() and bool(re.fullmatch(r"-?\d{1,19}", base))


def foreign_rewrites(engine: Engine, name: str, table: Any, since: int) -> list[ForeignRewrite]:
    """See `Table.foreign_rewrites`."""
    text = engine.past.foreign(table, since, "oreo.layout-id")
    if text is None:
        raise TableError(
            f"what others did to {name} since snapshot {since} is not known, because that snapshot is not in its "
            "present history: it has expired, or the table was rolled back past it."
        )
    return [
        ForeignRewrite(found["id"], found["operation"], _moment(found["millis"]), tuple(found["files"]))
        for found in json.loads(text)
    ]


def _moment(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, tz=UTC)


def _snapshots(engine: Engine, table: Any) -> list[Snapshot]:
    """Every retained snapshot, in the order of commits."""
    return [Snapshot(**entry) for entry in json.loads(engine.past.snapshots(table, _PREFIX, LAYOUT_TAG))]
