"""What a maintenance run answers: the same facts for a person, a machine and a Python caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oreo_lakehouse.maintenance.forecast import Forecast
    from oreo_lakehouse.tables.contract import RewritePlan


@dataclass(frozen=True)
class Outcome:
    """One run on one table. `version_after` equals `version_before` unless a layout was committed."""

    table: str
    format: str
    decision: str
    """`move`, `fold` (rows appended since joined the layout) or `stay`; with `dry_run`, what would have been done."""
    reason: str
    layout_id: str | None
    version_before: int
    version_after: int
    rows: int
    files_before: int
    files_after: int
    bytes_rewritten: int
    queries_seen: int
    seconds: float
    dry_run: bool = False
    plan: RewritePlan | None = None
    notices: tuple[str, ...] = ()
    forecast: Forecast | None = None
    """With `dry_run` and a move: what it is expected to cost and save."""
    alpha: str = ""
    """The price of a rewrite that was counted with, and where it comes from."""
    shard: str = ""
    """The part of the table that it is about; "" for the whole."""
    shards: tuple[Outcome, ...] = ()
    """Of a partitioned table: how it went for every shard that there was something to decide about."""

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints on one line; a dry run adds its plan."""
        document: dict[str, Any] = {
            "table": self.table,
            "format": self.format,
            "decision": self.decision,
            "reason": self.reason,
            "layout_id": self.layout_id,
            "version_before": self.version_before,
            "version_after": self.version_after,
            "rows": self.rows,
            "files_before": self.files_before,
            "files_after": self.files_after,
            "bytes_rewritten": self.bytes_rewritten,
            "queries_seen": self.queries_seen,
            "seconds": round(self.seconds, 3),
        }
        if self.dry_run and self.plan is not None:
            document["plan"] = {
                "layout": self.plan.layout.describe(),
                "base_version": self.plan.base_version,
                "files": self.plan.files,
                "bytes": self.plan.bytes,
                "rows": self.plan.rows,
                "blocks": self.plan.layout.blocks,
                "bid_column": self.plan.bid_column,
                "adds_bid_column": self.plan.adds_bid_column,
            }
            document["forecast"] = self.forecast.to_json() if self.forecast else None
        if self.shard:
            document["shard"] = self.shard
        if self.shards:
            document["shards"] = [shard.to_json() for shard in self.shards]
        return document
