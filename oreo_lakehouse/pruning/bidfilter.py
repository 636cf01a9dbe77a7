"""The paper's rewritten predicate, for engines that have no rule of ours: a condition on the BID column.

`_oreo_bid` is a stored value: UPDATE and MERGE carry a row's old BID along with new values, and INSERT … SELECT *
copies foreign ones in, so a filter on it would lose rows. It is right only for a version of which every file is either
one that a run of ours wrote, whose BID is known, or holds nothing but NULL there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby

import numpy as np
from pyspark.sql import SparkSession

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.errors import HistoryError, SetupError, TableError
from oreo_lakehouse.history.sqltext import SqlText
from oreo_lakehouse.layouts.blocks import Bools, Ints
from oreo_lakehouse.layouts.columnview import all_null
from oreo_lakehouse.layouts.skipping import might_match
from oreo_lakehouse.maintenance.dossier import Dossier, open_dossier
from oreo_lakehouse.predicates.relax import relax
from oreo_lakehouse.predicates.tree import Predicate
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.tables.filefacts import enriched

LONGEST_LIST = 200
"""Iceberg looks into an IN list up to this length."""


class BidFilter(str):
    """A condition in SQL, and the version of the table that it holds for."""

    version: int

    def __new__(cls, text: str, version: int) -> BidFilter:
        made = super().__new__(cls, text)
        made.version = version
        return made


def bid_filter(
    table: str, predicate: str | Predicate, spark: SparkSession | None = None, config: Config | None = None
) -> BidFilter:
    """A condition on the BID column to be added to a query by AND, for Trino, DuckDB and others.

    It is right for the version that it names and for those that only append rows with a NULL BID to it. Ask again after
    every UPDATE, MERGE or layout. Delta skips by ranges only, so it gets ranges of neighbouring BIDs; Iceberg a list.

        where = "shipped < ordered"
        bids = oreo_lakehouse.bid_filter("db.orders", where, spark)
        duckdb.sql(f"SELECT * FROM orders WHERE {where} AND {bids}")  # … AND (_oreo_bid = 3 OR _oreo_bid IS NULL)

    Args:
        table: as in SQL, or a path.
        predicate: the query's condition, as SQL or as a stored predicate; what is not understood skips nothing.
        spark: a session; by default the active one.
        config: settings; by default those that `load_config()` finds.

    Raises:
        TableError: there is no such condition for the table as it is; the sentence says why.
        HistoryError: the predicate is no condition in SQL.
    """
    spark = spark or SparkSession.getActiveSession()
    if spark is None:
        raise SetupError("bid_filter needs a Spark session to read the table's files: pass spark=…")
    config = load_config() if config is None else config
    dossier = open_dossier(spark, table, config)
    name, column = dossier.table.identity.name, config.bid_column
    schema = dossier.table.schema()
    if not column or column not in schema:
        raise TableError(f"{name} has no BID column {column!r}, so there is nothing to filter by; queries are as good.")
    version = dossier.table.version()
    bids, needed = _judged(dossier, version, column, _understood(predicate, schema))
    wanted = sorted(set(bids[needed & (bids >= 0)].tolist()))
    every = sorted(set(bids[bids >= 0].tolist()))
    if wanted == every:
        return BidFilter("TRUE", version)
    plain = column if re.fullmatch(r"[A-Za-z_]\w*", column) else f'"{column}"'
    if dossier.table.format == "iceberg" and len(wanted) <= LONGEST_LIST:
        parts = [f"{plain} IN ({', '.join(map(str, wanted))})"] if wanted else []
    else:
        parts = [f"{plain} = {a}" if a == b else f"{plain} BETWEEN {a} AND {b}" for a, b in runs(wanted, every)]
    return BidFilter(f"({' OR '.join([*parts, f'{plain} IS NULL'])})", version)


def runs(wanted: Iterable[int], every: list[int]) -> list[tuple[int, int]]:
    """Wanted numbers as ranges in which no other of `every` lies.

    >>> runs([1, 2, 5, 9], [1, 2, 3, 5, 9, 11])
    [(1, 2), (5, 9)]
    """
    place = {number: at for at, number in enumerate(every)}
    grouped = groupby(enumerate(sorted(wanted)), key=lambda pair: place[pair[1]] - pair[0])
    ranges = [[number for _, number in group] for _, group in grouped]
    return [(found[0], found[-1]) for found in ranges]


def _understood(predicate: str | Predicate, schema: Mapping[str, Kind]) -> Predicate:
    if not isinstance(predicate, str):
        return relax(predicate)[0]
    try:
        scans = SqlText(["t"], schema).scans(f"SELECT 1 FROM t WHERE ({predicate}\n)")  # noqa: S608
    except HistoryError as error:
        raise HistoryError(f"{predicate!r} cannot be read as a condition in SQL: {error}") from error
    if len(scans) != 1:
        raise HistoryError(f"{predicate!r} is not one condition: give what would stand behind WHERE, nothing else")
    return scans[0].predicate


def _judged(dossier: Dossier, version: int, column: str, predicate: Predicate) -> tuple[Ints, Bools]:
    """Per file of the version: the BID of its rows, -1 for NULL, and whether the query needs it."""
    name = dossier.table.identity.name
    blocks = dossier.table.blocks(version)
    facts, notices = dossier.facts.load()
    if facts is None:
        why = notices[0] if notices else "no layout of ours has recorded its files"
        raise TableError(f"there is no BID filter for {name}: {why}. `oreo-maintain {name}` makes one possible.")
    known = dict(zip(facts.names, facts.bids.tolist(), strict=True))
    bids = np.array([known.get(file, -1) for file in blocks.names], np.int64)
    stats = blocks.columns.get(column)
    empty = all_null(stats, blocks.rows) if stats is not None else np.zeros(len(blocks), np.bool_)
    stale = (bids < 0) & ~empty & (blocks.rows > 0)
    if stale.any():
        first = blocks.names[int(np.argmax(stale))]
        raise TableError(
            f"there is no BID filter for version {version} of {name}: {int(stale.sum())} of its files were not written "
            "by a layout of ours and may carry BIDs that are no longer true (UPDATE, MERGE, INSERT … SELECT *, "
            f"OPTIMIZE), first {first}. Query without it, or run `oreo-maintain {name}` first."
        )
    rich = enriched(blocks, facts, dossier.table.column_keys())
    return bids, might_match(Workload.of([predicate]), rich, "bid")[0]
