"""What people read in a terminal. Results go to standard output, progress and warnings to standard error."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

if TYPE_CHECKING:
    from oreo_lakehouse.backtest.run import BacktestResult
    from oreo_lakehouse.history.importing import ImportSummary
    from oreo_lakehouse.history.summary import HistorySummary
    from oreo_lakehouse.maintenance.progress import Progress as ProgressCallback

PIPED_WIDTH = 200
"""Columns where there is no terminal to ask: lines in a log are for grep, not for reading in a window."""

out = Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)
err = Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else PIPED_WIDTH)


@contextmanager
def progress_bar() -> Generator[ProgressCallback]:
    """A bar on standard error that shows the step under way and vanishes at the end; silent without a terminal."""
    if not err.is_terminal:
        yield lambda _step, _share=None: None
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
    )
    with bar:
        task = bar.add_task("starting", total=None)

        def show(step: str, share: float | None = None) -> None:
            bar.update(task, description=Text(step).plain, total=None if share is None else 1.0, completed=share or 0.0)

        yield show


def size(count: int | float) -> str:
    """Bytes for people.

    >>> size(0), size(134217728)
    ('0 B', '128.0 MB')
    """
    value, unit = float(count), "B"
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if value < 1024 or unit == "TB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def facts(title: str, rows: list[tuple[str, str]]) -> None:
    """A heading and a two-column list on standard output."""
    out.print(Text(title, style="bold"))
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(Text(f"  {name}"), Text(value))
    out.print(grid)


def warn(message: str) -> None:
    err.print(Text("warning: ", style="yellow") + Text(message), soft_wrap=True)


def fail(message: str) -> None:
    err.print(Text("error: ", style="bold red") + Text(message), soft_wrap=True)


def show_import(table: str, summary: ImportSummary) -> None:
    """What became of a query log."""
    rows = [
        ("read", f"{summary.read:,} statements"),
        ("imported", f"{summary.imported:,} scans of the table, {summary.known_before:,} were known before"),
    ]
    if summary.relaxed or summary.unknown:
        rows.append(
            ("understood", f"{summary.relaxed:,} in part, {summary.unknown:,} not at all: taken as reading more")
        )
        rows += [("", f"{count:,} x {reason}") for reason, count in summary.reasons.most_common(3)]
    if summary.other_tables or summary.not_queries:
        rows.append(("skipped", f"{summary.other_tables:,} about other tables, {summary.not_queries:,} not queries"))
    if summary.rejected:
        rows.append(("rejected", f"{summary.rejected:,} lines that could not be read"))
        rows += [("", fault) for fault in summary.faults[:3]]
    facts(f"query history of {table}", rows)


def show_history(table: str, summary: HistorySummary) -> None:
    """What is known of a table's queries."""

    def counts(pairs: dict[str, int]) -> str:
        return ", ".join(f"{name} {count:,}" for name, count in pairs.items()) or "none"

    rows = [("queries", f"{summary.queries:,}, which scan the table {summary.scans:,} times")]
    if summary.scans:
        rows += [
            ("from", f"{summary.first} to {summary.last}"),
            ("sources", counts(summary.sources)),
            ("understood", counts(summary.exactness)),
            ("filter by", counts(summary.columns)),
        ]
        rows += [("asks", f"{_sparkline(t.over_time)} {t.count:,} x {t.shape}") for t in summary.templates[:5]]
    rows += [("not understood", f"{count:,} x {reason}") for reason, count in list(summary.reasons.items())[:3]]
    if summary.dropped:
        rows.append(("dropped", f"{summary.dropped:,} scans that capture saw and could not keep"))
    rows += [("set aside", path) for path in summary.unreadable]
    facts(f"query history of {table}", rows)


def _sparkline(counts: tuple[int, ...]) -> str:
    marks, top = " ▁▂▃▄▅▆▇█", max(counts, default=0) or 1
    return "".join(marks[-(-count * 8 // top)] for count in counts)


def show_backtest(result: BacktestResult) -> None:
    """What each policy would have paid, cheapest last line of advice included."""
    grid = Grid()
    grid.add_column("policy")
    for heading in ("query", "rewrite", "total", "rewrites", "layouts"):
        grid.add_column(heading, justify="right")
    for name, outcome in sorted(result.outcomes.items(), key=lambda item: item[1].total):
        numbers = [f"{number:,.0f}" for number in (outcome.query, outcome.movement, outcome.total)]
        grid.add_row(name, *numbers, str(len(outcome.moves)), str(outcome.states))
    out.print(grid)
    out.print(
        f"{result.queries:,} queries, {result.unparsed:,} of them taken as full scans; costs are in full scans of the "
        f"table. static, mts-optimal, offline-optimal and optimum know the future. {result.seconds:.1f} s"
    )
    out.print(result.advice(), style="bold")
