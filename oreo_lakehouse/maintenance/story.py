"""A table's story, read back from its ledger: what was served, and every change of layout among the queries.

Everything that people are shown (`account`, `receipts`, `explaining`, the report) starts here. Queries are numbered
from 1 in the order in which runs saw them. A run decides about queries that ran before it, so what it commits stands
behind all that it served. Lines of older releases lack facts; what a line does not tell is left out, never guessed.
Where `decide.weigh` was changed, the story begins at the first run that counts as the last one does: sums over costs of
two kinds would say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.maintenance.ledger import LedgerLine
from oreo_lakehouse.maintenance.ledgerfacts import costs, count, moment, number, numbers, texts, whole
from oreo_lakehouse.maintenance.weighing import ROWS

INITIAL = "initial"
"""The ledger's name for a table as its writers left it."""
WRITERS = "as its writers left it"
Costs = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Served:
    """What some queries cost under the layout that they met; arrays have one entry a bucket of queries."""

    start: int
    """How many queries were served before."""
    layout: str
    counts: Ints
    actual: Costs
    never: Costs
    previous: Costs | None
    """Under the layout before the live one."""
    states: Mapping[str, float]
    """Sum over all these queries for each known layout."""
    first: datetime | None
    last: datetime | None
    weight: float = 0.0
    """What full scans by all these queries would have cost: as many as there are, where rows count."""

    @property
    def queries(self) -> int:
        return int(self.counts.sum())

    def time_at(self, bucket: int) -> datetime | None:
        """About when a bucket's last query ran: the ledger tells first and last, and the rest is taken as even."""
        if self.first is None or self.last is None:
            return self.last
        share = float(self.counts[: bucket + 1].sum()) / max(1, self.queries)
        return self.first + (self.last - self.first) * share


@dataclass(frozen=True)
class Change:
    """A commit of ours: a layout, a fold of appended rows, a return, a rollback, or one found by a later run."""

    run: str
    time: datetime
    place: int
    """How many queries were served before it."""
    action: str
    """`layout`, `fold`, `return`, `rollback` or `repair`."""
    layout: str
    """The layout that the table has after it."""
    before: str
    version: int | None
    alpha: float | None
    """What it is charged, in full scans; None where no line tells."""
    facts: Mapping[str, Any]

    @property
    def moves(self) -> bool:
        """Whether another layout is live after it."""
        return self.action != "fold"


@dataclass(frozen=True)
class Story:
    """Everything in order."""

    served: tuple[Served, ...]
    changes: tuple[Change, ...]
    decisions: tuple[LedgerLine, ...]
    names: Mapping[str, str]
    """One line for people for each layout that a line ever described."""
    started: datetime | None
    ended: datetime | None
    weigh: str = ROWS
    """What its costs count: see `weighing`."""

    @property
    def queries(self) -> int:
        return sum(served.queries for served in self.served)

    def name_of(self, layout: str) -> str:
        """A layout in words, or its id."""
        return self.names.get(layout, layout)


def read_story(lines: Sequence[LedgerLine]) -> Story:
    """Replay a ledger's lines, oldest first."""
    teller = _Teller()
    for _, run in groupby(lines, key=lambda line: line.run):
        teller.tell(list(run))
    alike = [line for line in lines if line.time >= teller.since] if teller.since else lines
    return Story(
        served=tuple(teller.served),
        changes=tuple(teller.changes),
        decisions=tuple(line for line in alike if line.kind == "decision"),
        names=_names(lines),
        started=alike[0].time if alike else None,
        ended=lines[-1].time if lines else None,
        weigh=teller.weigh,
    )


class _Teller:
    def __init__(self) -> None:
        self.served: list[Served] = []
        self.changes: list[Change] = []
        self.weigh = ROWS
        self.since: datetime | None = None
        """When costs began to be counted in another way; None: they never did."""
        self._queries = 0
        self._layout = INITIAL
        self._earlier: list[Change] = []

    def tell(self, run: list[LedgerLine]) -> None:
        weigh = next((str(line.facts.get("weigh", ROWS)) for line in run if line.kind == "served"), self.weigh)
        if weigh != self.weigh:
            self._earlier += self.changes
            self.served, self.changes, self._queries = [], [], 0
            self.weigh, self.since = weigh, run[0].time
        for line in run:
            if line.kind == "served":
                found = _served(line.facts, self._queries)
                if found is not None:
                    self.served.append(found)
                    self._queries += found.queries
        alpha = next((number(line.facts.get("alpha")) for line in run if line.kind == "decision"), None)
        for line in run:
            if line.kind == "commit":
                self._change(line, str(line.facts.get("action", "layout")), str(line.facts.get("layout_id")), alpha)
            elif line.kind == "rollback":
                self._change(line, "rollback", self._undone(line.facts), 0.0)
            elif line.kind == "repair" and "layout_id" in line.facts:
                undo = "undone_version" in line.facts  # what was found is a rollback, which leads back
                layout = self._undone(line.facts) if undo else str(line.facts["layout_id"])
                self._change(line, "repair", layout, None)

    def _change(self, line: LedgerLine, action: str, layout: str, alpha: float | None) -> None:
        before = self._layout
        self._layout = layout
        charged = number(line.facts.get("alpha"))
        change = Change(
            run=line.run,
            time=line.time,
            place=self._queries,
            action=action,
            layout=layout,
            before=before,
            version=whole(line.facts.get("version")),
            alpha=alpha if charged is None else charged,
            facts=line.facts,
        )
        self.changes.append(change)

    def _undone(self, facts: Mapping[str, Any]) -> str:
        """The layout that a rollback leads back to: the one before the commit that it undid."""
        changes = [*self._earlier, *self.changes]
        for change in reversed(changes):
            if change.moves and change.version is not None and change.version == facts.get("undone_version"):
                return change.before
        for change in reversed(changes):
            if change.moves and change.layout == facts.get("layout_id"):
                return change.before
        return INITIAL


def _served(facts: Mapping[str, Any], start: int) -> Served | None:
    queries, actual, never = count(facts.get("queries")), costs(facts.get("actual")), costs(facts.get("never"))
    if queries is None or queries <= 0 or actual is None or never is None or len(actual) != len(never):
        return None
    full = count(facts.get("every")) or queries
    rest = queries - full * (len(actual) - 1)
    if rest <= 0:  # buckets and queries contradict each other
        return None
    counts = np.full(len(actual), full, np.int64)
    counts[-1] = rest
    previous = costs(facts.get("previous"))
    return Served(
        start=start,
        layout=str(facts.get("layout", INITIAL)),
        counts=counts,
        actual=actual,
        never=never,
        previous=previous if previous is not None and len(previous) == len(actual) else None,
        states=numbers(facts.get("states")),
        first=moment(facts.get("first")),
        last=moment(facts.get("last")),
        weight=queries if (weight := number(facts.get("weight"))) is None else weight,
    )


def _names(lines: Sequence[LedgerLine]) -> dict[str, str]:
    names = {INITIAL: WRITERS}
    for line in lines:
        if line.kind == "decision":
            names |= {k: v for k, v in texts(line.facts.get("layouts")).items() if k != INITIAL}
        elif line.kind == "commit" and line.facts.get("layout"):
            names[str(line.facts.get("layout_id"))] = str(line.facts["layout"])
    return names
