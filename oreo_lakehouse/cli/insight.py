"""`oreo status`, `explain`, `ledger`, `report`: seeing and trusting, without a JVM where it is not needed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from oreo_lakehouse.cli.frame import (
    ConfigOption,
    JsonOption,
    MasterOption,
    ShardOption,
    TableArgument,
    guarded,
    looking,
    looking_at_files,
    settings,
)
from oreo_lakehouse.errors import ConfigError
from oreo_lakehouse.maintenance.account import account
from oreo_lakehouse.maintenance.explaining import decisions, explain
from oreo_lakehouse.maintenance.ledger import LedgerLine
from oreo_lakehouse.maintenance.receipts import receipts
from oreo_lakehouse.maintenance.shardledgers import (
    find_shard,
    shard_accounts,
    shard_ledgers,
    shard_with_decision,
    total,
)
from oreo_lakehouse.maintenance.shards import shards_of
from oreo_lakehouse.maintenance.status import status_of
from oreo_lakehouse.maintenance.story import read_story
from oreo_lakehouse.report import console, page, shardpage, standing, telling


@guarded
def show_status(
    table: TableArgument, as_json: JsonOption = False, config: ConfigOption = None, master: MasterOption = None
) -> None:
    """How a table stands: format, version, current layout, clustering health, last decision."""
    chosen = settings(config, master)
    with looking_at_files(table, chosen) as (view, blocks):
        found = status_of(view, blocks, chosen)
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
    shard: ShardOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    master: MasterOption = None,
) -> None:
    """Why a run moved or stayed: counters, regret, alpha, candidates, the queries that mattered most."""
    if last and decision is not None:
        raise ConfigError("--last and --decision exclude each other: leave one out")
    with looking(table, settings(config, master)) as view:
        lines: Sequence[LedgerLine] = view.ledger.lines()
        name, shards = view.identity.name, shard_ledgers(view.store, view.identity.uuid)
    one = find_shard(shards, shard, name) if shard is not None else None
    if one is None and shards and decision is not None:
        one = shard_with_decision(shards, decision, name)
    if one is None and shards:
        told = [(part.label, explain(part.lines, None, table)) for part in shards if decisions(part.lines)]
        if as_json:
            typer.echo(json.dumps({"table": name, "shards": [{"shard": at, **e.to_json()} for at, e in told]}))
        for label, found in [] if as_json else told:
            telling.show_briefly(f"{name}, {label}", found)
        return
    found = explain(one.lines if one else lines, decision, f"{table}, {one.label}" if one else table)
    if as_json:
        typer.echo(json.dumps({"table": name, **({"shard": one.label} if one else {}), **found.to_json()}))
    else:
        telling.show_explanation(f"{name}, {one.label}" if one else name, found)


@guarded
def show_ledger(
    table: TableArgument,
    shard: ShardOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    master: MasterOption = None,
) -> None:
    """Spent, saved, the best fixed layout in hindsight, the bound, and a receipt for every rewrite."""
    with looking(table, settings(config, master)) as view:
        lines: Sequence[LedgerLine] = view.ledger.lines()
        name, shards = view.identity.name, shard_ledgers(view.store, view.identity.uuid)
    if shard is not None:
        one = find_shard(shards, shard, name)
        lines, name = one.lines, f"{name}, {one.label}"
    elif shards:
        accounts = shard_accounts(shards)
        whole = total(accounts)
        if as_json:
            told = [one.to_json() for one in accounts]
            typer.echo(json.dumps({"table": name, "total": whole.to_json(), "shards": told}))
        else:
            telling.show_shards(name, accounts, whole)
        return
    story = read_story(lines)
    found, paid = account(story), receipts(story)
    if as_json:
        typer.echo(json.dumps({"table": name, **found.to_json(), "receipts": [one.to_json() for one in paid]}))
    else:
        telling.show_ledger(name, found, paid)


@guarded
def write_report(
    table: TableArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    shard: ShardOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    master: MasterOption = None,
) -> None:
    """Write one self-contained page that opens offline: cost, layouts, skipping, heat map, receipts."""
    chosen = settings(config, master)
    with looking_at_files(table, chosen) as (view, blocks):
        shards = shard_ledgers(view.store, view.identity.uuid)
        lines: Sequence[LedgerLine] = view.ledger.lines()
        stands = status_of(view, blocks, chosen)
    parts = {part.id: blocks.take(part.files) for part in shards_of(blocks, [one.first for one in shards])}
    if shard is not None:
        one = find_shard(shards, shard, stands.table)
        stands = replace(stands, table=f"{stands.table}, {one.label}")
        text = page.report_page(stands, parts.get(one.id, blocks.take(np.zeros(0, int))), one.lines)
    elif parts:
        text = shardpage.shards_page(stands, shards, parts)
    else:
        text = page.report_page(stands, blocks, lines)
    try:
        output.write_text(text)
    except OSError as error:
        raise ConfigError(f"cannot write {output}: {error.strerror}") from error
    if as_json:
        typer.echo(json.dumps({"table": stands.table, "report": str(output.absolute()), "bytes": len(text.encode())}))
    else:
        console.facts(stands.table, [("report", str(output.absolute())), ("size", console.size(len(text.encode())))])
