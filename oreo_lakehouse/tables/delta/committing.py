"""The layout commit: swap staged files in, whatever others commit in the meantime.

A commit always starts from the newest snapshot, and only after every input is found there with the very deletion
vector that was rewritten. Delta checks what lands after that snapshot; it does not check removes against the snapshot
itself (proven: a deleted row came back), so the liveness check here is what keeps rows from being lost or doubled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oreo_lakehouse.errors import TableError
from oreo_lakehouse.jvm import error_class, error_reason, root_reason
from oreo_lakehouse.tables.contract import CommitResult, Committed, Conflicted, Staged, Unknown
from oreo_lakehouse.tables.delta.actions import actions
from oreo_lakehouse.tables.delta.commitnotes import ACTION, BASE, LAYOUT, RUN, of_shard
from oreo_lakehouse.tables.delta.features import refuse_unsupported
from oreo_lakehouse.tables.delta.log import Log, configuration, partition_columns, schema_of
from oreo_lakehouse.tables.delta.staging import added_files

ATTEMPTS = 20
"""Each one lost to another writer's commit; a table busier than that is left for a quieter hour."""
_CONFLICTS = ("Concurrent", "MetadataChanged", "ProtocolChanged")


def commit(log: Log, staged: Staged, note: Mapping[str, str]) -> CommitResult:
    """Make the staged files the table's; see `Table.commit`."""
    message = {
        **note,
        LAYOUT: staged.layout_id,
        RUN: staged.run_id,
        ACTION: staged.action,
        BASE: str(staged.base_version),
        "oreo.rows": str(staged.certificate.rows),
        "oreo.checksum": staged.certificate.checksum,
        **of_shard(staged.shard),
    }
    added = added_files(log, staged)
    keys = "\n".join(str(item["key"]) for item in staged.removed)
    reason = ""
    for _ in range(ATTEMPTS):
        now = log.snapshot()
        inputs = actions(log.spark).select(log.files(now), keys, True)
        if inputs.size() != len(staged.removed):
            done = log.landed(staged.run_id, staged.base_version)
            return Conflicted(_gone(staged, inputs.size())) if done is None else Committed(done)
        changed = _incompatible(log, staged.base_version, now)
        if changed:
            return Conflicted(changed)
        result = attempt(log, now, inputs, added, message)
        if not isinstance(result, Conflicted):
            return result
        reason = result.reason
    return Conflicted(f"other commits were faster {ATTEMPTS} times in a row, at last: {reason}")


def attempt(log: Log, snapshot: Any, removed: Any, added: Any, message: Mapping[str, str]) -> CommitResult:
    """One transaction; `Conflicted` when Delta itself proved that another commit came first."""
    try:
        return Committed(log.swap(snapshot, removed, added, message))
    except Exception as error:
        name = error_class(error).rsplit(".", 1)[-1]
        if name.startswith(_CONFLICTS) or name.endswith("ConcurrentModificationException"):
            return Conflicted(error_reason(error))
        # Anything else may have struck after the commit, in a hook or a checkpoint: the log knows.
        try:
            done = log.landed(message[RUN], int(snapshot.version()))
        except Exception as second:
            return Unknown(f"{error_reason(error)}; and the log cannot be read: {error_reason(second)}")
        if done is not None:
            return Committed(done)
        if "AccessControlException" in root_reason(error) or "Permission denied" in root_reason(error):
            raise TableError(
                f"the log of {log.sql_name} may not be written by this user, nothing was changed: {root_reason(error)}"
            ) from error
        return Unknown(error_reason(error))


def _gone(staged: Staged, left: int) -> str:
    total = len(staged.removed)
    return (
        f"{total - left} of {total} files that were rewritten have been changed or replaced by another commit since; "
        "nothing of it is lost."
    )


def _incompatible(log: Log, version: int, now: Any) -> str:
    """Why files written for a version do not fit the table as it is now, or ""."""
    if version == now.version():
        return ""
    base = log.snapshot(version)
    try:
        refuse_unsupported(log.sql_name, now)
    except TableError as error:
        return str(error)
    present = {field.name: field for field in schema_of(now).fields}
    for field in schema_of(base).fields:
        if field.name not in present:
            return f"column {field.name} has been dropped or renamed since the files were written."
        if present[field.name].dataType != field.dataType:
            return f"column {field.name} has changed its type since the files were written."
        if _mapping(present[field.name]) != _mapping(field):
            return f"column {field.name} has been dropped and added again since the files were written."
    if partition_columns(base) != partition_columns(now):
        return "the table has been partitioned in another way since the files were written."
    for key in ("delta.enableRowTracking", "delta.columnMapping.mode"):
        if configuration(base).get(key) != configuration(now).get(key):
            return f"the table property {key} has been changed since the files were written."
    return ""


def _mapping(field: Any) -> Any:
    return {key: value for key, value in field.metadata.items() if key.startswith("delta.columnMapping")}
