"""What a planned rewrite is expected to cost and save, for `--dry-run` and for people who decide by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oreo_lakehouse.maintenance.evidence import Evidence
    from oreo_lakehouse.tables.contract import RewritePlan


@dataclass(frozen=True)
class Forecast:
    """Costs are shares of the table that a query reads."""

    cost_now: float
    cost_then: float
    queries_a_day: float
    bytes_saved_a_day: int
    """Bytes of files that a day's queries would no longer open."""
    break_even: int | None
    """Queries after which the rewrite has paid for itself; None: never."""
    storage_held: int
    """Bytes of the replaced files, which stay for time travel and rollback until they are vacuumed or expired."""
    lost_by_vacuum: str
    """What can no longer be undone once VACUUM or expire_snapshots has run, in words."""

    def to_json(self) -> dict[str, Any]:
        return {
            "cost_now": self.cost_now,
            "cost_then": self.cost_then,
            "queries_a_day": round(self.queries_a_day, 1),
            "bytes_saved_a_day": self.bytes_saved_a_day,
            "break_even": self.break_even,
            "storage_held": self.storage_held,
            "lost_by_vacuum": self.lost_by_vacuum,
        }


def forecast(evidence: Evidence, plan: RewritePlan, alpha: float, cost_now: float, cost_then: float) -> Forecast:
    """Look ahead on the assumption that queries go on as they have been lately."""
    gain, a_day = cost_now - cost_then, evidence.queries_a_day()
    sweeper = "VACUUM" if plan.table.format == "delta" else "expire_snapshots"
    return Forecast(
        cost_now=cost_now,
        cost_then=cost_then,
        queries_a_day=a_day,
        bytes_saved_a_day=max(0, round(gain * a_day * evidence.blocks.total_bytes)),
        break_even=max(1, round(alpha / gain)) if gain > 0 else None,
        storage_held=plan.bytes,
        lost_by_vacuum=f"version {plan.base_version}, to which `oreo rollback` goes back, once {sweeper} removes it",
    )
