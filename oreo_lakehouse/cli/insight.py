"""`oreo status`, `explain`, `ledger`, `report`: seeing and trusting, without a JVM where it is not needed."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oreo_lakehouse.cli.frame import (
    ConfigOption,
    JsonOption,
    MasterOption,
    TableArgument,
    guarded,
    running_spark,
    settings,
)
from oreo_lakehouse.config import Config
from oreo_lakehouse.errors import ConfigError
from oreo_lakehouse.maintenance.account import account
from oreo_lakehouse.maintenance.explaining import explain
from oreo_lakehouse.maintenance.offline import TableView, open_offline, open_view
from oreo_lakehouse.maintenance.receipts import receipts
from oreo_lakehouse.maintenance.status import offline_status, status, status_of
from oreo_lakehouse.maintenance.story import read_story
from oreo_lakehouse.report import console, page, standing, telling

if TYPE_CHECKING:
    from oreo_lakehouse.layouts.blocks import Blocks


@contextmanager
def _looking(table: str, config: Config) -> Generator[TableView]:
    """The table without Spark if that can be done, else through it."""
    view = open_offline(table, config)
    if view is not None:
        yield view
        return
    with running_spark(config) as (spark, progress):
        progress("opening the table", None)
        yield open_view(spark, table, config)


@contextmanager
def _looking_at_files(table: str, config: Config) -> Generator[tuple[TableView, Blocks]]:
    """The same with the files' statistics, which need Spark more often."""
    view = open_offline(table, config)
    blocks = None if view is None else view.table.blocks()
    if view is not None and blocks is not None:
        yield view, blocks
        return
    with running_spark(config) as (spark, progress):
        progress("reading the table's file statistics", None)
        view = open_view(spark, table, config)
        blocks = view.table.blocks()
        assert blocks is not None  # Spark always tells
        yield view, blocks


@guarded
def show_status(
    table: TableArgument, as_json: JsonOption = False, config: ConfigOption = None, master: MasterOption = None
) -> None:
    """How a table stands: format, version, current layout, clustering health, last decision."""
    chosen = settings(config, master)
    found = offline_status(table, chosen)
    if found is None:
        with running_spark(chosen) as (spark, _):
            found = status(spark, table, chosen)
    if as_json:
        typer.echo(json.dumps(found.to_json()))
    else:
        standing.show_status(found)


@guarded
def explain_decision(
    table: TableArgument,
    last: Annotated[bool, typer.Option("--last", help="The last decision; that is the default.")] = False,
    decision: Annotated[
        str | None, typer.Option("--decision", metavar="ID", help="A run's id, or the beginning of it.")
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    master: MasterOption = None,
) -> None:
    """Why a run moved or stayed: counters, regret, alpha, candidates, the queries that mattered most."""
    if last and decision is not None:
        raise ConfigError("--last and --decision exclude each other: leave one out")
    with _looking(table, settings(config, master)) as view:
        lines = view.ledger.lines()
        name = view.identity.name
    found = explain(lines, decision, table)
    if as_json:
        typer.echo(json.dumps({"table": name, **found.to_json()}))
    else:
        telling.show_explanation(name, found)


@guarded
def show_ledger(
    table: TableArgument, as_json: JsonOption = False, config: ConfigOption = None, master: MasterOption = None
) -> None:
    """Spent, saved, the best fixed layout in hindsight, the bound, and a receipt for every rewrite."""
    with _looking(table, settings(config, master)) as view:
        story = read_story(view.ledger.lines())
        name = view.identity.name
    found, paid = account(story), receipts(story)
    if as_json:
        typer.echo(json.dumps({"table": name, **found.to_json(), "receipts": [one.to_json() for one in paid]}))
    else:
        telling.show_ledger(name, found, paid)


@guarded
def write_report(
    table: TableArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    as_json: JsonOption = False,
    config: ConfigOption = None,
    master: MasterOption = None,
) -> None:
    """Write one self-contained page that opens offline: cost, layouts, skipping, heat map, receipts."""
    chosen = settings(config, master)
    with _looking_at_files(table, chosen) as (view, blocks):
        stands = status_of(view, blocks, chosen)
        lines = view.ledger.lines()
    text = page.report_page(stands, blocks, lines)
    try:
        output.write_text(text)
    except OSError as error:
        raise ConfigError(f"cannot write {output}: {error.strerror}") from error
    if as_json:
        typer.echo(json.dumps({"table": stands.table, "report": str(output.absolute()), "bytes": len(text.encode())}))
    else:
        console.facts(stands.table, [("report", str(output.absolute())), ("size", console.size(len(text.encode())))])
