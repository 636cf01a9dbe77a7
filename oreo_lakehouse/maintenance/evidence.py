"""What a decision rests on, read once at the start of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from oreo_lakehouse.config import LayoutSettings, parse_size
from oreo_lakehouse.history.querybatch import workload_of
from oreo_lakehouse.maintenance.dossier import Dossier, live_layout
from oreo_lakehouse.maintenance.weighing import weights_of
from oreo_lakehouse.reorganizer.online import INITIAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oreo_lakehouse.history.record import QueryRecord
    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.layouts.skipping import Mode
    from oreo_lakehouse.predicates.values import Kind
    from oreo_lakehouse.predicates.workload import Weights, Workload
    from oreo_lakehouse.tables.contract import LayoutCommit

RECENT = 1000
"""Of the new queries: what costs before and after a move are told over."""
_ROWS_A_BLOCK = 100
"""Sampled rows that a block needs to be judged at all; a table for more blocks gets several files a block."""


@dataclass(frozen=True)
class Evidence:
    """The table as it is, and the queries that nobody has decided about yet."""

    version: int
    live: LayoutCommit | None
    """The commit whose layout the table has."""
    blocks: Blocks
    schema: dict[str, Kind]
    queries: Sequence[QueryRecord]
    wanted_blocks: int
    weights: Weights | None = None
    """Of the queries, where bytes count and not rows; see `weighing`."""
    blocks_together: int = 0
    """Of a shard: the wanted blocks of all shards that this run decides about, which share its work."""

    @property
    def current(self) -> str:
        return self.live.layout_id if self.live else INITIAL

    @property
    def share(self) -> float:
        """Of the run's work that may be spent on this table or shard."""
        return self.wanted_blocks / max(self.wanted_blocks, self.blocks_together, 1)

    def recent(self) -> Workload:
        """The latest of the new queries, as they weigh."""
        weights = None if self.weights is None else self.weights[-RECENT:]
        return workload_of(self.queries[-RECENT:]).weighted(weights)

    def queries_a_day(self) -> float:
        """How often the table is asked, by the new queries' times."""
        if len(self.queries) < 2:
            return float(len(self.queries))
        seconds = (self.queries[-1].time_us - self.queries[0].time_us) / 1e6
        return len(self.queries) / max(seconds / 86_400, 1 / 24)

    def layout_age(self) -> float | None:
        """Seconds since the live layout was committed."""
        return None if self.live is None else (datetime.now(UTC) - self.live.time).total_seconds()


def files_now(dossier: Dossier, mode: Mode) -> tuple[int, Blocks]:
    """The table's version and its files; in `bid` mode with all that pruning knows of them."""
    table = dossier.table
    version = table.version()
    blocks = table.blocks(version)
    if mode == "bid":
        enriched = dossier.facts.enrich(blocks, table.column_keys())
        blocks = replace(enriched, names=blocks.names, partitions=blocks.partitions)
    return version, blocks


def observe(
    dossier: Dossier,
    version: int,
    blocks: Blocks,
    queries: Sequence[QueryRecord],
    settings: LayoutSettings,
    sizes: Mapping[str, int] | None = None,
) -> Evidence:
    """What there is to decide by, for a table or one of its shards; `sizes` as in `weights_of`."""
    wanted = wanted_blocks(blocks, dossier.shard.partitions if dossier.shard else 1, settings)
    live, weights = live_layout(dossier.table), weights_of(queries, sizes)
    return Evidence(version, live, blocks, dossier.table.schema(), queries, wanted, weights)


def wanted_blocks(blocks: Blocks, partitions: int, settings: LayoutSettings) -> int:
    """How many blocks a layout of these files should have."""
    # Every partition has files of its own, so of a shard's blocks each partition gets one file each.
    by_size = max(1, round(blocks.total_bytes / partitions / parse_size(settings.target_file_size)))
    return settings.blocks or min(by_size, max(2, settings.sample_rows // _ROWS_A_BLOCK))


def obstacle(evidence: Evidence, name: str, seen: int, target_file_size: str) -> str | None:
    """Why there is nothing to decide, or None."""
    if not evidence.queries:
        if seen == 0:
            return f"no query history yet: `oreo history import {name} FILE` adds one"
        return f"no new queries since the last run ({seen} seen in all)"
    if evidence.blocks.total_rows == 0:
        return "the table is empty"
    if evidence.wanted_blocks < 2:
        return (
            f"the table fits in one file of {target_file_size} (layout.target_file_size): no layout could skip anything"
        )
    return None
