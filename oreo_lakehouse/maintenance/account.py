"""The account of a table: spent, saved, the best fixed layout in hindsight, and where we are under the bound.

All costs are in full scans of the table, or where bytes are weighed in scans of all its columns. Spent is what
physically happened: every query as it was served by the layout that it met, and every rewrite at its place among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np

from oreo_lakehouse.maintenance.ledger import LedgerLine
from oreo_lakehouse.maintenance.ledgerfacts import number, numbers
from oreo_lakehouse.maintenance.story import INITIAL, Story, read_story
from oreo_lakehouse.maintenance.weighing import ROWS, SCANS

Point = tuple[int, float]
"""How many queries were served, and the cost up to there."""


@dataclass(frozen=True)
class FixedLayout:
    """One layout kept for good, over those queries for which its cost is known."""

    layout_id: str
    layout: str
    first_query: int
    """The first query that its cost is known for."""
    queries: int
    is_complete: bool
    """Known for every query of the account. If not, it came later or was forgotten, and only its own queries count."""
    query_cost: float
    build_cost: float
    """One rewrite to get there; none for the table as its writers left it."""
    actual_cost: float
    """What was really spent on the same queries, rewrites among them included."""

    @property
    def total(self) -> float:
        return self.query_cost + self.build_cost


@dataclass(frozen=True)
class Bound:
    """The guarantee on the decisions' own account: paid <= limit on every path."""

    paid: float
    comparator: float
    limit: float

    @property
    def room(self) -> float:
        return self.limit - self.paid


@dataclass(frozen=True)
class Stretch:
    """For how long a layout was live."""

    layout_id: str
    layout: str
    action: str
    """What began it: `start`, or a change's action."""
    version: int | None
    first_query: int
    queries: int
    since: datetime | None
    until: datetime | None
    """None: still live."""
    folds: int = 0


@dataclass(frozen=True)
class Account:
    """What a table's layouts cost and saved so far."""

    queries: int
    first: datetime | None
    last: datetime | None
    query_cost: float
    rewrite_cost: float
    rewrites: int
    uncharged: int
    """Rewrites whose cost no line tells: they are not in the sums."""
    never_cost: float
    fixed: tuple[FixedLayout, ...]
    """Cheapest first among those known for every query, then the others."""
    bound: Bound | None
    actual_curve: tuple[Point, ...]
    never_curve: tuple[Point, ...]
    fixed_curve: tuple[Point, ...]
    """Of the best fixed layout, at the ends of runs."""
    timeline: tuple[Stretch, ...]
    weigh: str = ROWS
    """What its costs count: see `weighing`."""

    @property
    def scans(self) -> str:
        """What its costs are counted in, for people."""
        return SCANS.get(self.weigh, self.weigh)

    @property
    def spent(self) -> float:
        return self.query_cost + self.rewrite_cost

    @property
    def saved(self) -> float:
        """Against never changing the layout; negative while rewrites have not paid yet."""
        return self.never_cost - self.spent

    @property
    def best_fixed(self) -> FixedLayout | None:
        """The cheapest layout, its rewrite included, of those known for every query."""
        return next((layout for layout in self.fixed if layout.is_complete), None)

    def to_json(self) -> dict[str, Any]:
        best = self.best_fixed
        return {
            "queries": self.queries,
            "weigh": self.weigh,
            "first": _iso(self.first),
            "last": _iso(self.last),
            "spent": {"total": self.spent, "queries": self.query_cost, "rewrites": self.rewrite_cost},
            "rewrites": self.rewrites,
            "rewrites_without_cost": self.uncharged,
            "never": self.never_cost,
            "saved": self.saved,
            "best_fixed": None if best is None else {**asdict(best), "total": best.total},
            "fixed": [{**asdict(layout), "total": layout.total} for layout in self.fixed],
            "bound": None if self.bound is None else {**asdict(self.bound), "room": self.bound.room},
            "timeline": [
                {**asdict(stay), "since": _iso(stay.since), "until": _iso(stay.until)} for stay in self.timeline
            ],
        }


def account_of(lines: Sequence[LedgerLine]) -> Account:
    """The account that a ledger's lines give, oldest first."""
    return account(read_story(lines))


def account(story: Story) -> Account:
    """The account of a story."""
    rewrites = [change for change in story.changes if change.action not in ("rollback", "repair")]
    fixed = _fixed(story)
    best = next((layout for layout in fixed if layout.is_complete), None)
    return Account(
        queries=story.queries,
        first=next((served.first for served in story.served if served.first), None),
        last=next((served.last for served in reversed(story.served) if served.last), None),
        query_cost=float(sum(served.actual.sum() for served in story.served)),
        rewrite_cost=sum(change.alpha or 0.0 for change in story.changes),
        rewrites=len(rewrites),
        uncharged=sum(change.alpha is None for change in story.changes),
        never_cost=float(sum(served.never.sum() for served in story.served)),
        fixed=fixed,
        bound=_bound(story.decisions),
        actual_curve=_actual_curve(story),
        never_curve=_never_curve(story),
        fixed_curve=_fixed_curve(story, best),
        timeline=_timeline(story),
        weigh=story.weigh,
    )


