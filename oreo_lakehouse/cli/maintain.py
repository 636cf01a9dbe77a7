"""`oreo-maintain TABLE`: decide about the queries since the last run and, when it pays, rewrite the table."""

from __future__ import annotations

import json
from typing import Annotated

import typer

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
from oreo_lakehouse.maintenance.maintain import maintain
from oreo_lakehouse.report import console

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog=EXIT_CODES)
@guarded
def oreo_maintain(
    table: TableArgument,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show exactly what would happen; write nothing.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    master: MasterOption = None,
    alpha: Annotated[float | None, typer.Option(help="Cost of a rewrite, in full scans.")] = None,
) -> None:
    """Decide from the table's query history whether another layout pays, and commit it if so.

    Rows are verified before anything becomes visible, writers are never blocked, and `oreo rollback` undoes a layout
    without losing rows that came later.
    """
    chosen = settings(config, master, **{"decide.alpha": alpha})
    with running_spark(chosen) as (spark, progress):
        outcome = maintain(spark, table, chosen, dry_run=dry_run, progress=progress)
    if as_json:
        typer.echo(json.dumps(outcome.to_json()))
    else:
        console.show_outcome(outcome)


def run() -> None:
    """Entry point."""
    app()
