"""`oreo history …`: what is known of a table's queries, and how more gets in."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from oreo_lakehouse.cli.frame import (
    EXIT_CODES,
    ConfigOption,
    JsonOption,
    MasterOption,
    TableArgument,
    dossier_of,
    guarded,
    running_spark,
    settings,
)
from oreo_lakehouse.history.compaction import tend
from oreo_lakehouse.history.jar import PLUGIN, write_jar
from oreo_lakehouse.history.summary import summarise
from oreo_lakehouse.maintenance.intake import import_queries
from oreo_lakehouse.report import console


class _ShowByDefault(TyperGroup):
    """`oreo history TABLE` shows; `oreo history import TABLE FILE` and the others do what they say."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["show", *args]
        return super().parse_args(ctx, args)


history_app = typer.Typer(
    cls=_ShowByDefault, no_args_is_help=True, help="The queries that a table gets: `oreo history TABLE` shows them."
)


@history_app.command("import", epilog=EXIT_CODES)
@guarded
def import_files(
    table: TableArgument,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="JSONL, CSV or Parquet, also gzipped.")],
    fmt: Annotated[
        str, typer.Option("--format", help="auto, oreo, databricks, trino, snowflake or eventlog.")
    ] = "auto",
    dialect: Annotated[str, typer.Option(help="SQL dialect of the statements; by default Spark's.")] = "",
    time_zone: Annotated[str | None, typer.Option(help="Zone of the sessions, such as UTC or Europe/Berlin.")] = None,
    parser: Annotated[
        str,
        typer.Option(
            help="sqlglot; catalyst, Spark's own planner; or auto, which asks that about what is left unclear."
        ),
    ] = "auto",
    as_json: JsonOption = False,
    config: ConfigOption = None,
    master: MasterOption = None,
) -> None:
    """Add queries from a log. Each entry needs statement_text and start_time; nothing in it is ever executed."""
    chosen = settings(config, master)
    with running_spark(chosen) as (spark, progress):
        summary = import_queries(
            spark,
            table,
            files,
            chosen,
            fmt=fmt,
            dialect=dialect,
            time_zone=time_zone,
            parser=parser,
            progress=progress,
        )
    if as_json:
        typer.echo(json.dumps({"table": table, **asdict(summary)}))
    else:
        console.show_import(table, summary)


@history_app.command("show", epilog=EXIT_CODES)
@guarded
def show_history(
    table: TableArgument, as_json: JsonOption = False, config: ConfigOption = None, master: MasterOption = None
) -> None:
    """How many queries are known, since when, from where, and what they ask for."""
    chosen = settings(config, master)
    with dossier_of(table, chosen) as (dossier, progress):
        progress("reading the query history", None)
        summary = summarise(dossier.history)
    if as_json:
        typer.echo(json.dumps({"table": dossier.table.identity.name, **summary.to_json()}))
    else:
        console.show_history(dossier.table.identity.name, summary)


@history_app.command("compact", epilog=EXIT_CODES)
@guarded
def compact_history(
    table: TableArgument,
    days: Annotated[
        int | None, typer.Option(min=0, help="Drop what is older; 0 keeps everything. Else history.keep_days.")
    ] = None,
    size: Annotated[
        str | None, typer.Option("--bytes", help="Drop the oldest beyond this, such as 1GB. Else history.keep_bytes.")
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    master: MasterOption = None,
) -> None:
    """Pack past days into one file each and drop the oldest; safe beside running writers."""
    chosen = settings(config, master, **{"history.keep_days": days, "history.keep_bytes": size})
    with dossier_of(table, chosen) as (dossier, progress):
        progress("packing", None)
        done = tend(dossier.history, chosen.history)
    name = dossier.table.identity.name
    if as_json:
        typer.echo(json.dumps({"table": name, **asdict(done.packed), "dropped": done.dropped}))
        return
    packed = f"{done.packed.records:,} records of {done.packed.batches:,} batches"
    console.facts(f"query history of {name}", [("packed", packed), ("dropped", f"{done.dropped:,} day files")])


@history_app.command("jar", epilog=EXIT_CODES)
@guarded
def make_jar(
    output: Annotated[str, typer.Option("--output", "-o", help="The jar to write.")] = "oreo-capture.jar",
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Build the small jar that captures queries by configuration only; no JDK is needed."""
    with running_spark(settings(config)) as (spark, _):
        written = write_jar(spark, output)
    if as_json:
        typer.echo(json.dumps({"jar": str(written), "plugin": PLUGIN}))
        return
    console.facts(
        str(written),
        [
            ("add", f"--jars {written} --conf spark.plugins={PLUGIN}"),
            ("store", "--conf spark.oreo.store=... unless it is _oreo in Spark's warehouse"),
            ("privacy", "--conf spark.oreo.redact=column,column and spark.oreo.storeSql=true as in [history]"),
        ],
    )
