"""Keeping a layout undoable: tags on its snapshot and the one before, whose files expire_snapshots then leaves alone.

Iceberg drops a tag by itself once its snapshot is older than the tag allows, so a tag that nobody removes does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.errors import TableError
from oreo_lakehouse.tables.iceberg.history import LAYOUT_TAG

if TYPE_CHECKING:
    from oreo_lakehouse.tables.contract import LayoutCommit

_PREFIX = "oreo-before-"
_DAY_MS = 86_400_000
_EXPIRES = ("history.expire.max-snapshot-age-ms", 5 * _DAY_MS)
"""The table property for how long expire_snapshots keeps what has no tag, and its default."""


def retain_base(name: str, table: Any, commit: LayoutCommit, days: float) -> None:
    """Tag a layout commit and the snapshot before it; earlier tags for the same commit are replaced.

    Raises:
        TableError: that snapshot has expired already.
    """
    base = table.snapshot(commit.base_version)
    if base is None:
        raise TableError(f"snapshot {commit.base_version} of {name} has expired: layout {commit.layout_id} is final.")
    change = table.manageSnapshots()
    for tag, snapshot in ((_PREFIX, base), (LAYOUT_TAG, table.snapshot(commit.version))):
        if snapshot is not None:
            if tag + commit.run_id not in table.refs():
                change.createTag(tag + commit.run_id, snapshot.snapshotId())
            # Iceberg counts a tag's age from its snapshot on, which may be much older than the layout.
            age = round(commit.time.timestamp() * 1000) - int(snapshot.timestampMillis()) + round(days * _DAY_MS)
            change.setMaxRefAgeMs(tag + commit.run_id, max(1, age))
    change.commit()


def release_base(table: Any, commit: LayoutCommit) -> bool:
    """Remove the tags of a layout commit; whether there were any."""
    tags = [tag for tag in (_PREFIX + commit.run_id, LAYOUT_TAG + commit.run_id) if tag in table.refs()]
    change = table.manageSnapshots()
    for tag in tags:
        change.removeTag(tag)
    if tags:
        change.commit()
    return bool(tags)


def retained_runs(table: Any) -> dict[str, int]:
    """The run ids of the layout commits whose base is tagged, with that base."""
    tags = {str(tag): int(table.refs()[tag].snapshotId()) for tag in table.refs()}
    return {tag.removeprefix(_PREFIX): base for tag, base in tags.items() if tag.startswith(_PREFIX)}


def kept_until(table: Any, commits: Sequence[LayoutCommit]) -> datetime | None:
    """From when on expire_snapshots may take away what undoing these commits needs; None for no commits."""
    ends = [
        _end(table, tag + commit.run_id, version)
        for commit in commits
        for tag, version in ((_PREFIX, commit.base_version), (LAYOUT_TAG, commit.version))
    ]
    return datetime.fromtimestamp(min(ends) / 1000, UTC) if ends else None


def _end(table: Any, tag: str, version: int) -> int:
    key, default = _EXPIRES
    age = int(table.properties().get(key) or default)
    if tag in table.refs():
        age = max(age, int(table.refs()[tag].maxRefAgeMs() or age))
    return int(table.snapshot(version).timestampMillis()) + age
