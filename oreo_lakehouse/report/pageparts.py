"""What pages are put together from: the document, sections, tables and tiles."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

from oreo_lakehouse.report.console import size
from oreo_lakehouse.report.pagestyle import STYLE

if TYPE_CHECKING:
    from oreo_lakehouse.maintenance.status import TableStatus


Tile = tuple[str, str, str]
"""A figure, its words, and a tone or ""."""


def document(status: TableStatus, now: str, tiles: str, sections: str) -> str:
    """A page about the table around this; `now` says what layout it has."""
    when = datetime.now(UTC)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(status.table)}: layout report</title><style>{STYLE}</style></head><body>"
        f"<header><h1>{escape(status.table)}</h1>"
        f'<p class="dim">{escape(_subtitle(status, now))}</p>{tiles}</header>'
        f"<main>{sections}</main>"
        "<footer><p>A query costs the share of rows that it cannot skip (where bytes are weighed, times the share of "
        "the bytes that its columns take), a rewrite costs alpha. Everything here is read from the table's ledger and "
        "its files' statistics. Written by "
        f"<code>oreo report</code> on {when:%Y-%m-%d at %H:%M} UTC.</p></footer></body></html>\n"
    )


def _subtitle(status: TableStatus, now: str) -> str:
    return (
        f"{status.format.capitalize()} table, version {status.version}, {status.rows:,} rows in {status.files:,} "
        f"files, {size(status.bytes)}. Now: {now}."
    )


def tile_row(tiles: Sequence[Tile]) -> str:
    """Figures side by side."""
    return (
        '<div class="tiles">'
        + "".join(
            f'<div class="tile"><b{f" class={tone}" if tone else ""}>{value}</b><span>{escape(words)}</span></div>'
            for value, words, tone in tiles
        )
        + "</div>"
    )


def section(title: str, words: str, content: str) -> str:
    """A heading, a sentence, and what belongs to it."""
    return f'<section><h2>{escape(title)}</h2><p class="dim">{escape(words)}</p>{content}</section>'


def table(heads: Sequence[str], rows: Sequence[Sequence[tuple[str, str]]]) -> str:
    """Rows of cells, each with its kind; on a narrow screen a card each."""
    kinds = [kind for _, kind in rows[0]] if rows else []
    head = "".join(
        f'<th scope="col"{" class=n" if kind == "n" else ""}>{escape(name)}</th>'
        for name, kind in zip(heads, kinds, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{kind}" data-name="{escape(name)}">{cell}</td>'
            for name, (cell, kind) in zip(heads, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table class="cards"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
