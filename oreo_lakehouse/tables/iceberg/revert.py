"""The inverse of a layout commit: the layout's files out, the replaced ones back in, with their full statistics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.errors import RollbackError
from oreo_lakehouse.jvm import java_list
from oreo_lakehouse.tables.iceberg.commit import Swap
from oreo_lakehouse.tables.iceberg.history import rollback_summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.tables.contract import LayoutCommit

_FALLBACK = "instead, let oreo-maintain move the table forward to another layout, or keep this one: its rows are right."


def inverse_of(spark: SparkSession, files: Any, name: str, table: Any, commit: LayoutCommit, run_id: str) -> Swap:
    """What undoes the commit and nothing else.

    Raises:
        RollbackError: undoing would lose something; the sentence says what and what to do instead.
    """

    def refuse(reason: str) -> RollbackError:
        return RollbackError(f"layout {commit.layout_id} of {name} cannot be undone: {reason}; {_FALLBACK}")

    version = int(table.operations().current().formatVersion())
    if version >= 3:
        raise refuse(f"with format version {version} the rows would come back with other row ids")
    if table.snapshot(commit.version) is None:
        raise refuse(f"its own snapshot {commit.version} has expired")
    if table.snapshot(commit.base_version) is None:
        raise refuse(f"the snapshot before it, {commit.base_version}, has expired, and its files with it")
    tasks = files.plan(table, commit.base_version, True)
    if json.loads(files.totals(tasks))[3]:
        raise refuse("the snapshot before it had delete files, which the rewrite has applied")
    lost = files.absent(table, files.paths(tasks))
    if len(lost):
        raise refuse(f"{len(lost)} of the files that it replaced are gone, such as {lost[0]}")
    laid_out = files.addedTasks(table, commit.version)
    removed = json.loads(files.describeReplaced(table, commit.base_version, version, laid_out))
    added = json.loads(files.describe(table, files.dataFiles(tasks)))
    obstacle = files.obstacle(table, table.currentSnapshot().snapshotId(), json.dumps(removed), java_list(spark, []))
    if obstacle is not None:
        raise refuse(f"the table was changed since ({obstacle})")
    return Swap(run_id, removed, added, rollback_summary(commit, run_id))
