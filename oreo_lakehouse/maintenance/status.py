"""How a table stands: format, version, files, the layout it has, the history it has, the last decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.maintenance.dossier import live_layout, open_dossier

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import SparkSession

    from oreo_lakehouse.maintenance.ledger import LedgerLine


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

    def to_json(self) -> dict[str, Any]:
        last = self.last_decision
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
            "last_decision": {"time": last.time.isoformat(), **last.facts} if last else None,
            "store": self.store,
            "notices": list(self.notices),
        }


def status(spark: SparkSession, table: str, config: Config | None = None) -> TableStatus:
    """Read how the table stands; changes nothing."""
    config = load_config() if config is None else config
    dossier = open_dossier(spark, table, config)
    identity = dossier.table.identity
    version = dossier.table.version()
    blocks = dossier.table.blocks(version)
    live = live_layout(dossier.table)
    layout = dossier.layout(live.layout_id) if live else None
    state, notices = dossier.states.load(set_aside=False)
    waiting, _ = dossier.history.read_since(state.cursor)
    decisions = dossier.ledger.lines(["decision"])
    return TableStatus(
        table=identity.name,
        format=identity.format,
        uuid=identity.uuid,
        location=identity.location,
        version=version,
        rows=blocks.total_rows,
        files=len(blocks),
        bytes=blocks.total_bytes,
        layout_id=live.layout_id if live else None,
        layout=layout.describe() if layout else None,
        layout_version=live.version if live else None,
        layout_time=live.time if live else None,
        queries_seen=state.queries,
        queries_waiting=len(waiting),
        last_decision=decisions[-1] if decisions else None,
        store=dossier.store.root,
        notices=tuple(notices),
    )
