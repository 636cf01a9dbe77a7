"""Undoing a layout: swap back the files that it replaced, from what the table's own log says.

RESTORE would lose rows appended since and would look to streams like changed data. The inverse commit does neither,
but Delta lets it commit even when VACUUM has deleted the old files, so every file is looked for first.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from oreo_lakehouse.errors import RollbackError, TableError
from oreo_lakehouse.jvm import error_reason, java_class
from oreo_lakehouse.tables.commits import (
    RETURN,
    ROLLBACK,
    CommitResult,
    Committed,
    LayoutCommit,
    Part,
    Returnable,
    forward,
)
from oreo_lakehouse.tables.delta.actions import actions, past
from oreo_lakehouse.tables.delta.commitnotes import ACTION, BASE, LAYOUT, RUN, UNDONE_RUN, of_shard
from oreo_lakehouse.tables.delta.committing import attempt
from oreo_lakehouse.tables.delta.log import Log, configuration

MARGIN_SECONDS = 3600
"""A VACUUM that runs just now may delete files whose retention ends within this time."""


@dataclass(frozen=True)
class _Swap:
    """Files that leave a snapshot and files that come back to it, all of which are there; Java lists of AddFile."""

    now: Any
    leaving: Any
    coming: Any
    until: datetime | None
    """From when on VACUUM may delete what comes back; None if nothing does."""


def revert(log: Log, commit: LayoutCommit, run_id: str) -> CommitResult:
    """The inverse of one of our commits; see `Table.revert`."""
    java = actions(log.spark)
    try:
        added, removed = past(log.spark).change(log.java, log.catalog_table, commit.version)
        before = log.files(log.snapshot(commit.version - 1))
    except Exception as error:
        raise _forgotten(log, commit, error) from error
    now = log.snapshot()
    ours = java.select(log.files(now), java.keys(added), True)
    if ours.size() != added.size():
        raise RollbackError(
            f"{added.size() - ours.size()} of the {added.size()} files that version {commit.version} of {log.sql_name} "
            "wrote have been changed or replaced since (by DML, OPTIMIZE or a later layout), and undoing it would undo "
            f"that too. Undo a later layout first. {forward(log.sql_name)}"
        )
    olds = java.select(before, removed, True)
    if olds.size() != len([key for key in str(removed).split("\n") if key]):
        raise RollbackError(
            f"the log of {log.sql_name} lacks files before version {commit.version}. {forward(log.sql_name)}"
        )
    swap = _checked(log, now, ours, olds, commit)
    note = {ACTION: ROLLBACK, UNDONE_RUN: commit.run_id, "oreo.undone-version": str(commit.version)}
    return _committed(log, swap, commit, run_id, note)


def return_to(log: Log, commit: LayoutCommit, run_id: str, part: Part | None = None) -> CommitResult:
    """Make the files of an earlier layout live again; see `Table.return_to`."""
    swap = _way_back(log, commit, part)
    if swap.leaving.isEmpty() and swap.coming.isEmpty():
        return Committed(int(swap.now.version()))
    note = {ACTION: RETURN, UNDONE_RUN: commit.run_id, "oreo.returned-version": str(commit.version)}
    return _committed(log, swap, replace(commit, shard=part.shard) if part else commit, run_id, note)


def returnable(log: Log, commit: LayoutCommit, part: Part | None = None) -> Returnable:
    """Whether `return_to` would succeed; see `Table.returnable`."""
    try:
        swap = _way_back(log, commit, part)
    except RollbackError as error:
        return Returnable(False, None, str(error))
    if swap.until is None:
        return Returnable(True, None, "Its files are the table's now.")
    return Returnable(True, swap.until, "Its files are still there, and no row has been changed since.")


def _way_back(log: Log, commit: LayoutCommit, part: Part | None) -> _Swap:
    java, now = actions(log.spark), log.snapshot()
    live = log.files(now)
    try:
        then = log.files(log.snapshot(commit.version))
        where = java.partitions(java.union(live, then), "\n".join(part.files)) if part else None
        appended = past(log.spark).appended(log.java, log.catalog_table, commit.version, now.version(), where)
    except Exception as error:
        raise _forgotten(log, commit, error) from error
    if isinstance(appended, int):
        raise RollbackError(
            f"version {appended} of {log.sql_name} changed rows that the layout of version {commit.version} holds, so "
            f"its files are out of date. {forward(log.sql_name)}"
        )
    if part:
        live, then = java.inside(live, where), java.inside(then, where)
    wanted = java.union(then, appended)
    leaving = java.select(live, java.keys(wanted), False)
    return _checked(log, now, leaving, java.select(wanted, java.keys(live), False), commit)


def _committed(log: Log, swap: _Swap, commit: LayoutCommit, run_id: str, note: dict[str, str]) -> CommitResult:
    message = {LAYOUT: commit.layout_id, RUN: run_id, BASE: str(swap.now.version()), **of_shard(commit.shard)}
    return attempt(log, swap.now, swap.leaving, swap.coming, message | note)


def _forgotten(log: Log, commit: LayoutCommit, error: Exception) -> RollbackError:
    return RollbackError(
        f"version {commit.version} of {log.sql_name} is no longer in its log, so the files before it are not known "
        f"({error_reason(error)}). {forward(log.sql_name)}"
    )


def _checked(log: Log, now: Any, leaving: Any, coming: Any, commit: LayoutCommit) -> _Swap:
    """Raise `RollbackError` unless the swap changes no row, and what comes back can be made live again and stay there.

    A layout changes no rows, so both sides must count the same; else the log is not what we think.
    """
    java = actions(log.spark)
    _, _, gone, gone_silent = java.totals(leaving)
    _, _, come, come_silent = java.totals(coming)
    if not (gone_silent or come_silent) and gone != come:
        raise RollbackError(
            f"the files around version {commit.version} of {log.sql_name} hold {come} and {gone} rows, which a layout "
            f"cannot have done. {forward(log.sql_name)}"
        )
    if coming.isEmpty():
        return _Swap(now, leaving, coming, None)
    try:
        missing = [path for path in str(java.missing(log.java, coming)).split("\n") if path]
    except Exception as error:
        raise TableError(f"cannot look for the files of {log.sql_name}: {error_reason(error)}") from error
    if missing:
        raise RollbackError(
            f"{len(missing)} of the files before version {commit.version} of {log.sql_name} are gone, deleted by "
            f"VACUUM (first: {missing[0].rsplit('/', 1)[-1]}). {forward(log.sql_name)}"
        )
    until = _kept_until(log, now, coming)
    if configuration(now).get("delta.enableRowTracking") == "true" and not java.haveRowIds(coming):
        raise RollbackError(
            f"row tracking was enabled on {log.sql_name} after version {commit.version}, and its older files have no "
            f"row ids. {forward(log.sql_name)}"
        )
    return _Swap(now, leaving, coming, until)


def _kept_until(log: Log, now: Any, files: Any) -> datetime:
    """Until when VACUUM leaves removed files alone, with a margin; raises `RollbackError` if that is over."""
    retention = java_class(log.spark, "org.apache.spark.sql.delta.DeltaLog").tombstoneRetentionMillis(now.metadata())
    removed = past(log.spark).firstRemoval(now, files) / 1000
    end = removed + retention / 1000 - MARGIN_SECONDS
    if end < time.time():
        age = "longer ago than the log remembers" if removed < 0 else f"{(time.time() - removed) / 3600:.1f} hours ago"
        raise RollbackError(
            f"the files to bring back to {log.sql_name} were replaced {age}, and VACUUM may delete them after "
            f"{retention / 3_600_000:.1f} hours: raise delta.deletedFileRetentionDuration. {forward(log.sql_name)}"
        )
    return datetime.fromtimestamp(end, UTC)
