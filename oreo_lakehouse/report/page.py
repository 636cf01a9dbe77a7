"""`oreo report`: one page that opens offline and shows what a table's layouts cost, saved and skip."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from oreo_lakehouse.maintenance.account import Account, account
from oreo_lakehouse.maintenance.explaining import SHOWN
from oreo_lakehouse.maintenance.health import heat
from oreo_lakehouse.maintenance.ledgerfacts import number
from oreo_lakehouse.maintenance.receipts import Receipt, receipts
from oreo_lakehouse.maintenance.story import INITIAL, Story, read_story
from oreo_lakehouse.report.charts import Drawings, Line
from oreo_lakehouse.report.pageparts import Tile, document, section, table, tile_row

if TYPE_CHECKING:
    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.maintenance.ledger import LedgerLine
    from oreo_lakehouse.maintenance.status import TableStatus

_ROWS, _COLUMNS = 16, 96
_DECISIONS = 25


def report_page(status: TableStatus, blocks: Blocks, lines: Sequence[LedgerLine]) -> str:
    """The page as text; it needs nothing but itself."""
    tiles, sections = chapter(Drawings(), status, blocks, lines)
    skipping = status.health.skipping if status.health else None
    if skipping:
        tiles.append((f"{skipping.bytes:.0%}", "of the bytes skipped by the last 7 days of queries", ""))
    now = status.layout or status.layout_id or "no layout of ours"
    return document(status, now, tile_row(tiles), sections)


def chapter(draw: Drawings, status: TableStatus, blocks: Blocks, lines: Sequence[LedgerLine]) -> tuple[list[Tile], str]:
    """All that a page tells of a table, or of one shard: the figures that matter most, and the rest."""
    story = read_story(lines)
    spent, paid = account(story), receipts(story)
    sections = [
        _cost(draw, spent, paid),
        _timeline(draw, spent),
        _skipping(draw, story),
        _heat(draw, status, blocks),
        _receipts(paid, spent.scans),
        _decisions(story),
    ]
    return _tiles(spent), "".join(sections)


def _tiles(spent: Account) -> list[Tile]:
    tiles: list[Tile] = []
    if spent.queries:
        share = f"{spent.saved / spent.never_cost:+.0%}" if spent.never_cost else ""
        tone = "good" if spent.saved >= 0 else "warn"
        tiles.append((f"{spent.saved:,.0f}", f"{spent.scans} saved against never ({share})", tone))
        tiles.append(
            (f"{spent.spent:,.0f}", f"spent, {spent.rewrite_cost:,.0f} of it on {spent.rewrites:,} rewrites", "")
        )
        best = spent.best_fixed
        if best:
            tiles.append((f"{best.total:,.0f}", f"best fixed layout in hindsight: {best.layout}", ""))
    if spent.bound:
        tiles.append((f"{spent.bound.room:,.0f}", f"{spent.scans} below the bound of {spent.bound.limit:,.0f}", ""))
    return tiles


def _cost(draw: Drawings, spent: Account, paid: Sequence[Receipt]) -> str:
    title = "What it cost"
    if not spent.queries:
        return section(title, "No run has served queries yet: run oreo-maintain.", "")
    best = spent.best_fixed
    lines = [
        Line("actual", "queries as served, and rewrites", spent.actual_curve),
        Line("never", "the layout never changed", spent.never_curve),
    ]
    if best and best.layout_id != INITIAL:
        lines.append(Line("fixed", f"best fixed layout, built at the start: {best.layout}", spent.fixed_curve))
    marks = [(float(one.after_query), str(number)) for number, one in enumerate(paid, 1)]
    words = (
        f"After {spent.queries:,} queries {spent.spent:,.1f} {spent.scans} were spent, against {spent.never_cost:,.1f} "
        "had the layout never been changed"
        + (f" and {best.total:,.1f} under {best.layout} from the start." if best and best.layout_id != INITIAL else ".")
    )
    drawn = draw.lines(f"Cumulative cost in {spent.scans}", words, "queries", lines, marks)
    note = " Numbers mark the rewrites of the receipts below." if marks else ""
    return section(title, f"{words}{note}", f"<figure>{drawn}</figure>")


def _timeline(draw: Drawings, spent: Account) -> str:
    stays = [stay for stay in spent.timeline if stay.queries or stay.until is None]
    if not spent.queries:
        return ""
    colours = _colours([stay.layout_id for stay in stays])
    words = "; ".join(f"{stay.layout} for {stay.queries:,} queries" for stay in stays)
    band = draw.band("Layouts over the queries", words, [(stay.queries, colours[stay.layout_id]) for stay in stays])
    rows = [
        [
            (_swatch(colours[stay.layout_id]) + escape(stay.layout), "wrap"),
            (f"{stay.since:%Y-%m-%d %H:%M}" if stay.since else "", "t"),
            (f"{stay.until:%Y-%m-%d %H:%M}" if stay.until else "live now", "t"),
            (f"{stay.queries:,}", "n"),
            (f"{stay.folds:,}", "n"),
        ]
        for stay in stays
    ]
    stretches = table(["layout", "from", "until", "queries", "folds"], rows)
    return section("Layouts", "Which layout served how many queries, in order.", f"<figure>{band}</figure>{stretches}")


def _skipping(draw: Drawings, story: Story) -> str:
    if not story.served:
        return ""
    actual: list[tuple[float, float]] = []
    never: list[tuple[float, float]] = []
    at = 0
    for served in story.served:
        for bucket, queries in enumerate(served.counts.tolist()):
            for x in (at, at + queries):
                actual.append((x, 1 - served.actual[bucket] / queries))
                never.append((x, 1 - served.never[bucket] / queries))
            at += queries
    total = story.queries
    mean = 1 - sum(float(s.actual.sum()) for s in story.served) / total
    before = 1 - sum(float(s.never.sum()) for s in story.served) / total
    last = story.served[-1]
    words = (
        f"A query skipped {mean:.1%} of the table on average, {1 - last.actual.sum() / last.queries:.1%} in the last "
        f"run; as the writers left it, it would have been {before:.1%}."
    )
    lines = [Line("actual", "skipped as served", actual), Line("never", "skipped had the layout never changed", never)]
    drawn = draw.lines(
        "Share of the table that queries skip", words, "queries", lines, percent=True, filled=True, low=True
    )
    return section("Skipping, before and after", words, f"<figure>{drawn}</figure>")


def _heat(draw: Drawings, status: TableStatus, blocks: Blocks) -> str:
    title, recent = "Which files are read", status.recent
    if recent is None or not len(blocks):
        return section(title, "No query history yet.", "")
    columns = status.health.columns if status.health else ()
    column = min(columns, key=lambda one: one.overlap_ratio).column if columns else None  # which separates files best
    shares = heat(blocks, recent.workload, column, _ROWS, _COLUMNS, "native")
    order = f"ordered by {column}" if column else "in their own order"
    words = (
        f"{recent.queries:,} queries from {recent.since:%Y-%m-%d} to {recent.until:%Y-%m-%d}, oldest on top, against "
        f"{len(blocks):,} files, {order}. A query reads {shares.mean():.1%} of the files on average; the least read "
        f"part is read by {shares.mean(axis=0).min():.1%} of the queries, the most read by "
        f"{shares.mean(axis=0).max():.1%}."
    )
    drawn = draw.heat("Heat map of files read by recent queries", words, shares)
    ends = (
        '<figcaption class="ends"><span>first files</span><span>never read<span class="scale"></span>always</span>'
        "<span>last files</span></figcaption>"
    )
    return section(title, words, f"<figure>{drawn}{ends}</figure>")


def _receipts(paid: Sequence[Receipt], scans: str) -> str:
    title = "Receipts"
    if not paid:
        return section(title, "No rewrite has been made yet.", "")
    rows = []
    for at, one in enumerate(paid, 1):
        tone = "good" if one.has_paid else ""
        drift = ' <span class="warn">Prediction off by more than 20%.</span>' if one.drifts else ""
        rows.append(
            [
                (str(at), "n"),
                (escape(one.layout) + (" (return)" if one.action == "return" else ""), "wrap"),
                (f"{one.time:%Y-%m-%d %H:%M}", "t"),
                (_number(one.alpha, 1), "n"),
                (_number(one.predicted_saving, 3), "n"),
                (_number(one.realised_saving, 3), "n"),
                (f"{one.queries:,}", "n"),
                (f"{one.saved:,.1f}", "n"),
                (f'<span class="{tone}">{escape(one.verdict)}</span>.{drift}', "wrap"),
            ]
        )
    heads = ["no.", "layout", "made", "cost", "promised", "realised", "queries", "saved", "verdict"]
    words = f"Promised and realised are {scans} saved a query, against the layout before."
    return section(title, words, table(heads, rows))


def _decisions(story: Story) -> str:
    title = "Decisions"
    if not story.decisions:
        return section(title, "None yet.", "")
    rows = [
        [
            (f"{line.time:%Y-%m-%d %H:%M}", "t"),
            (f"<code>{escape(line.run[:SHOWN])}</code>", "t"),
            (escape(str(line.facts.get("decision", ""))), "t"),
            (_share(line.facts.get("current_cost")), "n"),
            (escape(str(line.facts.get("held") or line.facts.get("reason", ""))), "wrap"),
        ]
        for line in reversed(story.decisions[-_DECISIONS:])
    ]
    words = f"The last {len(rows)} of {len(story.decisions):,}; oreo explain TABLE --decision ID tells all about one."
    return section(title, words, table(["when", "id", "decision", "a query reads", "why"], rows))


def _swatch(colour: int) -> str:
    return f'<span class="swatch" style="background:var(--l{colour % 8})"></span>'


def _colours(ids: Sequence[str]) -> dict[str, int]:
    found = {INITIAL: 0}
    for one in ids:
        found.setdefault(one, len(found))
    return found


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _share(value: object) -> str:
    found = number(value)
    return "" if found is None else f"{found:.1%}"