def _actual_curve(story: Story) -> tuple[Point, ...]:
    points: list[Point] = [(0, 0.0)]
    changes = sorted(story.changes, key=lambda change: change.place)
    at = 0

    def charge(place: int) -> None:
        nonlocal at
        while at < len(changes) and changes[at].place <= place:
            if changes[at].alpha:
                points.append((points[-1][0], points[-1][1] + (changes[at].alpha or 0.0)))
            at += 1

    for served in story.served:
        charge(served.start)  # a rewrite is never in the middle of what one run served
        for count, cost in zip(served.counts, served.actual, strict=True):
            points.append((points[-1][0] + int(count), points[-1][1] + float(cost)))
    charge(story.queries)
    return tuple(points)


def _never_curve(story: Story) -> tuple[Point, ...]:
    points: list[Point] = [(0, 0.0)]
    for served in story.served:
        for count, cost in zip(served.counts, served.never, strict=True):
            points.append((points[-1][0] + int(count), points[-1][1] + float(cost)))
    return tuple(points)


def _fixed_curve(story: Story, best: FixedLayout | None) -> tuple[Point, ...]:
    if best is None:
        return ()
    if best.layout_id == INITIAL:
        return _never_curve(story)
    points: list[Point] = [(0, best.build_cost)]
    for served in story.served:
        points.append((points[-1][0] + served.queries, points[-1][1] + served.states[best.layout_id]))
    return tuple(points)


def _fixed(story: Story) -> tuple[FixedLayout, ...]:
    """Every layout that some run priced. The table as its writers left it is `never`, priced for every query."""
    if not story.served:
        return ()
    alphas = [alpha for line in story.decisions if (alpha := number(line.facts.get("alpha"))) is not None]
    charged = [change.alpha for change in story.changes if change.action == "layout" and change.alpha]
    build = charged[-1] if charged else alphas[-1] if alphas else 0.0
    ids = dict.fromkeys(state for served in story.served for state in served.states if state != INITIAL)
    found = [_fixed_layout(story, state, build) for state in [INITIAL, *ids]]
    return tuple(sorted(found, key=lambda f: (not f.is_complete, f.total - (0 if f.is_complete else f.actual_cost))))


def _fixed_layout(story: Story, state: str, build: float) -> FixedLayout:
    known = [served for served in story.served if state == INITIAL or state in served.states]
    cost = sum(float(s.never.sum()) if state == INITIAL else s.states[state] for s in known)
    spans = [(served.start, served.start + served.queries) for served in known]
    # a change at the very start of what a run served was made for it
    moved = sum(
        change.alpha or 0.0
        for change in story.changes
        if any(start <= change.place < end for start, end in spans) or change.place == spans[-1][1] == story.queries
    )
    return FixedLayout(
        layout_id=state,
        layout=story.name_of(state),
        first_query=known[0].start + 1,
        queries=sum(served.queries for served in known),
        is_complete=len(known) == len(story.served),
        query_cost=cost,
        build_cost=0.0 if state == INITIAL else build,
        actual_cost=float(np.sum([served.actual.sum() for served in known])) + moved,
    )


def _bound(decisions: Sequence[LedgerLine]) -> Bound | None:
    for line in reversed(decisions):
        found = numbers(line.facts.get("bound"))
        if {"paid", "comparator", "limit"} <= found.keys():
            return Bound(found["paid"], found["comparator"], found["limit"])
    return None


def _timeline(story: Story) -> tuple[Stretch, ...]:
    """Which layout was live over which queries; a fold goes on with the same one."""
    moves = [change for change in story.changes if change.moves]
    first = story.served[0].first if story.served and story.served[0].first else story.started
    starts: list[tuple[str, str, int | None, int, datetime | None]] = [
        (moves[0].before if moves else story.served[0].layout if story.served else INITIAL, "start", None, 0, first)
    ]
    starts += [(move.layout, move.action, move.version, move.place, move.time) for move in moves]
    ends = [*starts[1:], ("", "", None, story.queries, None)]
    folds = [change for change in story.changes if not change.moves]
    return tuple(
        Stretch(
            layout_id=layout,
            layout=story.name_of(layout),
            action=action,
            version=version,
            first_query=place + 1,
            queries=end[3] - place,
            since=since,
            until=end[4],
            folds=sum(
                (since is None or fold.time >= since) and (end[4] is None or fold.time < end[4]) for fold in folds
            ),
        )
        for (layout, action, version, place, since), end in zip(starts, ends, strict=True)
    )


def _iso(time: datetime | None) -> str | None:
    return time.isoformat() if time else None
