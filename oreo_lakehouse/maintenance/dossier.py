"""Everything that is kept about one table, opened together: the table, its history, state, ledger and intents."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.layouts.layout import Layout, layout_from_json
from oreo_lakehouse.maintenance.ledger import Ledger
from oreo_lakehouse.maintenance.pending import Pending
from oreo_lakehouse.maintenance.state import StateStore
from oreo_lakehouse.store import HadoopStore, Store, default_root
from oreo_lakehouse.tables.resolve import open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.config import Config
    from oreo_lakehouse.tables.contract import LayoutCommit, Table


@dataclass(frozen=True)
class Dossier:
    """One table and what belongs to it under the store root."""

    table: Table
    store: Store
    history: HistoryStore
    states: StateStore
    ledger: Ledger
    pending: Pending

    @property
    def _layouts(self) -> str:
        return f"{self.table.identity.uuid}/layouts"

    def keep_layout(self, layout: Layout) -> None:
        """Keep the description of a layout that is about to be committed; its id is its content, so once is enough."""
        self.store.create(f"{self._layouts}/{layout.id}.json", json.dumps(layout.to_json()).encode())

    def layout(self, layout_id: str) -> Layout | None:
        """A layout that was kept, or None."""
        content = self.store.read(f"{self._layouts}/{layout_id}.json")
        return None if content is None else layout_from_json(json.loads(content))


def open_dossier(spark: SparkSession, table_name: str, config: Config) -> Dossier:
    """Find the table and open what is kept about it."""
    table = open_table(spark, table_name)
    store = HadoopStore(spark, config.store or default_root(spark))
    uuid = table.identity.uuid
    return Dossier(
        table=table,
        store=store,
        history=HistoryStore(store, uuid),
        states=StateStore(store, uuid),
        ledger=Ledger(store, uuid),
        pending=Pending(store, uuid),
    )


def live_layout(table: Table) -> LayoutCommit | None:
    """The commit whose layout the table has now: the newest one that was not rolled back."""
    undone: set[str] = set()
    for commit in table.layout_commits():
        if commit.action == "rollback":
            undone.add(commit.layout_run_id)
        elif commit.run_id not in undone:
            return commit
    return None
