"""`oreo explain` and `oreo ledger` in a terminal: why a run decided as it did, and what all of it cost and saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table as Grid
from rich.text import Text

from oreo_lakehouse.maintenance.explaining import SHOWN
from oreo_lakehouse.report.console import facts, out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oreo_lakehouse.maintenance.account import Account, FixedLayout
    from oreo_lakehouse.maintenance.explaining import Explanation
    from oreo_lakehouse.maintenance.receipts import Receipt
    from oreo_lakehouse.maintenance.shardledgers import ShardAccount, Total


def show_explanation(table: str, found: Explanation) -> None:
    """A decision in words, then in numbers."""
    show_briefly(table, found)
    rows = [("queries", f"{found.queries:,} new"), ("version", str(found.version))]
    if found.phase is not None:
        rows.append(("phase", str(found.phase)))
    facts("evidence", rows)
    if found.candidates:
        out.print(_candidates(found))
    if found.hot:
        grid = _grid("queries that mattered most", "queries", "reads now", "would read")
        for one in found.hot:
            grid.add_row(Text(one.shape), f"{one.queries:,}", _share(one.cost_now), _share(one.cost_target))
        out.print(grid)
    if found.events:
        facts(
            "events, query by query",
            [(f"query {event.query:,}", f"{event.kind} {event.layout}: {event.reason}") for event in found.events],
        )


def show_briefly(part: str, found: Explanation) -> None:
    """A shard's decision in words alone."""
    out.print(
        Text(f"{part}: decision {found.id[:SHOWN]}, {found.time:%Y-%m-%d %H:%M} UTC, ", style="bold")
        + Text(found.decision, style="bold green" if found.decision != "stay" else "bold")
    )
    for sentence in found.sentences:
        out.print(Text(f"  {sentence}"))


def _candidates(found: Explanation) -> Grid:
    grid = _grid("candidate", "a query skips", "counter", "full at", "regret", "")
    for one in found.candidates:
        mark = "now" if one.is_current else "chosen" if one.is_target else ""
        grid.add_row(
            Text(one.layout),
            _share(one.skips),
            _number(one.counter),
            _number(found.alpha),
            _number(one.regret),
            mark,
        )
    return grid


def show_ledger(table: str, account: Account, receipts: Sequence[Receipt]) -> None:
    """Spent, saved, the best fixed layout, the bound, the receipts."""
    if not account.queries and not receipts:
        facts(f"ledger of {table}", [("nothing yet", "no run has decided about a query; run oreo-maintain")])
        return
    span = f", {account.first:%Y-%m-%d} to {account.last:%Y-%m-%d}" if account.first and account.last else ""
    spent = (
        f"{account.spent:,.1f} = {account.query_cost:,.1f} for queries + {account.rewrite_cost:,.1f} for "
        f"{account.rewrites:,} rewrites"
    )
    rows = [
        ("queries", f"{account.queries:,} served{span}; all costs in {account.scans}"),
        ("spent", spent),
        ("never", f"{account.never_cost:,.1f}, had the layout never been changed"),
        ("saved", _saved(account)),
    ]
    if account.uncharged:
        rows.append(("not counted", f"{account.uncharged:,} rewrites whose cost was not recorded"))
    rows += [("best fixed", _fixed(layout, account)) for layout in [account.best_fixed] if layout is not None]
    rows += [("known in part", _fixed(layout, account)) for layout in account.fixed if not layout.is_complete][:3]
    if account.bound:
        bound = account.bound
        words = (
            f"{bound.paid:,.1f} paid of at most {bound.limit:,.1f} (1.25 x the comparator's {bound.comparator:,.1f} + "
            f"5 alpha + 1): {bound.room:,.1f} below it. The decisions' own account, query by query"
        )
        rows.append(("bound", words))
    facts(f"ledger of {table}", rows)
    _timeline(account)
    _receipts(receipts, account.scans)


