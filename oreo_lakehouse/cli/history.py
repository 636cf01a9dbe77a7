"""`oreo history …`: what is known of a table's queries, and how more gets in."""

from __future__ import annotations

import json
from dataclasses import asdict
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
from oreo_lakehouse.maintenance.intake import import_queries
from oreo_lakehouse.report import console

history_app = typer.Typer(no_args_is_help=True, help="The queries that a table gets.")


@history_app.callback()
def history() -> None:
    """The queries that a table gets."""


@history_app.command("import", epilog=EXIT_CODES)
@guarded
def import_files(
    table: TableArgument,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="JSONL, CSV or Parquet, also gzipped.")],
    dialect: Annotated[str, typer.Option(help="SQL dialect of the statements; by default Spark's.")] = "",
    time_zone: Annotated[str | None, typer.Option(help="Zone of the sessions, such as UTC or Europe/Berlin.")] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    master: MasterOption = None,
) -> None:
    """Add queries from a log. Each entry needs statement_text and start_time; nothing in it is ever executed."""
    chosen = settings(config, master)
    with running_spark(chosen) as (spark, progress):
        summary = import_queries(spark, table, files, chosen, dialect=dialect, time_zone=time_zone, progress=progress)
    if as_json:
        typer.echo(json.dumps({"table": table, **asdict(summary)}))
    else:
        console.show_import(table, summary)
