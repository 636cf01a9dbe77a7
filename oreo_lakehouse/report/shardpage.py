"""The report of a partitioned table: all shards together, and a chapter for each that opens where you choose it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from oreo_lakehouse.maintenance.shardledgers import ShardLedger, busiest, shard_accounts, total
from oreo_lakehouse.report.charts import Drawings
from oreo_lakehouse.report.page import chapter
from oreo_lakehouse.report.pageparts import document, section, table, tile_row

if TYPE_CHECKING:
    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.maintenance.shardledgers import ShardAccount, Total
    from oreo_lakehouse.maintenance.status import TableStatus

CHAPTERS = 24
"""Shards that a page tells all about, those that most was asked of; a page must stay light."""


def shards_page(status: TableStatus, shards: Sequence[ShardLedger], files: Mapping[str, Blocks]) -> str:
    """The page as text; it needs nothing but itself.

    Args:
        status: of the table.
        shards: their ledgers.
        files: the present files of each, by its id.
    """
    accounts = shard_accounts(shards)
    weight = {one.label: one.share * one.account.queries for one in accounts}
    asked = [shard for shard in shards if shard.label in weight and shard.id in files]
    told = sorted(asked, key=lambda shard: -weight[shard.label])[:CHAPTERS]
    first = busiest(told) if told else None
    draw = Drawings()
    chapters = "".join(
        _chapter(draw, status, shard, files[shard.id], is_open=shard is first) for shard in shards if shard in told
    )
    linked = {shard.label: shard.id for shard in told}
    overview = _overview(accounts, linked, len(shards))
    return document(status, "a layout for each shard", _tiles(total(accounts), len(shards)), overview + chapters)


def _chapter(draw: Drawings, status: TableStatus, shard: ShardLedger, blocks: Blocks, *, is_open: bool) -> str:
    # One name for all: to open one closes the others. A link to what is inside opens it.
    tiles, sections = chapter(draw, status, blocks, shard.lines)
    state = " open" if is_open else ""
    return (
        f'<details name="shard"{state}><summary>{escape(shard.label)}</summary>'
        f'<div id="shard-{shard.id}">{tile_row(tiles)}{sections}</div></details>'
    )


def _tiles(whole: Total, shards: int) -> str:
    share = f"{whole.saved / whole.never:+.0%}" if whole.never else ""
    return tile_row(
        [
            (
                f"{whole.saved:,.0f}",
                f"full scans saved against never ({share})",
                "good" if whole.saved >= 0 else "warn",
            ),
            (f"{whole.spent:,.0f}", f"spent, {whole.rewrite:,.0f} of it on {whole.rewrites:,} rewrites", ""),
            (f"{shards:,}", "shards, each with a layout, ledger and guarantee of its own", ""),
        ]
    )


def _overview(accounts: Sequence[ShardAccount], linked: Mapping[str, str], shards: int) -> str:
    rows = [
        [
            (_link(one.label, linked), "wrap"),
            (f"{one.share:.1%}", "n"),
            (f"{one.account.queries:,}", "n"),
            (f"{one.account.spent:,.1f}", "n"),
            (f"{one.account.saved:,.1f}", "n"),
            (f"{one.account.rewrites:,}", "n"),
            (escape(one.account.timeline[-1].layout) if one.account.timeline else "", "wrap"),
        ]
        for one in accounts
    ]
    words = f"{len(rows):,} of {shards:,} shards have been asked of. Spent and saved are in scans of the shard itself."
    if len(linked) < len(rows):
        words += (
            f" The {len(linked)} that most was asked of have a chapter below; oreo report --shard writes any other."
        )
    heads = ["shard", "of the rows", "queries", "spent", "saved", "rewrites", "layout now"]
    return section("Shards", words, table(heads, rows))


def _link(label: str, linked: Mapping[str, str]) -> str:
    text = escape(label)
    return f'<a href="#shard-{linked[label]}">{text}</a>' if label in linked else text
