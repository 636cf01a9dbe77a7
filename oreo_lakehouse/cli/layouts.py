"""`oreo layouts`, `oreo rollback`, `oreo calibrate`: what layouts there are, the way back, and what a rewrite costs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from oreo_lakehouse.cli.frame import (
    ConfigOption,
    JsonOption,
    MasterOption,
    ShardOption,
    TableArgument,
    dossier_of,
    guarded,
    running_spark,
    settings,
)
from oreo_lakehouse.maintenance.calibrate import calibrate
from oreo_lakehouse.maintenance.layouts import known_layouts, retention_warnings
from oreo_lakehouse.maintenance.rollback import rollback
from oreo_lakehouse.report import console, outcomes


@guarded
def show_layouts(
    table: TableArgument, as_json: JsonOption = False, config: ConfigOption = None, master: MasterOption = None
) -> None:
    """Every layout that the table has had: live, returnable and until when, or gone."""
    chosen = settings(config, master)
    with dossier_of(table, chosen) as (dossier, _):
        found = known_layouts(dossier)
    identity = dossier.table.identity
    if as_json:
        typer.echo(json.dumps({"table": identity.name, "layouts": [one.to_json() for one in found]}))
        return
    for warning in retention_warnings(found, identity.name, identity.format):
        console.warn(warning)
    outcomes.show_layouts(identity.name, found)


@guarded
def undo_layout(
    table: TableArgument,
    to: Annotated[
        str | None, typer.Option("--to", metavar="LAYOUT", help="Go back to this earlier layout; see oreo layouts.")
    ] = None,
    shard: ShardOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    master: MasterOption = None,
) -> None:
    """Undo the last layout only, or go back to an earlier one; rows appended since are kept."""
    chosen = settings(config, master)
    with running_spark(chosen) as (spark, progress):
        done = rollback(spark, table, chosen, to=to, shard=shard, progress=progress)
    if as_json:
        typer.echo(json.dumps(done.to_json()))
    else:
        outcomes.show_rollback(done)


@guarded
def measure(
    table: TableArgument, as_json: JsonOption = False, config: ConfigOption = None, master: MasterOption = None
) -> None:
    """Measure now what a rewrite of the table costs, in scans of it; the table is not touched."""
    chosen = settings(config, master)
    with running_spark(chosen) as (spark, progress):
        done = calibrate(spark, table, chosen, progress=progress)
    if as_json:
        typer.echo(json.dumps(done.to_json()))
    else:
        outcomes.show_calibration(done)
