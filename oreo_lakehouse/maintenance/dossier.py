"""Everything that is kept about one table, opened together: the table, its history, state, ledger and intents."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from oreo_lakehouse.errors import StoreError, TableError
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.layouts.layout import Layout, layout_from_json
from oreo_lakehouse.maintenance.facts import FactStore
from oreo_lakehouse.maintenance.keptblocks import KeptBlocks
from oreo_lakehouse.maintenance.keptsample import KeptSample
from oreo_lakehouse.maintenance.ledger import Ledger
from oreo_lakehouse.maintenance.pending import Pending
from oreo_lakehouse.maintenance.shards import ShardBook, shard_folder, shards_of
from oreo_lakehouse.maintenance.shardtable import ShardTable
from oreo_lakehouse.maintenance.state import StateStore
from oreo_lakehouse.store import Store, configured_store, parsed
from oreo_lakehouse.tables.commits import FOLD, ROLLBACK

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import SparkSession

    from oreo_lakehouse.config import Config
    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.maintenance.shards import Shard
    from oreo_lakehouse.tables.contract import LayoutCommit, Table


class HasCommits(Protocol):
    """A table, or what can be read of one without Spark."""

    def layout_commits(self) -> list[LayoutCommit]: ...


@dataclass(frozen=True)
class Dossier:
    """One table and what belongs to it under the store root."""

    table: Table
    store: Store
    history: HistoryStore
    states: StateStore
    ledger: Ledger
    pending: Pending
    blocks: KeptBlocks
    samples: KeptSample
    facts: FactStore
    book: ShardBook
    shard: Shard | None = None
    """The shard that it is about; None: the whole table."""

    def of_shard(self, shard: Shard, partitions: Collection[str]) -> Dossier:
        """What is kept about one shard: state, ledger, intents and blocks of its own; the rest is the table's."""
        folder = shard_folder(self.table.identity.uuid, shard.id)
        return replace(
            self,
            table=ShardTable(self.table, shard, partitions),
            states=StateStore(self.store, folder),
            ledger=Ledger(self.store, folder),
            pending=Pending(self.store, folder),
            blocks=KeptBlocks(self.store, folder),
            samples=KeptSample(self.store, folder),
            shard=shard,
        )

    def by_shard(self, blocks: Blocks) -> dict[str, Dossier]:
        """What is kept about each shard that has some of the table's files, by the shard's id."""
        found = shards_of(blocks, self.book.firsts())
        return {shard.id: self.of_shard(shard, set(blocks.take(shard.files).partitions)) for shard in found}

    @property
    def _layouts(self) -> str:
        return f"{self.table.identity.uuid}/layouts"

    def keep_layout(self, layout: Layout) -> None:
        """Keep the description of a layout that is about to be committed; its id is its content, so once is enough."""
        self.store.create(f"{self._layouts}/{layout.id}.json", json.dumps(layout.to_json()).encode())

    def layout(self, layout_id: str) -> Layout | None:
        """A layout that was kept, or None."""
        return kept_layout(self.store, self.table.identity.uuid, layout_id)

    def tidy(self, run_id: str, present: Blocks, states: Collection[str], days: float) -> list[str]:
        """After a layout: keep what can be undone, forget what cannot; a sentence where the table would not have it.

        Args:
            run_id: of the layout commit.
            present: the table's files after it.
            states: ids of the layouts under consideration.
            days: for how long what the layout replaced is kept from the table's clean-up.
        """
        commits = [commit for commit in self.table.layout_commits() if commit.action != ROLLBACK]
        first = [line.run for line in self.ledger.lines(["commit"])[:1]]
        for name in set(self.blocks.names()) - {run_id, *first, *states}:
            self.blocks.drop(name)
        whole = self.table.whole if isinstance(self.table, ShardTable) else None
        live = present if whole is None else whole.blocks()
        everybody = self.table.layout_commits() if whole is None else whole.layout_commits()
        self.facts.tidy(live.names, {commit.run_id for commit in everybody if commit.action != ROLLBACK})
        try:
            if days > 0:
                self.table.retain(commits[0], days)
            for commit in commits[1:]:
                if commit.time < datetime.now(UTC) - timedelta(days=days):
                    self.table.release(commit)
        except TableError as error:
            return [f"what the layout replaced may be cleaned up before {days:g} days are over: {error}"]
        return []


def kept_layout(store: Store, table_uuid: str, layout_id: str) -> Layout | None:
    """A layout that was kept, or None; the kept text decides nothing, so one that cannot be read is as good as none."""
    try:
        content = store.read(f"{table_uuid}/layouts/{layout_id}.json")
        found = None if content is None else layout_from_json(parsed(content))
    except (StoreError, ValueError, TypeError, AttributeError):
        return None
    return found if found is not None and found.id == layout_id else None


def open_dossier(spark: SparkSession, table_name: str, config: Config) -> Dossier:
    """Find the table and open what is kept about it."""
    from oreo_lakehouse.tables.resolve import open_table  # not before it is needed: it loads Spark

    return dossier_on(open_table(spark, table_name), configured_store(spark, config))


def dossier_on(table: Table, store: Store) -> Dossier:
    """What is kept about a table that is open already."""
    uuid = table.identity.uuid
    return Dossier(
        table=table,
        store=store,
        history=HistoryStore(store, uuid),
        states=StateStore(store, uuid),
        ledger=Ledger(store, uuid),
        pending=Pending(store, uuid),
        blocks=KeptBlocks(store, uuid),
        samples=KeptSample(store, uuid),
        facts=FactStore(store, uuid),
        book=ShardBook(store, uuid),
    )


def live_layout(table: HasCommits) -> LayoutCommit | None:
    """The commit whose layout the table (or shard) has now: the newest one that was not rolled back.

    A fold only adds to the layout that is there, so it is never the answer itself.
    """
    return next(iter(_standing(table)), None)


def live_layouts(table: HasCommits) -> dict[str, LayoutCommit]:
    """The commit whose layout each shard has now, by the shard's id; "" is the whole table's, if shards have it still.

    A layout of the whole table takes the place of all that its shards had before.
    """
    live: dict[str, LayoutCommit] = {}
    for commit in _standing(table):
        live.setdefault(commit.shard, commit)
        if not commit.shard:
            break
    return live


def _standing(table: HasCommits) -> list[LayoutCommit]:
    """Layouts that were not rolled back, newest first."""
    undone: set[str] = set()
    found: list[LayoutCommit] = []
    for commit in table.layout_commits():
        if commit.run_id in undone:
            continue
        if commit.action == ROLLBACK:
            undone.add(commit.layout_run_id)
        elif commit.action != FOLD:
            found.append(commit)
    return found
