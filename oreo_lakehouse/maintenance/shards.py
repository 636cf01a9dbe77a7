"""Shards: a partitioned table is decided about by groups of neighbouring partitions, each as if it were a table.

A shard has its own layout, optimizer, ledger and guarantee; its costs are counted in scans of itself. A large partition
is a shard of its own, small ones share one. A shard begins with a partition and reaches to the next one's beginning, so
a partition that comes in between finds its place; beyond the end, once the last shard has its fair size, partitions
that no layout of ours has touched begin new ones. Where shards begin is written down once and never changed.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oreo_lakehouse.config import LayoutSettings, parse_size
from oreo_lakehouse.layouts.blocks import Blocks, ColumnStats, Ints
from oreo_lakehouse.layouts.columnview import all_null
from oreo_lakehouse.store import parsed

if TYPE_CHECKING:
    from oreo_lakehouse.store import Store

GROWTH = 4
"""A table that grows gets at most this many times as many shards as it should have at first."""
_SMALLEST = 2
"""Blocks that a shard should have room for: with one, no layout could skip anything."""
_Key = tuple[tuple[int, int, str], ...]


@dataclass(frozen=True)
class Shard:
    """Some neighbouring partitions of a table."""

    id: str
    first: str
    """The partition that it begins with."""
    label: str
    """For people: its partition, or the first and the last one."""
    partitions: int
    files: Ints
    """Positions of its files in the table's blocks."""


class ShardBook:
    """Where the shards of one table begin."""

    def __init__(self, store: Store, table_uuid: str) -> None:
        self._store, self._folder = store, f"{table_uuid}/shards/book"

    def firsts(self) -> list[str]:
        """The partitions that shards begin with."""
        found: list[str] = []
        for entry in self._store.entries(self._folder):
            try:
                found.append(str(parsed(self._store.read(f"{self._folder}/{entry.name}"))["first"]))
            except (ValueError, KeyError, TypeError):  # its neighbour on the left takes over
                continue
        return found

    def add(self, firsts: Collection[str]) -> None:
        """Write down new beginnings; one that is known stays as it is."""
        for first in firsts:
            self._store.create(f"{self._folder}/{shard_id(first)}.json", json.dumps({"first": first}).encode())


def shard_id(first: str) -> str:
    """The id of the shard that begins with a partition; also the name of its folder in the store."""
    return hashlib.sha256(first.encode()).hexdigest()[:12]


def shard_folder(table_uuid: str, shard: str) -> str:
    """Where a shard's state, ledger and intents are kept: what a table's own UUID is for a table."""
    return f"{table_uuid}/shards/{shard}"


def beginnings(blocks: Blocks, known: Sequence[str], settings: LayoutSettings, ours: Collection[str]) -> list[str]:
    """Where a table's shards begin: where they are known to, and beyond the last one as the table has grown.

    Args:
        blocks: the table's present files.
        known: where shards begin already.
        settings: how many there should be, and how large a file.
        ours: names of the files that runs of ours wrote.
    """
    if not blocks.partitions or settings.shards < 2:
        return []
    texts, inverse = np.unique(np.array(blocks.partitions, object), return_inverse=True)
    sizes = np.bincount(inverse, blocks.sizes, len(texts))
    touched = np.zeros(len(texts), np.bool_)
    touched[inverse[[at for at, name in enumerate(blocks.names) if name in ours]]] = True
    block = blocks.total_bytes / settings.blocks if settings.blocks else parse_size(settings.target_file_size)
    fair = max(blocks.total_bytes / settings.shards, _SMALLEST * block)
    most = GROWTH * settings.shards
    firsts, size = sorted(known, key=partition_order), 0.0
    open_from = partition_order(firsts[-1]) if firsts else ()
    for at in sorted(range(len(texts)), key=lambda at: partition_order(texts[at])):
        if partition_order(texts[at]) < open_from:
            continue
        if not firsts or (size >= fair and len(firsts) < most and (not known or not touched[at])):
            firsts.append(str(texts[at]))
            size = 0.0
        size += float(sizes[at])
    return firsts


def shards_of(blocks: Blocks, firsts: Sequence[str]) -> list[Shard]:
    """The shards that begin with these partitions, in order; none if that is the whole table."""
    if len(firsts) < 2 or not blocks.partitions:
        return []
    texts, inverse = np.unique(np.array(blocks.partitions, object), return_inverse=True)
    firsts = sorted(firsts, key=partition_order)
    keys = [partition_order(first) for first in firsts]
    home = np.array([max(0, bisect_right(keys, partition_order(text)) - 1) for text in texts])
    return [
        _shard(first, [str(text) for text in texts[home == number]], np.flatnonzero(home[inverse] == number))
        for number, first in enumerate(firsts)
        if (home == number).any()
    ]


def _shard(first: str, members: list[str], files: Ints) -> Shard:
    members = sorted(members, key=partition_order)
    label = members[0] if len(members) == 1 else f"{members[0]} … {members[-1]}"
    return Shard(shard_id(first), first, label, len(members), files)


def partition_order(partition: str) -> _Key:
    """The order of partitions: numbers inside a text by their value, so that bucket 10 comes after bucket 9."""
    parts = re.split(r"(\d+)", partition)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part)


def hull(blocks: Blocks) -> Blocks:
    """One block around them all: a query that cannot match it costs nothing in any layout of these rows."""
    return Blocks(
        rows=np.array([blocks.total_rows]),
        columns={name: _around(stats, blocks.rows) for name, stats in blocks.columns.items()},
    )


def _around(stats: ColumnStats, rows: Ints) -> ColumnStats:
    holds = ~all_null(stats, rows)  # a file of NULLs alone has no bounds, and needs none
    nulls = [-1 if (stats.nulls < 0).any() else int(stats.nulls.sum())]

    def known(bounds_known: np.ndarray) -> bool:
        return bool(holds.any() and bounds_known[holds].all())

    low = stats.lower[holds].min() if known(stats.lower_known) else None
    high = stats.upper[holds].max() if known(stats.upper_known) else None
    is_number = stats.kind.dtype != object
    return ColumnStats.of(
        stats.kind,
        [None if low is None else low.item() if is_number else low],
        [None if high is None else high.item() if is_number else high],
        nulls,
    )
