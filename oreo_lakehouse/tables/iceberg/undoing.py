"""Undo layouts by commits of metadata alone: the files that a layout replaced come back, with their full statistics.

One layout is undone by its inverse. To return to an earlier layout, all commits of ours since then are undone in one
swap: what one of them added and a later one removed cancels out, and so does what came back in between. Rows that
others appended are no part of any of them, and stay. A shard goes back by undoing its own commits: those of the other
shards are about other files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.errors import RollbackError
from oreo_lakehouse.tables.commits import Part, Returnable, forward
from oreo_lakehouse.tables.iceberg.commit import Swap
from oreo_lakehouse.tables.iceberg.engine import explained, format_version, version_of
from oreo_lakehouse.tables.iceberg.history import layout_commits, return_summary
from oreo_lakehouse.tables.iceberg.retention import kept_until

if TYPE_CHECKING:
    from oreo_lakehouse.tables.contract import LayoutCommit
    from oreo_lakehouse.tables.iceberg.engine import Engine


def way_back(
    engine: Engine, name: str, table: Any, target: LayoutCommit, run_id: str, part: Part | None = None
) -> Swap | None:
    """The swap that makes all files current again which were current after `target`; None if they are.

    Raises:
        RollbackError: it would lose something, or files of that snapshot were replaced by others.
    """
    later = _later(engine, name, table, target, part)
    summary = return_summary(target, run_id, version_of(table), part.shard if part else "")
    swap = inverse_of(engine, name, table, later, run_id, summary)
    leaving = {entry["file"]["file-path"] for entry in swap.removed if "positions" in entry}
    coming = {file["file-path"] for file in swap.added}
    live, wanted = (_paths(engine, table, version) for version in (version_of(table), target.version))
    if not (wanted & part.files if part else wanted) <= (live - leaving) | coming:
        raise _refusal(name, target, "others have replaced files of it, by DML or a rewrite of their own")
    return swap if leaving or coming else None


def returnable(engine: Engine, name: str, table: Any, target: LayoutCommit, part: Part | None = None) -> Returnable:
    """Whether `return_to` would succeed; see `Table.returnable`."""
    try:
        with explained("look into the history of", name):
            if way_back(engine, name, table, target, "", part) is None:
                return Returnable(True, None, "Its files are the table's now.")
            until = kept_until(table, _later(engine, name, table, target, part))
    except RollbackError as error:
        return Returnable(False, None, str(error))
    return Returnable(True, until, "Its files are still there, and no row in them has been changed since.")


def _later(engine: Engine, name: str, table: Any, target: LayoutCommit, part: Part | None) -> list[LayoutCommit]:
    """Our commits after `target` to the table or its part, newest first."""
    ours = layout_commits(engine, table)
    later = list(takewhile(lambda commit: commit.version != target.version, ours))
    if len(later) == len(ours):
        raise _refusal(name, target, f"snapshot {target.version} has expired, or the table was rolled back past it")
    if part is None:
        return later
    if not all(commit.shard for commit in later):
        raise _refusal(name, target, "the whole table was rewritten since, and a part of that cannot be undone alone")
    return [commit for commit in later if commit.shard == part.shard]


def _paths(engine: Engine, table: Any, version: int) -> set[str]:
    return set(json.loads(engine.files.locations(engine.files.plan(table, version, False))))


def inverse_of(
    engine: Engine, name: str, table: Any, commits: Sequence[LayoutCommit], run_id: str, summary: dict[str, str]
) -> Swap:
    """The swap that undoes these commits, given newest first, and nothing else.

    Raises:
        RollbackError: it would lose something; the sentence says what, and what to do instead.
    """
    if not commits:
        return Swap(run_id, [], [], summary)
    newest = commits[0]
    version = format_version(table)
    if version >= 3:
        raise _refusal(name, newest, f"with format version {version} the rows would come back with other row ids")
    outgoing, incoming = _net(engine, name, table, commits)
    lost = engine.files.absent(table, engine.texts(incoming))
    if len(lost):
        raise _refusal(name, newest, f"{len(lost)} of the files that it replaced are gone, such as {lost[0]}")
    laid_out = engine.files.only(engine.files.plan(table, newest.version, False), engine.texts(outgoing))
    # Files that come back count as old as the newest commit's input, so a delete from before it would not reach them.
    if len(laid_out) != len(outgoing) or json.loads(engine.files.totals(laid_out))[3]:
        raise _refusal(name, newest, "rows of an earlier layout were changed before the later one came")
    sequence = table.snapshot(newest.base_version).sequenceNumber()
    removed = json.loads(engine.swaps.outgoing(table, sequence, version, laid_out))
    present = engine.files.plan(table, version_of(table), False)
    obstacle = engine.swaps.obstacle(present, json.dumps(removed), engine.texts([]))
    if obstacle is not None:
        raise _refusal(name, newest, f"the table was changed since ({obstacle})")
    return Swap(run_id, removed, list(incoming.values()), summary)


def _net(
    engine: Engine, name: str, table: Any, commits: Sequence[LayoutCommit]
) -> tuple[set[str], dict[str, dict[str, Any]]]:
    """The files that leave and those that come back when the commits are undone, newest first."""
    outgoing: set[str] = set()
    incoming: dict[str, dict[str, Any]] = {}
    for commit in commits:
        if table.snapshot(commit.version) is None:
            raise _refusal(name, commit, f"its own snapshot {commit.version} has expired")
        if table.snapshot(commit.base_version) is None:
            reason = f"the snapshot before it, {commit.base_version}, has expired, and its files with it"
            raise _refusal(name, commit, reason)
        for path in json.loads(engine.past.changed(table, commit.version, True)):
            if incoming.pop(path, None) is None:
                outgoing.add(path)
        replaced = engine.past.changed(table, commit.version, False)
        tasks = engine.files.only(engine.files.plan(table, commit.base_version, True), engine.files.texts(replaced))
        if json.loads(engine.files.totals(tasks))[3]:
            raise _refusal(name, commit, "the snapshot before it had delete files, which the rewrite has applied")
        back = json.loads(engine.swaps.incoming(table, engine.files.dataFiles(tasks)))
        incoming |= {file["file-path"]: file for file in back}
    both = outgoing & incoming.keys()
    return outgoing - both, {path: file for path, file in incoming.items() if path not in both}


def _refusal(name: str, commit: LayoutCommit, reason: str) -> RollbackError:
    return RollbackError(f"layout {commit.layout_id} of {name} cannot be undone: {reason}. {forward(name)}")
