"""Why a run moved or stayed, in words and numbers, from the ledger's lines alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from oreo_lakehouse.errors import LedgerError
from oreo_lakehouse.maintenance.ledger import LedgerLine
from oreo_lakehouse.maintenance.ledgerfacts import count, mapping, mappings, number, numbers, texts, whole
from oreo_lakehouse.maintenance.story import INITIAL, WRITERS, read_story
from oreo_lakehouse.maintenance.weighing import BYTES, ROWS

SHOWN = 8
"""How much of a run id tells one decision from another, for people."""
_LISTED = 5
_MODES = {
    "native": "Costs count what the engine's own minima and maxima let a query skip (native mode).",
    "bid": "Costs count what pruning lets a query skip (bid mode): queries in sessions without it read more.",
}


@dataclass(frozen=True)
class Candidate:
    """A layout that was considered."""

    layout_id: str
    layout: str
    cost: float | None
    """Mean share of the table that a recent query would read."""
    counter: float | None
    """What it has cost in this phase; full at alpha."""
    regret: float | None
    """What it would have saved since the workload last changed."""
    is_current: bool
    is_target: bool
    weight: float = 1.0
    """What a full scan by such a query costs."""

    @property
    def skips(self) -> float | None:
        return None if self.cost is None else 1 - self.cost / self.weight


@dataclass(frozen=True)
class HotQuery:
    """A shape of query that weighed in."""

    shape: str
    queries: int
    cost_now: float | None
    cost_target: float | None


@dataclass(frozen=True)
class Event:
    """What happened within the run, query by query."""

    kind: str
    query: int
    layout: str
    reason: str


@dataclass(frozen=True)
class Explanation:
    """One run's decision, and all that it rested on."""

    id: str
    time: datetime
    decision: str
    reason: str
    version: int | None
    queries: int
    current: str
    """The layout that the table was in, in words."""
    target: str | None
    current_cost: float | None
    target_cost: float | None
    alpha: float | None
    alpha_source: str | None
    mode: str | None
    """What skips blocks: `native`, the engine's own statistics, or `bid`, our pruning."""
    weigh: str
    """What costs count: `rows`, or the `bytes` of the columns that a query reads."""
    weight: float
    """Of bytes: what a full scan by a recent query costs, in scans of all columns; 1 of rows."""
    phase: int | None
    candidates: tuple[Candidate, ...]
    """Cheapest first."""
    hot: tuple[HotQuery, ...]
    held: str | None
    """Why a wanted move was not made."""
    shadow: bool
    promised_cost: float | None
    """By the sample, before the narrow pass looked at all rows; `exact_cost` is what it found."""
    exact_cost: float | None
    bound: Mapping[str, float]
    events: tuple[Event, ...]
    sentences: tuple[str, ...]
    """The same in words."""

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "time": self.time.isoformat(),
            "candidates": [{**asdict(one), "skips": one.skips} for one in self.candidates],
        }


def explain(lines: Sequence[LedgerLine], decision: str | None = None, table: str = "this table") -> Explanation:
    """Explain the decision of a run, named by its id or the beginning of it; by default the last one.

    Raises:
        LedgerError: there is none, or the beginning fits several; the sentence lists decisions to choose from.
    """
    line = _find(decisions(lines), decision, table)
    facts = line.facts
    story = read_story(lines)
    names = {**story.names, **{k: v for k, v in texts(facts.get("layouts")).items() if k != INITIAL}}
    current = str(facts.get("current", INITIAL))
    target = None if facts.get("target") is None else str(facts["target"])
    looked, bound = mapping(facts.get("looked")), numbers(facts.get("bound"))
    run = [one for one in lines if one.run == line.run]
    partial = Explanation(
        id=line.run,
        time=line.time,
        decision=str(facts.get("decision", "stay")),
        reason=str(facts.get("reason", "")),
        version=whole(facts.get("version")),
        queries=count(facts.get("queries")) or 0,
        current=names.get(current, current),
        target=None if target is None else names.get(target, target),
        current_cost=number(facts.get("current_cost")),
        target_cost=number(facts.get("target_cost")),
        alpha=number(facts.get("alpha")),
        alpha_source=str(facts["alpha_source"]) if facts.get("alpha_source") else None,
        mode=str(facts["mode"]) if facts.get("mode") else None,
        weigh=str(facts.get("weigh", ROWS)),
        weight=number(facts.get("weight")) or 1.0,
        phase=count(facts.get("phase")),
        candidates=_candidates(facts, names, current, target),
        hot=tuple(
            HotQuery(
                str(one.get("shape", "")),
                count(one.get("queries")) or 0,
                number(one.get("cost_now")),
                number(one.get("cost_target")),
            )
            for one in mappings(facts.get("hot"))
        ),
        held=str(facts["held"]) if facts.get("held") else None,
        shadow=bool(facts.get("shadow")),
        promised_cost=number(looked.get("cost_promised")),
        exact_cost=number(looked.get("cost_exact")),
        bound={k: bound[k] for k in ("paid", "comparator", "limit") if k in bound},
        events=tuple(
            Event(
                str(one.facts.get("kind", "")),
                count(one.facts.get("query")) or 0,
                names.get(str(one.facts.get("state")), str(one.facts.get("state", ""))),
                str(one.facts.get("reason", "")),
            )
            for one in run
            if one.kind == "event"
        ),
        sentences=(),
    )
    commit = next((one.facts for one in run if one.kind == "commit"), None)
    return replace(partial, sentences=tuple(_sentences(partial, commit)))


