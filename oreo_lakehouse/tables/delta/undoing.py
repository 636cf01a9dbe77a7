"""Undoing a layout: swap back the files that it replaced, from what the table's own log says.

RESTORE would lose rows appended since and would look to streams like changed data. The inverse commit does neither,
but Delta lets it commit even when VACUUM has deleted the old files, so every file is looked for first.
"""

from __future__ import annotations

import time
from typing import Any

from oreo_lakehouse.errors import RollbackError, TableError
from oreo_lakehouse.jvm import error_reason, java_class
from oreo_lakehouse.tables.contract import CommitResult, LayoutCommit
from oreo_lakehouse.tables.delta.actions import actions
from oreo_lakehouse.tables.delta.committing import attempt
from oreo_lakehouse.tables.delta.log import ACTION, BASE, LAYOUT, RUN, UNDONE_RUN, Log, configuration

MARGIN_SECONDS = 3600
"""A VACUUM that runs just now may delete files whose retention ends within this time."""


def revert(log: Log, commit: LayoutCommit, run_id: str) -> CommitResult:
    """The inverse of one of our commits; see `Table.revert`."""
    java = actions(log.spark)
    try:
        added, removed, _, _ = java.change(log.java, log.catalog_table, commit.version)
        before = log.snapshot(commit.version - 1)
    except Exception as error:
        raise RollbackError(
            f"version {commit.version} of {log.sql_name} is no longer in its log, so the files before it are not known "
            f"({error_reason(error)}). Run oreo-maintain for a new layout instead."
        ) from error
    now = log.snapshot()
    ours = java.select(log.files(now), java.keys(added), True)
    if ours.size() != added.size():
        raise RollbackError(
            f"{added.size() - ours.size()} of the {added.size()} files that version {commit.version} of {log.sql_name} "
            "wrote have been changed or replaced since (by DML, OPTIMIZE or a later layout), and undoing "
            "it would undo that too. Undo a later layout first, or run oreo-maintain for a new one."
        )
    olds = java.select(log.files(before), removed, True)
    if olds.size() != len([key for key in str(removed).split("\n") if key]):
        raise RollbackError(
            f"the log of {log.sql_name} does not list every file that version {commit.version} replaced."
        )
    require_restorable(log, now, olds, commit)
    message = {
        LAYOUT: commit.layout_id,
        RUN: run_id,
        ACTION: "rollback",
        BASE: str(now.version()),
        UNDONE_RUN: commit.run_id,
        "oreo.undone-version": str(commit.version),
    }
    return attempt(log, now, ours, olds, message)


def require_restorable(log: Log, now: Any, files: Any, commit: LayoutCommit) -> None:
    """Raise `RollbackError` unless removed files can be made live again and stay there."""
    java = actions(log.spark)
    retention = java_class(log.spark, "org.apache.spark.sql.delta.DeltaLog").tombstoneRetentionMillis(now.metadata())
    age = time.time() - commit.time.timestamp()
    if age > retention / 1000 - MARGIN_SECONDS:
        raise RollbackError(
            f"version {commit.version} of {log.sql_name} replaced its files {age / 3600:.0f} hours ago, and VACUUM may "
            f"delete them after {retention / 3_600_000:.0f} (delta.deletedFileRetentionDuration): raise that first, "
            "or run oreo-maintain for a new layout."
        )
    if configuration(now).get("delta.enableRowTracking") == "true" and not java.haveRowIds(files):
        raise RollbackError(
            f"row tracking was enabled on {log.sql_name} after version {commit.version}, and its older files have no "
            "row ids. Run oreo-maintain for a new layout instead."
        )
    try:
        gone = [path for path in str(java.missing(log.java, files)).split("\n") if path]
    except Exception as error:
        raise TableError(f"cannot look for the files of {log.sql_name}: {error_reason(error)}") from error
    if gone:
        raise RollbackError(
            f"{len(gone)} of the files before version {commit.version} of {log.sql_name} are gone, deleted by VACUUM "
            f"(first: {gone[0].rsplit('/', 1)[-1]}). Nothing was changed; run oreo-maintain for a new layout."
        )
