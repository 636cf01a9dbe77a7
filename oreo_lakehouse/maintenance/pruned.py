"""What pruning really saved, from the records of queries that ran: the check on what the `bid` cost mode promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oreo_lakehouse.history.querybatch import QueryBatch
    from oreo_lakehouse.layouts.skipping import Mode
    from oreo_lakehouse.maintenance.ledger import LedgerLine


@dataclass(frozen=True)
class PruningEffect:
    """Queries that ran while pruning was on."""

    queries: int
    pruned: int
    """Of these, scans that read fewer files because of it."""
    share: float
    """Mean share of the table's rows that a query did not read beyond what the engine skipped by itself."""
    predicted: float | None = None
    """The same by the facts of the table's present files: what `bid` mode counts on. None where there are none."""

    def __str__(self) -> str:
        """One line for people.

        >>> str(PruningEffect(200, 50, 0.125, 0.13))
        'skipped another 12.5% of the rows a query, in 50 of 200 queries; the recorded facts promise 13.0%'
        """
        promise = "" if self.predicted is None else f"; the recorded facts promise {self.predicted:.1%}"
        return (
            f"skipped another {self.share:.1%} of the rows a query, in {self.pruned:,} of {self.queries:,} "
            f"queries{promise}"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "queries": self.queries,
            "pruned": self.pruned,
            "rows": self.share,
            "predicted_rows": self.predicted,
        }


def pruning_effect(records: QueryBatch, total_rows: int) -> PruningEffect | None:
    """The effect over some captured queries of a table of `total_rows`; None if pruning was never on."""
    files = records.table["files_pruned"].drop_null().to_numpy()
    if not len(files):
        return None
    rows = int(records.table["rows_pruned"].drop_null().to_numpy().sum())
    return PruningEffect(
        queries=len(files),
        pruned=int((files != 0).sum()),
        share=min(1.0, rows / (len(files) * max(1, total_rows))),
    )


def last_mode(decisions: Sequence[LedgerLine]) -> str | None:
    """The cost mode of the last decision that tells it."""
    told = (line.facts.get("mode") for line in reversed(decisions))
    return next((str(mode) for mode in told if mode), None)


def mode_notices(mode: Mode, before: str | None, queries: int, effect: PruningEffect | None) -> list[str]:
    """What must be said about the cost mode of a run, so that it never changes or misleads in silence.

    Args:
        mode: the run's.
        before: that of the last decision, None if there was none.
        queries: how many new ones are decided about.
        effect: what pruning did for them.

    >>> mode_notices("native", "native", 9, None), mode_notices("native", None, 9, None)
    ([], [])
    """
    notices: list[str] = []
    if before is not None and before != mode:
        notices.append(
            f"decide.mode is {mode!r} for this table now and was {before!r} at its last decision: costs from here on "
            "count other skipping than before"
        )
    watched = effect.queries if effect else 0
    if mode == "bid" and watched < queries:
        notices.append(
            f"decide.mode is 'bid' for this table, but {queries - watched:,} of {queries:,} new queries are not known "
            "to have run with pruning: those skip by min/max alone, and cost more than is counted here. Call "
            "oreo_lakehouse.attach(spark) where queries run, or decide in 'native' mode"
        )
    return notices