def decisions(lines: Sequence[LedgerLine]) -> list[LedgerLine]:
    """All decisions, oldest first."""
    return [line for line in lines if line.kind == "decision"]


def _find(found: list[LedgerLine], wanted: str | None, table: str) -> LedgerLine:
    if not found:
        raise LedgerError(f"the ledger of {table} has no decision yet: `oreo-maintain {table}` makes the first one")
    if wanted is None:
        return found[-1]
    fitting = [line for line in found if wanted and line.run.startswith(wanted)]
    runs = {line.run for line in fitting}
    if len(runs) == 1:
        return fitting[-1]
    listed = fitting if runs else found
    words = "; ".join(
        f"{line.run[:SHOWN]} ({line.time:%Y-%m-%d %H:%M}, {line.facts.get('decision')})"
        for line in reversed(listed[-_LISTED:])
    )
    if runs:
        raise LedgerError(f"{wanted!r} is the beginning of {len(runs)} decisions of {table}: {words}")
    more = f", and {len(found) - _LISTED:,} older" if len(found) > _LISTED else ""
    raise LedgerError(f"there is no decision {wanted!r} in the ledger of {table}; the last ones: {words}{more}")


def _candidates(
    facts: Mapping[str, Any], names: Mapping[str, str], current: str, target: str | None
) -> tuple[Candidate, ...]:
    costs, counters, regret = (numbers(facts.get(name)) for name in ("costs", "counters", "regret"))
    ids = dict.fromkeys([*costs, *counters, *regret])
    found = [
        Candidate(
            layout_id=state,
            layout=names.get(state, WRITERS if state == INITIAL else state),
            cost=costs.get(state),
            counter=counters.get(state),
            regret=regret.get(state),
            is_current=state == current,
            is_target=state == target,
            weight=number(facts.get("weight")) or 1.0,
        )
        for state in ids
    ]
    return tuple(sorted(found, key=lambda c: (c.cost is None, c.cost or 0.0, not c.is_current)))


def _sentences(e: Explanation, commit: Mapping[str, Any] | None) -> list[str]:
    verbs = {
        "move": f"It moved to {e.target or 'another layout'}",
        "stay": f"It stayed {e.current}" if e.current == WRITERS else f"It stayed with {e.current}",
        "fold": "It folded the rows appended since into the layout that the table has",
        "return": f"It returned to {e.target or 'an earlier layout'}, whose files were still there",
    }
    if e.shadow and e.decision == "move":
        verbs["move"] = f"It would have moved to {e.target or 'another layout'}"
    part, scan = ("the table's bytes", "scan of all columns") if e.weigh == BYTES else ("the table", "full scan")
    scans = scan.replace("scan", "scans")
    verb = verbs.get(e.decision, f"It decided: {e.decision}")
    out = [f"{verb}: {e.reason}." if e.reason else f"{verb}."]
    if e.current_cost is not None and e.target_cost is not None and e.target is not None:
        gain = e.current_cost - e.target_cost
        out.append(
            f"A recent query reads {e.current_cost:.1%} of {part} now and would read {e.target_cost:.1%} there: "
            f"{gain:.1%} of a {scan} saved a query."
        )
        if e.alpha is not None and gain > 0:
            out.append(
                f"At that rate a rewrite, which costs {e.alpha:g} {scans}, pays after {e.alpha / gain:,.0f} queries."
            )
    if e.alpha is not None:
        out.append(f"Alpha is {e.alpha:g} {scans} ({e.alpha_source or 'its source was not recorded'}).")
    if e.weigh == BYTES and e.current_cost is not None:
        out.append(
            f"Bytes count (decide.weigh): the columns that a recent query reads take {e.weight:.1%} of the table's "
            "bytes, and that is what a full scan by it costs."
        )
    if e.mode is not None:
        out.append(_MODES.get(e.mode, f"Costs were counted in mode {e.mode}."))
    leading = [c for c in e.candidates if not c.is_current and c.regret is not None]
    if leading:
        most = max(leading, key=lambda c: c.regret or 0.0)
        if most.regret is not None and most.regret >= 0.05:
            words = f"Regret is largest against {most.layout}: {most.regret:,.1f} {scans} since the workload changed."
        else:
            words = "No other layout would have saved anything since the workload changed or the table moved."
        out.append(words)
    if e.exact_cost is not None and e.promised_cost is not None:
        out.append(
            f"A look at all rows before the rewrite found that a query would read {e.exact_cost:.1%} of {part}, where "
            f"the sample had promised {e.promised_cost:.1%}."
        )
    if e.held and e.held not in e.reason and not e.shadow:
        out.append(f"A wanted move was held back: {e.held}.")
    if e.shadow:
        out.append("This was a shadow run: it decided and recorded, and wrote nothing.")
    realised = number(commit.get("cost_realised")) if commit else None
    if realised is not None:
        out.append(f"On the new files' real statistics the same queries read {realised:.1%} of {part}.")
    if len(e.bound) == 3:
        out.append(
            f"The decisions' own account stands at {e.bound['paid']:,.1f} of at most {e.bound['limit']:,.1f} scans."
        )
    return out
