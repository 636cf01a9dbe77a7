"""Keeping a layout undoable: a tag on the snapshot before it, whose files expire_snapshots then leaves alone.

Iceberg drops a tag by itself once it is older than the time given here, so a tag that nobody removes does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oreo_lakehouse.errors import TableError

if TYPE_CHECKING:
    from oreo_lakehouse.tables.contract import LayoutCommit

_PREFIX = "oreo-before-"
_DAY_MS = 86_400_000


def retain_base(name: str, table: Any, commit: LayoutCommit, days: float) -> None:
    """Tag the snapshot before a layout commit; an earlier tag for the same commit is replaced.

    Raises:
        TableError: that snapshot has expired already.
    """
    if table.snapshot(commit.base_version) is None:
        raise TableError(f"snapshot {commit.base_version} of {name} has expired: layout {commit.layout_id} is final.")
    tag = _PREFIX + commit.run_id
    change = table.manageSnapshots()
    if tag not in table.refs():
        change.createTag(tag, commit.base_version)
    change.setMaxRefAgeMs(tag, round(days * _DAY_MS)).commit()


def release_base(table: Any, commit: LayoutCommit) -> bool:
    """Remove the tag of a layout commit; whether there was one."""
    tag = _PREFIX + commit.run_id
    if tag not in table.refs():
        return False
    table.manageSnapshots().removeTag(tag).commit()
    return True


def retained_runs(table: Any) -> dict[str, int]:
    """The run ids of the layout commits whose base is tagged, with that base."""
    tags = {str(tag): int(table.refs()[tag].snapshotId()) for tag in table.refs()}
    return {tag.removeprefix(_PREFIX): base for tag, base in tags.items() if tag.startswith(_PREFIX)}
