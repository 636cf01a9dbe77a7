"""`oreo backtest`: what each policy would have paid on a table and a query log of yours, without Spark."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pyarrow.parquet as pq
import sqlglot
import typer
from sqlglot import exp
from sqlglot.errors import SqlglotError

from oreo_lakehouse.backtest.run import POLICIES, run
from oreo_lakehouse.cli.frame import JsonOption, guarded
from oreo_lakehouse.errors import ConfigError, HistoryError, TableNotFoundError
from oreo_lakehouse.history.sqltext import NotAQuery, SqlText
from oreo_lakehouse.history.statements import Statement, read_statements
from oreo_lakehouse.predicates.tree import TRUE, Predicate
from oreo_lakehouse.predicates.values import kind_of
from oreo_lakehouse.report import console, plot

if TYPE_CHECKING:
    import pyarrow as pa

LOOKED_AT = 200
"""Statements that decide which table is meant when nobody says."""


@guarded
def backtest(
    rows: Annotated[Path, typer.Option(help="The table's rows, as Parquet, in the order its files have now.")],
    queries: Annotated[Path, typer.Option(help="JSONL, CSV or Parquet with statement_text and start_time.")],
    alpha: Annotated[float, typer.Option(min=1.0, help="Cost of a rewrite, in full scans.")] = 80.0,
    blocks: Annotated[int, typer.Option(min=1, help="Blocks of a layout.")] = 40,
    mode: Annotated[str, typer.Option(help="native (min/max) or bid (what pruning knows).")] = "native",
    policies: Annotated[str, typer.Option(help=f"all, or some of {','.join(POLICIES)}.")] = "all",
    seed: Annotated[int, typer.Option(help="Of every random draw.")] = 1,
    table: Annotated[str | None, typer.Option(help="The table's name in the statements; else the commonest.")] = None,
    dialect: Annotated[str, typer.Option(help="SQL dialect of the statements.")] = "spark",
    plot_file: Annotated[
        Path | None, typer.Option("--plot", help="Draw cumulative cost: a .html, .svg or .png file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Replay your query log against your rows under every policy, from a sample and statistics alone."""
    if mode not in ("native", "bid"):
        raise ConfigError(f"--mode must be native or bid, not {mode!r}")
    if plot_file is not None:
        plot.check_name(plot_file)
    wanted = POLICIES if policies == "all" else tuple(name.strip() for name in policies.split(","))
    with console.progress_bar() as progress:
        progress("reading the rows", None)
        data = _rows(rows)
        progress("reading the queries", None)
        lost: list[str] = []
        statements = list(read_statements(queries, rejected=lambda line, why: lost.append(f"line {line}: {why}")))
        found = _predicates(statements, data, table or _commonest(statements, dialect), dialect)
        result = run(
            data,
            [predicate for predicate, _ in found.read],
            [time for _, time in found.read],
            alpha=alpha,
            blocks=blocks,
            mode="bid" if mode == "bid" else "native",
            policies=wanted,
            seed=seed,
            unparsed=len(found.faults),
            progress=lambda name, share: progress(f"replaying {name}", share),
        )
    if lost:
        console.warn(f"{len(lost):,} lines of the log hold no statement and were left out (first: {lost[0]})")
    if plot_file is not None:
        plot.write_costs(plot_file, {name: outcome.cumulative() for name, outcome in result.outcomes.items()})
    if as_json:
        typer.echo(json.dumps(result.to_json()))
        return
    for fault in found.faults[:3]:
        console.warn(f"taken as a full scan: {fault}")
    console.show_backtest(result)


class _Read:
    """The queries in order, and why some are taken as full scans."""

    def __init__(self) -> None:
        self.read: list[tuple[Predicate, int]] = []
        self.faults: list[str] = []


def _rows(file: Path) -> pa.Table:
    try:
        return pq.read_table(file)
    except FileNotFoundError as error:
        raise TableNotFoundError(f"there is no file {file}") from error
    except (OSError, ValueError) as error:
        raise TableNotFoundError(f"{file} is not Parquet: {str(error).splitlines()[0]}") from error


def _commonest(statements: list[Statement], dialect: str) -> str:
    """The table that most statements read."""
    names: Counter[str] = Counter()
    for statement in statements[:LOOKED_AT]:
        try:
            tree = sqlglot.parse_one(statement.text, dialect=dialect)
        except (SqlglotError, RecursionError):
            continue
        defined = {cte.alias_or_name for cte in tree.find_all(exp.CTE)}
        names.update({_name(t) for t in tree.find_all(exp.Table) if t.name not in defined})
    if not names:
        raise HistoryError("no statement in the log could be parsed; check --dialect and the statement_text field")
    return names.most_common(1)[0][0]


def _name(table: exp.Table) -> str:
    return ".".join(f"`{part.name}`" for part in table.parts)


def _predicates(statements: list[Statement], rows: pa.Table, table: str, dialect: str) -> _Read:
    """Statements about other tables are left out; what is not understood counts as a full scan."""
    schema = {field.name: kind_of(field.type) for field in rows.schema}
    reader, out, understood = SqlText([table], schema, dialect), _Read(), 0
    for statement in statements:
        try:
            scans = reader.scans(statement.text, statement.time_zone, statement.time_us, statement.namespace)
        except NotAQuery:
            continue
        except HistoryError as error:
            out.faults.append(f"line {statement.line}: {error}")
            out.read.append((TRUE, statement.time_us))
            continue
        for scan in scans:
            understood += scan.predicate != TRUE
            if scan.reasons and scan.predicate == TRUE:
                out.faults.append(f"line {statement.line}: {scan.reasons[0]}")
            out.read.append((scan.predicate, statement.time_us))
    if not understood:
        why = f" (first: {out.faults[0]})" if out.faults else ""
        raise HistoryError(f"no query on {table} was understood{why}; check --table and --dialect")
    return out
