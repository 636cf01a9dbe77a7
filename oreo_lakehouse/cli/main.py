"""`oreo`: everything around a table's layout that is not the maintenance run itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from oreo_lakehouse.cli.frame import (
    EXIT_CODES,
    guarded,
)
from oreo_lakehouse.cli.lazy import LazyGroup


class _Commands(LazyGroup):
    homes: ClassVar[dict[str, str]] = {
        "status": "insight:show_status",
        "explain": "insight:explain_decision",
        "ledger": "insight:show_ledger",
        "report": "insight:write_report",
        "layouts": "layouts:show_layouts",
        "rollback": "layouts:undo_layout",
        "calibrate": "layouts:measure",
        "history": "history:history_app",
        "backtest": "backtest:backtest",
    }


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Decide online when to change a table's layout, and to which one.",
    epilog=EXIT_CODES,
)


@app.callback()
def oreo() -> None:
    """A group, although only one of its commands is defined here."""


@app.command("demo", epilog=EXIT_CODES)
@guarded
def run_demo(
    folder: Annotated[Path, typer.Option(help="Where to build the two tables.")] = Path("oreo-demo"),
    rows: Annotated[int, typer.Option(min=10_000, help="Rows in each table.")] = 2_000_000,
) -> None:
    """Build a Delta and an Iceberg table, play shifting queries, and watch the layouts follow."""
    from oreo_lakehouse.cli.demo import demo

    demo(folder, rows)


def run() -> None:
    """Entry point."""
    app()
