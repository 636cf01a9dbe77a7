"""Commits of ours: what they are called, how one ends, and what the table's own history tells of them later."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

LAYOUT, FOLD, ROLLBACK, RETURN = "layout", "fold", "rollback", "return"
"""What a commit of ours does; see `LayoutCommit.action`."""


@dataclass(frozen=True)
class Committed:
    """The layout is visible as this version."""

    version: int


@dataclass(frozen=True)
class Conflicted:
    """It certainly did not land; the staged files may be discarded. The reason is a sentence."""

    reason: str


@dataclass(frozen=True)
class Unknown:
    """It may or may not have landed: discard nothing, look for the run id later."""

    reason: str


CommitResult: TypeAlias = Committed | Conflicted | Unknown


@dataclass(frozen=True)
class LayoutCommit:
    """A commit of ours, found in the table's own history."""

    version: int
    layout_id: str
    run_id: str
    time: datetime
    action: str
    """`layout` rewrote every file of the table or shard, `fold` some of them; `rollback` undid one commit, `return` all
    after another."""
    base_version: int
    layout_run_id: str = ""
    """Of a rollback: the run id of the commit that it undid. Of a return: that of the commit that it went back to."""
    shard: str = ""
    """The shard whose files it changed: some partitions of the table; "" for the table as a whole."""


@dataclass(frozen=True)
class Part:
    """The part of a table that goes back to an earlier layout on its own: a shard, which is some whole partitions."""

    shard: str
    files: frozenset[str]
    """Names of its files, as in `Blocks.names`, both those of that time and those of now."""


@dataclass(frozen=True)
class Returnable:
    """Whether the files of an earlier commit of ours can be made current again without rewriting a row."""

    possible: bool
    until: datetime | None
    """From when on the table's own clean-up may delete what is needed; None where nothing is, or nothing can be."""
    reason: str
    """A sentence."""


@dataclass(frozen=True)
class ForeignRewrite:
    """A commit of somebody else's that took files of ours out of the table."""

    version: int
    operation: str
    """In the format's own words: OPTIMIZE, DELETE, …; replace, overwrite, …"""
    time: datetime
    files: tuple[str, ...]
    """Names of the files, as in `Blocks.names`."""


def forward(name: str) -> str:
    """The way out when a layout cannot be undone, as a command to copy.

    >>> forward("shop.orders")
    'Nothing was changed; `oreo-maintain shop.orders` moves the table forward to a new layout instead.'
    """
    return f"Nothing was changed; `oreo-maintain {shlex.quote(name)}` moves the table forward to a new layout instead."
