"""What pruning really saved, from the records of queries that ran: the check on what the `bid` cost mode promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oreo_lakehouse.history.querybatch import QueryBatch


@dataclass(frozen=True)
class PruningEffect:
    """Queries that ran while pruning was on."""

    queries: int
    pruned: int
    """Of these, scans that read fewer files because of it."""
    share: float
    """Mean share of the table's rows that a query did not read beyond what the engine skipped by itself."""

    def __str__(self) -> str:
        """One line for people.

        >>> str(PruningEffect(200, 50, 0.125))
        'pruning skipped another 12.5% of the rows a query, in 50 of 200 queries'
        """
        return (
            f"pruning skipped another {self.share:.1%} of the rows a query, in {self.pruned} of {self.queries} queries"
        )


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
