"""Undoing a layout: swap back the files that it replaced, from what the table's own log says.

RESTORE would lose rows appended since and would look to streams like changed data. The inverse commit does neither,
but Delta lets it commit even when VACUUM has deleted the old files, so every file is looked for first.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from oreo_lakehouse.errors import RollbackError, TableError
from oreo_lakehouse.jvm import error_reason, java_class
from oreo_lakehouse.tables.contract import CommitResult, Committed, LayoutCommit
from oreo_lakehouse.tables.delta.actions import actions
from oreo_lakehouse.tables.delta.committing import attempt
from oreo_lakehouse.tables.delta.log import ACTION, BASE, LAYOUT, RUN, UNDONE_RUN, Log, configuration

MARGIN_SECONDS = 3600
"""A VACUUM that runs just now may delete files whose retention ends within this time."""
_FALLBACK = "Nothing was changed; run oreo-maintain for a new layout instead."


def revert(log: Log, commit: LayoutCommit, run_id: str) -> CommitResult:
    """The inverse of one of our commits; see `Table.revert`."""
    java = actions(log.spark)
    try:
        added, removed = java.change(log.java, log.catalog_table, commit.version)
        before = log.files(log.snapshot(commit.version - 1))
    except Exception as error:
        raise _forgotten(log, commit, error) from error
    now = log.snapshot()
    ours = java.select(log.files(now), java.keys(added), True)
    if ours.size() != added.size():
        raise RollbackError(
            f"{added.size() - ours.size()} of the {added.size()} files that version {commit.version} of {log.sql_name} "
            "wrote have been changed or replaced since (by DML, OPTIMIZE or a later layout), and undoing it would undo "
            f"that too. Undo a later layout first. {_FALLBACK}"
        )
    olds = java.select(before, removed, True)
    if olds.size() != len([key for key in str(removed).split("\n") if key]):
        raise RollbackError(f"the log of {log.sql_name} lacks files before version {commit.version}. {_FALLBACK}")
    _require_same_rows(log, ours, olds, commit)
    _require_restorable(log, now, olds, commit, commit.time)
    note = {ACTION: "rollback", UNDONE_RUN: commit.run_id, "oreo.undone-version": str(commit.version)}
    return attempt(log, now, ours, olds, _message(commit, run_id, now) | note)


def restore(log: Log, commit: LayoutCommit, run_id: str) -> CommitResult:
    """Make the files of an earlier layout live again; see `Table.restore`."""
    java = actions(log.spark)
    now = log.snapshot()
    if now.version() == commit.version:
        return Committed(commit.version)
    try:
        then = log.files(log.snapshot(commit.version))
        appended = java.appended(log.java, log.catalog_table, commit.version + 1, now.version())
    except Exception as error:
        raise _forgotten(log, commit, error) from error
    if isinstance(appended, int):
        raise RollbackError(
            f"version {appended} of {log.sql_name} changed rows that the layout of version {commit.version} holds, so "
            f"its files are out of date. {_FALLBACK}"
        )
    wanted, live = java.union(then, appended), log.files(now)
    leaving = java.select(live, java.keys(wanted), False)
    coming = java.select(wanted, java.keys(live), False)
    if leaving.isEmpty() and coming.isEmpty():
        return Committed(int(now.version()))
    _require_same_rows(log, leaving, coming, commit)
    later = [when for version, when, _ in log.notes(commit.version) if version > commit.version]
    _require_restorable(log, now, coming, commit, min([*later, datetime.now(commit.time.tzinfo)]))
    note = {ACTION: "restore", "oreo.restored-version": str(commit.version)}
    return attempt(log, now, leaving, coming, _message(commit, run_id, now) | note)


def _message(commit: LayoutCommit, run_id: str, now: Any) -> dict[str, str]:
    return {LAYOUT: commit.layout_id, RUN: run_id, BASE: str(now.version())}


def _forgotten(log: Log, commit: LayoutCommit, error: Exception) -> RollbackError:
    return RollbackError(
        f"version {commit.version} of {log.sql_name} is no longer in its log, so the files before it are not known "
        f"({error_reason(error)}). {_FALLBACK}"
    )


def _require_same_rows(log: Log, leaving: Any, coming: Any, commit: LayoutCommit) -> None:
    """A layout changes no rows, so both sides of the swap must count the same; else the log is not what we think."""
    _, _, gone, gone_silent = actions(log.spark).totals(leaving)
    _, _, come, come_silent = actions(log.spark).totals(coming)
    if not (gone_silent or come_silent) and gone != come:
        raise RollbackError(
            f"the files around version {commit.version} of {log.sql_name} hold {come} and {gone} rows, which a layout "
            f"cannot have done. {_FALLBACK}"
        )


def _require_restorable(log: Log, now: Any, files: Any, commit: LayoutCommit, removed: datetime) -> None:
    """Raise `RollbackError` unless removed files can be made live again and stay there."""
    java = actions(log.spark)
    retention = java_class(log.spark, "org.apache.spark.sql.delta.DeltaLog").tombstoneRetentionMillis(now.metadata())
    age = time.time() - removed.timestamp()
    if age > retention / 1000 - MARGIN_SECONDS:
        raise RollbackError(
            f"the files to bring back to {log.sql_name} were replaced {age / 3600:.1f} hours ago, and VACUUM may "
            f"delete them after {retention / 3_600_000:.1f}: raise delta.deletedFileRetentionDuration. {_FALLBACK}"
        )
    if configuration(now).get("delta.enableRowTracking") == "true" and not java.haveRowIds(files):
        raise RollbackError(
            f"row tracking was enabled on {log.sql_name} after version {commit.version}, and its older files have no "
            f"row ids. {_FALLBACK}"
        )
    try:
        gone = [path for path in str(java.missing(log.java, files)).split("\n") if path]
    except Exception as error:
        raise TableError(f"cannot look for the files of {log.sql_name}: {error_reason(error)}") from error
    if gone:
        raise RollbackError(
            f"{len(gone)} of the files before version {commit.version} of {log.sql_name} are gone, deleted by VACUUM "
            f"(first: {gone[0].rsplit('/', 1)[-1]}). {_FALLBACK}"
        )