def show_shards(table: str, accounts: Sequence[ShardAccount], total: Total) -> None:
    """The whole in scans of the table, then a line a shard in scans of the shard."""
    if not accounts:
        facts(f"ledger of {table}", [("nothing yet", "no run has decided about a query; run oreo-maintain")])
        return
    words = (
        f"{total.spent:,.1f} = {total.queries:,.1f} for queries + {total.rewrite:,.1f} for {total.rewrites:,} rewrites"
    )
    facts(
        f"ledger of {table}, all shards",
        [
            ("spent", f"{words}, in {accounts[0].account.scans}"),
            ("never", f"{total.never:,.1f}, had the layouts never been changed"),
            ("saved", f"{total.saved:,.1f} against never"),
        ],
    )
    grid = _grid("shard", "of the rows", "queries", "spent", "never", "saved", "rewrites", "bound", "layout now")
    for one in accounts:
        bound = one.account.bound
        grid.add_row(
            Text(one.label),
            _share(one.share),
            f"{one.account.queries:,}",
            _number(one.account.spent),
            _number(one.account.never_cost),
            _number(one.account.saved),
            f"{one.account.rewrites:,}",
            "" if bound is None else f"{bound.paid:,.1f} of {bound.limit:,.1f}",
            Text(one.account.timeline[-1].layout),
        )
    out.print(grid)
    out.print(Text("  in scans of the shard; --shard shows one with its receipts", style="dim"))


def _saved(account: Account) -> str:
    share = f" ({account.saved / account.never_cost:+.1%})" if account.never_cost else ""
    note = "" if account.saved >= 0 else ": rewrites have not paid for themselves yet"
    return f"{account.saved:,.1f} against never{share}{note}"


def _fixed(layout: FixedLayout, account: Account) -> str:
    build = f" + {layout.build_cost:,.1f} to build it" if layout.build_cost else ""
    cost = f"{layout.layout}: {layout.total:,.1f} = {layout.query_cost:,.1f} for queries{build}"
    if all(stay.layout_id != layout.layout_id for stay in account.timeline):
        cost += " (an estimate: it was never built)"
    if layout.is_complete:
        return f"{cost}, in hindsight and of the layouts known for all {account.queries:,} queries"
    return (
        f"{cost}, priced for {layout.queries:,} queries from the {layout.first_query:,}. on; "
        f"{layout.actual_cost:,.1f} were spent on the same ones"
    )


def _timeline(account: Account) -> None:
    rows: list[tuple[str, str]] = []
    for stay in account.timeline:
        since = f"{stay.since:%Y-%m-%d %H:%M}" if stay.since else "start"
        how = {"start": "", "layout": "", "rollback": " (rolled back to)", "return": " (returned to)"}.get(
            stay.action, f" ({stay.action})"
        )
        folds = f", {stay.folds:,} fold{'s' if stay.folds > 1 else ''}" if stay.folds else ""
        rows.append((since, f"{stay.layout}{how}: {stay.queries:,} queries{folds}"))
    facts("layouts", rows)


def _receipts(receipts: Sequence[Receipt], scans: str) -> None:
    if not receipts:
        return
    grid = _grid("receipt", "made", "cost", "promised", "realised", "queries", "saved", "verdict")
    for one in receipts:
        verdict = Text(one.verdict, style="green" if one.has_paid else "")
        if one.drifts:
            verdict += Text("; prediction off by more than 20%", style="yellow")
        grid.add_row(
            Text(f"{one.layout}{' (return)' if one.action == 'return' else ''}"),
            f"{one.time:%Y-%m-%d %H:%M}",
            _number(one.alpha),
            _number(one.predicted_saving, 3),
            _number(one.realised_saving, 3),
            f"{one.queries:,}",
            f"{one.saved:,.1f}",
            verdict,
        )
    out.print(grid)
    out.print(Text(f"  promised and realised: {scans} saved a query, against the layout before", style="dim"))


def _grid(first: str, *others: str) -> Grid:
    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="dim")
    grid.add_column(first, overflow="fold")
    for name in others:
        grid.add_column(name, justify="left" if name in ("verdict", "made", "") else "right", overflow="fold")
    return grid


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:,.{digits}f}"
