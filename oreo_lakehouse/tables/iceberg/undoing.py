"""Undo layouts by commits of metadata alone: the files that a layout replaced come back, with their full statistics.

One layout is undone by its inverse. To return to an earlier layout, all commits of ours since then are undone in one
swap: what one of them added and a later one removed cancels out. Rows that others appended are no part of any of them,
and stay.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.errors import RollbackError
from oreo_lakehouse.tables.iceberg.commit import Swap
from oreo_lakehouse.tables.iceberg.engine import format_version, version_of

if TYPE_CHECKING:
    from oreo_lakehouse.tables.contract import LayoutCommit
    from oreo_lakehouse.tables.iceberg.engine import Engine

_FALLBACK = "instead, let oreo-maintain move the table forward to another layout, or keep this one: its rows are right."


def inverse_of(
    engine: Engine, name: str, table: Any, commits: Sequence[LayoutCommit], run_id: str, summary: dict[str, str]
) -> Swap:
    """The swap that undoes these commits, given newest first, and nothing else.

    Raises:
        RollbackError: it would lose something; the sentence says what, and what to do instead.
    """

    def refuse(reason: str) -> RollbackError:
        return RollbackError(f"layout {commits[0].layout_id} of {name} cannot be undone: {reason}; {_FALLBACK}")

    version = format_version(table)
    if version >= 3:
        raise refuse(f"with format version {version} the rows would come back with other row ids")
    outgoing: set[str] = set()
    incoming: dict[str, dict[str, Any]] = {}
    for commit in commits:
        if table.snapshot(commit.version) is None:
            raise refuse(f"its own snapshot {commit.version} has expired")
        if table.snapshot(commit.base_version) is None:
            raise refuse(f"the snapshot before it, {commit.base_version}, has expired, and its files with it")
        for path in json.loads(engine.files.changed(table, commit.version, True)):
            if incoming.pop(path, None) is None:
                outgoing.add(path)
        replaced = engine.files.changed(table, commit.version, False)
        tasks = engine.files.only(engine.files.plan(table, commit.base_version, True), engine.files.texts(replaced))
        if json.loads(engine.files.totals(tasks))[3]:
            raise refuse("the snapshot before it had delete files, which the rewrite has applied")
        back = json.loads(engine.swaps.incoming(table, engine.files.dataFiles(tasks)))
        incoming |= {file["file-path"]: file for file in back}
    lost = engine.files.absent(table, engine.texts(incoming))
    if len(lost):
        raise refuse(f"{len(lost)} of the files that it replaced are gone, such as {lost[0]}")
    newest = commits[0]
    laid_out = engine.files.only(engine.files.plan(table, newest.version, False), engine.texts(outgoing))
    if len(laid_out) != len(outgoing):
        raise refuse("rows of an earlier layout were changed before the later one came")
    sequence = table.snapshot(newest.base_version).sequenceNumber()
    removed = json.loads(engine.swaps.outgoing(table, sequence, version, laid_out))
    present = engine.files.plan(table, version_of(table), False)
    obstacle = engine.swaps.obstacle(present, json.dumps(removed), engine.texts([]))
    if obstacle is not None:
        raise refuse(f"the table was changed since ({obstacle})")
    return Swap(run_id, removed, list(incoming.values()), summary)
