"""How a table stands: format, version, files, the layout it has, its clustering health, the last decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.config import Config, load_config, parse_size
from oreo_lakehouse.maintenance.dossier import live_layouts
from oreo_lakehouse.maintenance.health import Health, best_known, health, skipping
from oreo_lakehouse.maintenance.ledger import Ledger, LedgerLine
from oreo_lakehouse.maintenance.ledgerfacts import count, number, numbers
from oreo_lakehouse.maintenance.offline import TableView, open_offline, open_view
from oreo_lakehouse.maintenance.recent import DAYS, Recent, recent_queries
from oreo_lakehouse.maintenance.shards import ShardBook, shard_folder, shards_of
from oreo_lakehouse.maintenance.state import StateStore
from oreo_lakehouse.maintenance.story import INITIAL, Story, read_story

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import SparkSession

    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.maintenance.pruned import PruningEffect


@dataclass(frozen=True)
class BestKnown:
    """The layout that would have skipped most of what the last days asked, of those that runs have priced."""

    layout_id: str
    layout: str
    skips: float
    """Share of the rows."""
    actual: float
    """What was really skipped by the same queries."""
    queries: int


@dataclass(frozen=True)
class ShardStatus:
    """How one shard of a partitioned table stands."""

    shard: str
    partitions: int
    rows: int
    files: int
    bytes: int
    layout_id: str | None
    layout: str | None
    queries_seen: int
    last_decision: LedgerLine | None

    def to_json(self) -> dict[str, Any]:
        return {
            "shard": self.shard,
            "partitions": self.partitions,
            "rows": self.rows,
            "files": self.files,
            "bytes": self.bytes,
            "layout_id": self.layout_id,
            "layout": self.layout,
            "queries_seen": self.queries_seen,
            "last_decision": _decision_json(self.last_decision),
        }


@dataclass(frozen=True)
class TableStatus:
    """Facts about a table now."""

    table: str
    format: str
    uuid: str
    location: str
    version: int
    rows: int
    files: int
    bytes: int
    layout_id: str | None
    layout: str | None
    """The live layout in words."""
    layout_version: int | None
    layout_time: datetime | None
    queries_seen: int
    queries_waiting: int
    last_decision: LedgerLine | None
    store: str
    notices: tuple[str, ...] = ()
    health: Health | None = None
    recent: Recent | None = None
    """The queries that health was judged by."""
    best: BestKnown | None = None
    mode: str = "native"
    """What decisions count as skipped."""
    pruning: PruningEffect | None = None
    """What pruning saved of the recent queries; None where it was not on."""
    shards: tuple[ShardStatus, ...] = ()
    """Of a partitioned table; then `layout` is one of the whole table from before it had shards, or None."""

    def to_json(self) -> dict[str, Any]:
        recent, best = self.recent, self.best
        shown: dict[str, Any] | None = None
        if self.health is not None:
            shown = self.health.to_json()
            shown["queries_since"] = recent.since.isoformat() if recent else None
            shown["queries_until"] = recent.until.isoformat() if recent else None
            shown["best_known"] = (
                {
                    "layout_id": best.layout_id,
                    "layout": best.layout,
                    "rows": best.skips,
                    "actual_rows": best.actual,
                    "queries": best.queries,
                }
                if best
                else None
            )
        return {
            "table": self.table,
            "format": self.format,
            "uuid": self.uuid,
            "location": self.location,
            "version": self.version,
            "rows": self.rows,
            "files": self.files,
            "bytes": self.bytes,
            "layout_id": self.layout_id,
            "layout": self.layout,
            "layout_version": self.layout_version,
            "layout_time": self.layout_time.isoformat() if self.layout_time else None,
            "queries_seen": self.queries_seen,
            "queries_waiting": self.queries_waiting,
            "mode": self.mode,
            "pruning": self.pruning.to_json() if self.pruning else None,
            "health": shown,
            "last_decision": _decision_json(self.last_decision),
            "shards": [shard.to_json() for shard in self.shards],
            "store": self.store,
            "notices": list(self.notices),
        }


def _decision_json(line: LedgerLine | None) -> dict[str, Any] | None:
    return {"time": line.time.isoformat(), **line.facts} if line else None


def status(spark: SparkSession, table: str, config: Config | None = None) -> TableStatus:
    """Read how the table stands; changes nothing."""
    config = load_config() if config is None else config
    view = open_view(spark, table, config)
    blocks = view.table.blocks()
    assert blocks is not None
    return status_of(view, blocks, config)


def offline_status(table: str, config: Config | None = None) -> TableStatus | None:
    """The same without Spark, or None where the table cannot be read without it."""
    config = load_config() if config is None else config
    view = open_offline(table, config)
    blocks = None if view is None else view.table.blocks()
    return None if view is None or blocks is None else status_of(view, blocks, config)


def status_of(view: TableView, blocks: Blocks, config: Config) -> TableStatus:
    """How a table stands whose files are read already."""
    identity, live = view.identity, live_layouts(view.table).get("")
    mode = config.for_table(identity.name).decide.skipping
    rich = view.facts.enrich(blocks, view.table.column_keys())
    state, notices = view.states.load(set_aside=False)
    waiting, _ = view.history.read_since(state.cursor)
    story = read_story(view.ledger.lines())
    recent = recent_queries(view.history, blocks.total_rows)
    return TableStatus(
        table=identity.name,
        format=identity.format,
        uuid=identity.uuid,
        location=identity.location,
        version=view.table.version(),
        rows=blocks.total_rows,
        files=len(blocks),
        bytes=blocks.total_bytes,
        layout_id=live.layout_id if live else None,
        layout=story.names.get(live.layout_id) if live else None,
        layout_version=live.version if live else None,
        layout_time=live.time if live else None,
        queries_seen=state.queries,
        queries_waiting=len(waiting),
        last_decision=story.decisions[-1] if story.decisions else None,
        store=view.store.root,
        notices=tuple(notices),
        health=health(
            rich if mode == "bid" else blocks,
            recent.columns if recent else (),
            recent.workload if recent else None,
            parse_size(config.layout.target_file_size),
            mode,
        ),
        recent=recent,
        best=_best(story, recent),
        mode=mode,
        pruning=_promised(recent, blocks, rich),
        shards=_shards(view, blocks),
    )


def _promised(recent: Recent | None, blocks: Blocks, rich: Blocks) -> PruningEffect | None:
    """What pruning did, beside what the facts of the present files say that it does for the same queries."""
    if recent is None or recent.pruning is None or rich is blocks:
        return recent.pruning if recent else None
    beyond = skipping(rich, recent.workload, "bid").rows - skipping(blocks, recent.workload).rows
    return replace(recent.pruning, predicted=max(0.0, beyond))


def _shards(view: TableView, blocks: Blocks) -> tuple[ShardStatus, ...]:
    uuid, live = view.identity.uuid, live_layouts(view.table)
    found: list[ShardStatus] = []
    for shard in shards_of(blocks, ShardBook(view.store, uuid).firsts()):
        folder = shard_folder(uuid, shard.id)
        story, mine = read_story(Ledger(view.store, folder).lines()), blocks.take(shard.files)
        commit = live.get(shard.id, live.get(""))
        status = ShardStatus(
            shard=shard.label,
            partitions=shard.partitions,
            rows=mine.total_rows,
            files=len(mine),
            bytes=mine.total_bytes,
            layout_id=commit.layout_id if commit else None,
            layout=story.names.get(commit.layout_id) if commit else None,
            queries_seen=StateStore(view.store, folder).load(set_aside=False)[0].queries,
            last_decision=story.decisions[-1] if story.decisions else None,
        )
        found.append(status)
    return tuple(found)


def _best(story: Story, recent: Recent | None) -> BestKnown | None:
    """By what runs of the last days priced; by the last decision's recent queries where they priced nothing yet."""
    until = recent.until if recent else story.ended
    since = until - timedelta(days=DAYS) if until else None
    lately = [s for s in story.served if since is None or s.last is None or s.last >= since]
    known = set.intersection(*(set(s.states) for s in lately)) if lately else set[str]()
    queries, weight = sum(s.queries for s in lately), sum(s.weight for s in lately)
    found = best_known({state: sum(s.states[state] for s in lately) for state in known}, weight)
    if found is not None:
        actual = 1 - sum(float(s.actual.sum()) for s in lately) / weight
        return BestKnown(found[0], story.name_of(found[0]), found[1], actual, queries)
    for line in reversed(story.decisions):
        costs = numbers(line.facts.get("costs"))
        weight = number(line.facts.get("weight")) or 1.0
        found = best_known(costs, weight)
        if found is not None:
            current = costs.get(str(line.facts.get("current", INITIAL)))
            asked = count(line.facts.get("queries")) or 0
            return BestKnown(found[0], story.name_of(found[0]), found[1], 1 - (current or weight) / weight, asked)
    return None
