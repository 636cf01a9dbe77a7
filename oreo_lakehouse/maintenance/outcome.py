"""What a maintenance run answers: the same facts for a person, a machine and a Python caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oreo_lakehouse.tables.contract import RewritePlan


@dataclass(frozen=True)
class Outcome:
    """One run on one table. `version_after` equals `version_before` unless a layout was committed."""

    table: str
    format: str
    decision: str
    """`move` or `stay`; with `dry_run`, what would have been done."""
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

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints on one line."""
        return {
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
