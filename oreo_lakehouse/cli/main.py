"""`oreo`: everything around a table's layout that is not the maintenance run itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from oreo_lakehouse.cli.backtest import backtest
from oreo_lakehouse.cli.demo import demo
from oreo_lakehouse.cli.frame import (
    EXIT_CODES,
    ConfigOption,
    JsonOption,
    MasterOption,
    TableArgument,
    guarded,
    running_spark,
    settings,
)
from oreo_lakehouse.cli.history import history_app
from oreo_lakehouse.maintenance.rollback import rollback
from oreo_lakehouse.maintenance.status import status
from oreo_lakehouse.report import console

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Decide online when to change a table's layout, and to which one.",
    epilog=EXIT_CODES,
)
app.add_typer(history_app, name="history")
app.command("backtest", epilog=EXIT_CODES)(backtest)


@app.command("status", epilog=EXIT_CODES)
@guarded
def show_status(
    table: TableArgument, as_json: JsonOption = False, config: ConfigOption = None, master: MasterOption = None
) -> None:
    """How a table stands: format, version, current layout, last decision."""
    chosen = settings(config, master)
    with running_spark(chosen) as (spark, _):
        found = status(spark, table, chosen)
    if as_json:
        typer.echo(json.dumps(found.to_json()))
    else:
        console.show_status(found)


@app.command("rollback", epilog=EXIT_CODES)
@guarded
def undo_layout(
    table: TableArgument, as_json: JsonOption = False, config: ConfigOption = None, master: MasterOption = None
) -> None:
    """Undo the last layout only; rows appended since are kept."""
    chosen = settings(config, master)
    with running_spark(chosen) as (spark, progress):
        done = rollback(spark, table, chosen, progress=progress)
    if as_json:
        typer.echo(json.dumps(done.to_json()))
    else:
        console.show_rollback(done)


@app.command("demo", epilog=EXIT_CODES)
@guarded
def run_demo(
    folder: Annotated[Path, typer.Option(help="Where to build the two tables.")] = Path("oreo-demo"),
    rows: Annotated[int, typer.Option(min=10_000, help="Rows in each table.")] = 2_000_000,
) -> None:
    """Build a Delta and an Iceberg table, play shifting queries, and watch the layouts follow."""
    demo(folder, rows)


def run() -> None:
    """Entry point."""
    app()
