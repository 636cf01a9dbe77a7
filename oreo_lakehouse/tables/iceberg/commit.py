"""The only code that makes files part of a table: one set out, one set in, by one `replace` snapshot.

Before each attempt every outgoing file must still be live with the same deletes on it; the attempt then validates
against just that snapshot, so no commit that came in between goes unseen. An attempt with an unknown outcome is settled
by the run id in the snapshots' summaries, or by trying again: both attempts take out the same files, so at most one of
them can ever land.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.errors import TableError
from oreo_lakehouse.jvm import error_class, error_reason, jvm, root_reason
from oreo_lakehouse.tables.contract import CommitResult, Committed, Conflicted, Unknown
from oreo_lakehouse.tables.iceberg.engine import explained, format_version, version_of
from oreo_lakehouse.tables.iceberg.history import find_run

if TYPE_CHECKING:
    from oreo_lakehouse.tables.iceberg.engine import Engine

ATTEMPTS = 5
_NOT_LANDED = ("ValidationException", "CommitFailedException")
"""The engine's word that an attempt did not land; after anything else it may have."""
_DENIED = ("AccessControlException", "AccessDeniedException", "ForbiddenException", "NotAuthorizedException")


@dataclass(frozen=True)
class Swap:
    """Files out, files in, in the JSON forms that `IcebergSwaps` writes and reads."""

    run_id: str
    removed: Sequence[dict[str, Any]]
    added: Sequence[dict[str, Any]]
    summary: dict[str, str]


def commit_swap(engine: Engine, name: str, load: Callable[[], Any], swap: Swap) -> CommitResult:
    """Commit it, or find out that it has landed already.

    Raises:
        TableError: the table cannot be read and no attempt is under way, or this user may not write it.
    """
    outgoing, incoming = json.dumps(swap.removed), json.dumps(swap.added)
    summary = jvm(engine.spark).java.util.HashMap()
    for key, value in swap.summary.items():
        summary.put(key, value)
    reason, certain = "", True
    for attempt in range(ATTEMPTS + 1):
        try:
            with explained("look at", name):
                table = load()
                current = version_of(table)
                settled = _settled(engine, table, current, swap, outgoing)
        except TableError as error:
            if certain:
                raise
            return Unknown(f"{reason}; then: {error}")
        if settled is not None:
            return settled
        if attempt == ATTEMPTS:
            break
        try:
            sequence = swap.removed[0]["base"]["sequence"]
            engine.swaps.replace(table, current, sequence, outgoing, incoming, summary)
        except Exception as error:
            reason = f"{error_class(error).rpartition('.')[2]}: {error_reason(error)}"
            certain = certain and error_class(error).endswith(_NOT_LANDED)
            if root_reason(error).partition(":")[0].endswith(_DENIED) and find_run(engine, load(), swap.run_id) is None:
                raise TableError(
                    f"the metadata of {name} may not be written by this user, nothing was changed: {root_reason(error)}"
                ) from error
    return Conflicted(f"{reason}.") if certain else Unknown(f"{reason}.")


def _settled(engine: Engine, table: Any, current: int, swap: Swap, outgoing: str) -> CommitResult | None:
    """What is certain without a further attempt. Conflicts are: once an outgoing file has left the table, an earlier
    attempt that is still under way cannot land any more."""
    landed = find_run(engine, table, swap.run_id)
    if landed is not None:
        return Committed(landed)
    if current == -1:
        return Conflicted("the table was emptied.")
    if swap.removed[0]["base"]["format-version"] < 3 <= format_version(table):
        return Conflicted("the table was upgraded to format version 3, whose row lineage the new files lack.")
    incoming = engine.texts(file["file-path"] for file in swap.added)
    obstacle = engine.swaps.obstacle(engine.files.plan(table, current, False), outgoing, incoming)
    return Conflicted(f"{obstacle}.") if obstacle is not None else None
