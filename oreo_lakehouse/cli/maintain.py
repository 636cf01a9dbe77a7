"""`oreo-maintain TABLE…`: decide about the queries since the last run and, when it pays, rewrite the table."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from oreo_lakehouse.cli.frame import (
    EXIT_CODES,
    ConfigOption,
    JsonOption,
    MasterOption,
    guarded,
    running_spark,
    sentence,
    settings,
)
from oreo_lakehouse.config import parse_duration, parse_size
from oreo_lakehouse.errors import ConfigError, ExitCode, HistoryError
from oreo_lakehouse.maintenance.fleet import (
    TableRun,
    every_known_table,
    expand,
    idle_runs,
    is_pattern,
    maintain_all,
)
from oreo_lakehouse.maintenance.offline import offline_store
from oreo_lakehouse.maintenance.options import RunOptions
from oreo_lakehouse.report import console, outcomes
from oreo_lakehouse.store import configured_store

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog=EXIT_CODES)
@guarded
def oreo_maintain(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE...", help="table, db.table, catalog.namespace.table, a path, or a pattern: 'db.*'."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every table that has a history.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show exactly what would happen; write nothing.")] = False,
    shadow: Annotated[bool, typer.Option("--shadow", help="Decide and record, but never touch a table.")] = False,
    after_optimize: Annotated[
        bool, typer.Option("--after-optimize", help="Tell what foreign rewrites undid, and repair only that.")
    ] = False,
    budget: Annotated[str | None, typer.Option(metavar="SIZE", help="Rewrite at most so much in all: 20GB.")] = None,
    max_minutes: Annotated[float | None, typer.Option(help="Begin no rewrite that would end later.")] = None,
    cooldown: Annotated[
        str | None, typer.Option(metavar="TIME", help="Leave a new layout alone for so long: 30m, 6h, 2d.")
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    master: MasterOption = None,
    alpha: Annotated[float | None, typer.Option(help="Cost of a rewrite, in scans; else it is measured.")] = None,
) -> None:
    """Decide from a table's query history whether another layout pays, and commit it if so.

    Rows are verified before anything becomes visible, writers are never blocked, and `oreo rollback` undoes a layout
    without losing rows that came later.
    """
    named = list(tables or [])
    if bool(named) == every:
        raise ConfigError("name the tables to maintain, or give --all for every table that has a history")
    if dry_run and shadow:
        raise ConfigError("--dry-run records nothing and --shadow records its decisions: choose one")
    options = RunOptions(
        dry_run=dry_run,
        shadow=shadow,
        after_optimize=after_optimize,
        budget=None if budget is None else parse_size(budget, "--budget"),
        cooldown=0.0 if cooldown is None else parse_duration(cooldown, "--cooldown"),
        deadline=None if max_minutes is None else time.monotonic() + 60 * max_minutes,
    )
    chosen = settings(config, master, **{"decide.alpha": alpha})
    store = offline_store(chosen) if every else None
    wanted = list(dict.fromkeys(named)) if store is None else every_known_table(store)
    runs: list[TableRun] = []
    for run in idle_runs([name for name in wanted if not is_pattern(name)], chosen, options):
        runs.append(run)
        _show(run, as_json=as_json, alone=[run.table] == wanted)
    done = {run.table for run in runs}
    if len(done) < len(wanted) or not wanted:
        with running_spark(chosen) as (spark, progress):
            wanted = every_known_table(configured_store(spark, chosen)) if every else expand(spark, named)
            if not wanted:
                raise HistoryError("no table has a history yet: `oreo history import TABLE FILE` adds one")
            rest = [name for name in wanted if name not in done]
            for run in maintain_all(spark, rest, chosen, options, only_tables=wanted != named, progress=progress):
                runs.append(run)
                _show(run, as_json=as_json, alone=len(wanted) == 1)
    if len(runs) > 1 and not as_json:
        outcomes.show_runs(runs)
    worst = max((run.exit_code for run in runs), default=ExitCode.DONE)
    if worst:
        raise typer.Exit(worst)


def _show(run: TableRun, *, as_json: bool, alone: bool) -> None:
    if run.error is not None:
        if alone:
            raise run.error
        if as_json:
            typer.echo(json.dumps({"table": run.table, "error": sentence(run.error), "exit_code": int(run.exit_code)}))
        console.fail(f"{run.table}: {sentence(run.error)}")
    elif run.outcome is not None:
        for notice in run.outcome.notices:
            console.warn(notice)
        if as_json:
            typer.echo(json.dumps(run.outcome.to_json()))
        else:
            outcomes.show_outcome(run.outcome)


def run() -> None:
    """Entry point."""
    app()
