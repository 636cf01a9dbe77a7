"""Receipts: what each rewrite promised, what it gave, and the query at which it had paid for itself.

The saving of a rewrite is what the queries that met it would have cost under the layout before it, less what they did
cost. It has paid when that sum reaches what the rewrite was charged. The ledger keeps costs in buckets of queries, so
the query told is the last of the bucket in which that happened: never too early, and late by less than a bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from oreo_lakehouse.maintenance.ledger import LedgerLine
from oreo_lakehouse.maintenance.ledgerfacts import number
from oreo_lakehouse.maintenance.story import Change, Served, Story, read_story

DRIFT = 0.2
"""A realised saving further than this share of the predicted one away from it is flagged."""
LEAST_QUERIES = 20
"""Before that many queries nobody can tell a wrong prediction from an odd query."""


@dataclass(frozen=True)
class Receipt:
    """One rewrite, or one return to an earlier layout."""

    run: str
    time: datetime
    action: str
    layout_id: str
    layout: str
    version: int | None
    after_query: int
    """How many queries had been served when it was made."""
    alpha: float | None
    """What it was charged; None where the ledger does not tell."""
    predicted_saving: float | None
    """Promised per query, in full scans."""
    realised_saving: float | None
    """Measured per query while it was live; None before the first."""
    queries: int
    """Served while it was live, and comparable with the layout before."""
    saved: float
    """All that it saved so far."""
    paid_at_query: int | None
    """Numbered from the account's first query."""
    paid_after: int | None
    """How many queries that took."""
    paid_time: datetime | None
    ended: str | None
    """What ended it: `rollback`, or another layout's id; None while it is live."""

    @property
    def has_paid(self) -> bool:
        return self.paid_at_query is not None

    @property
    def drifts(self) -> bool:
        """The prediction is off by more than a fifth, over enough queries to say so."""
        if self.predicted_saving is None or self.realised_saving is None or self.queries < LEAST_QUERIES:
            return False
        return abs(self.realised_saving - self.predicted_saving) > DRIFT * abs(self.predicted_saving)

    @property
    def verdict(self) -> str:
        """In a few words."""
        if self.alpha is None:
            return "its cost was not recorded"
        if self.alpha == 0:
            return "cost nothing: no row was rewritten"
        if self.paid_at_query is not None:
            return f"paid for itself by query {self.paid_at_query:,}, after {self.paid_after:,} queries"
        if self.ended == "rollback":
            return "rolled back before it paid for itself"
        if self.ended == self.layout_id:
            return "undone by others and made again before it paid for itself"
        if self.ended is not None:
            return "replaced before it paid for itself"
        if not self.queries:
            return "no query has met it yet"
        rate = self.realised_saving or 0.0
        if rate <= 0:
            return "has not paid for itself, and saves nothing now"
        left = (self.alpha - self.saved) / rate
        return f"has not paid for itself yet: about {max(1, round(left)):,} queries more at this rate"

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "time": self.time.isoformat(),
            "paid_time": self.paid_time.isoformat() if self.paid_time else None,
            "has_paid": self.has_paid,
            "drifts": self.drifts,
            "verdict": self.verdict,
        }


def receipts_of(lines: Sequence[LedgerLine]) -> tuple[Receipt, ...]:
    """The receipts that a ledger's lines give, oldest first."""
    return receipts(read_story(lines))


def receipts(story: Story) -> tuple[Receipt, ...]:
    """A receipt for every layout and every return, in order."""
    moves = [change for change in story.changes if change.moves]
    out: list[Receipt] = []
    for at, move in enumerate(moves):
        if move.action not in ("layout", "return"):
            continue
        following = moves[at + 1] if at + 1 < len(moves) else None
        until = following.place if following else story.queries
        met = [
            served
            for served in story.served
            if move.place <= served.start < until and served.layout == move.layout and served.previous is not None
        ]
        out.append(_receipt(story, move, following, met))
    return tuple(out)


def _receipt(story: Story, move: Change, following: Change | None, met: Sequence[Served]) -> Receipt:
    saved, queries = 0.0, 0
    paid_at: int | None = None
    paid_after: int | None = None
    paid_time: datetime | None = None
    for served in met:
        assert served.previous is not None
        for bucket, count in enumerate(served.counts):
            queries += int(count)
            saved += float(served.previous[bucket] - served.actual[bucket])
            if paid_at is None and move.alpha is not None and saved >= move.alpha:
                paid_at = served.start + int(served.counts[: bucket + 1].sum())
                paid_after, paid_time = queries, served.time_at(bucket)
    before, predicted = number(move.facts.get("cost_before")), number(move.facts.get("cost_predicted"))
    return Receipt(
        run=move.run,
        time=move.time,
        action=move.action,
        layout_id=move.layout,
        layout=story.name_of(move.layout),
        version=move.version,
        after_query=move.place,
        alpha=move.alpha,
        predicted_saving=None if before is None or predicted is None else before - predicted,
        realised_saving=saved / queries if queries else None,
        queries=queries,
        saved=saved,
        paid_at_query=paid_at,
        paid_after=paid_after,
        paid_time=paid_time,
        ended=None if following is None else "rollback" if following.action == "rollback" else following.layout,
    )
