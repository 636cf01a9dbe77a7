"""The streams that the peers are compared on: rows, queries whose focus shifts, and what was best for them.

A query reads, besides what it filters by, the columns that its template in TPC-H selects.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import telemetry
import tpch

from oreo_lakehouse.layouts.curve import ZOrderLayout
from oreo_lakehouse.layouts.layout import Layout
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.skipping import service_costs
from oreo_lakehouse.layouts.sort import sort_layout
from oreo_lakehouse.layouts.sqltext import predicate_sql
from oreo_lakehouse.predicates.columns import columns_of
from oreo_lakehouse.predicates.tree import Predicate
from oreo_lakehouse.predicates.workload import Workload

_REVENUE = ("l_extendedprice", "l_discount")
SELECTED: dict[str, tuple[str, ...]] = {
    "q1": (*_REVENUE, "l_quantity", "l_tax", "l_returnflag", "l_linestatus"),
    "q3": (*_REVENUE, "l_orderkey", "o_orderdate"),
    "q4": ("o_orderpriority", "l_orderkey"),
    "q5": (*_REVENUE, "s_n_name"),
    "q6": _REVENUE,
    "q7": (*_REVENUE, "s_n_name", "c_n_name", "l_shipdate"),
    "q8": (*_REVENUE, "o_orderdate", "s_n_name"),
    "q10": (*_REVENUE, "o_custkey", "c_n_name", "c_mktsegment", "l_comment"),
    "q12": ("l_shipmode", "o_orderpriority"),
    "q14": (*_REVENUE, "p_type"),
    "q17": ("l_extendedprice", "l_quantity", "l_partkey"),
    "q19": _REVENUE,
    "q21": ("l_suppkey", "l_orderkey", "l_receiptdate"),
    "telemetry": ("job_id", "collector", "status", "duration_ms"),
}
_TRIED = 6
"""Most used columns among which the best ones are looked for."""
_MOST = 3
_JUDGED = 300
"""Queries, evenly spread, by which a choice of columns is judged."""


@dataclass(frozen=True)
class Query:
    """One query of a stream."""

    template: str
    predicate: Predicate

    def sql(self, table: str) -> str:
        """Counts its rows and reads what it selects, so that nothing but the scan takes long."""
        largest = ", ".join(f"max({name})" for name in SELECTED[self.template])
        return f"SELECT count(*), {largest} FROM {table} WHERE {plain_sql(self.predicate)}"


@dataclass(frozen=True)
class Stream:
    """A table's rows and its queries, in the order in which they come."""

    name: str
    source: Path
    queries: Sequence[Query]

    @property
    def shifts(self) -> list[int]:
        """Where the focus shifts, the beginning included."""
        names = [query.template for query in self.queries]
        return [0, *(at for at in range(1, len(names)) if names[at] != names[at - 1])]


def tpch_stream(folder: Path, rows: int, count: int, pieces: int, seed: int) -> Stream:
    """The paper's: one TPC-H template after the other, each for about as many queries."""
    source = tpch.file(folder, rows)
    head = next(pq.ParquetFile(source).iter_batches(100_000))

    templates = tpch.Templates(pa.Table.from_batches([head])).all
    random = np.random.default_rng(seed)
    ends = np.cumsum(random.uniform(0.7, 1.3, pieces))
    ends = np.round(ends / ends[-1] * count).astype(int)
    queries: list[Query] = []
    for end in ends.tolist():
        last = queries[-1].template if queries else ""
        name = str(random.choice([name for name in sorted(templates) if name != last]))
        queries += [Query(name, templates[name](random)) for _ in range(end - len(queries))]
    return Stream("tpch", source, queries)


def telemetry_stream(folder: Path, rows: int, count: int, seed: int) -> Stream:
    """Dashboards over the last hours to months, whose "now" slides: nothing shifts at once."""
    source = folder / f"telemetry-{rows}.parquet"
    if not source.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = source.with_suffix(".partial")
        pq.write_table(telemetry.rows(rows), partial, row_group_size=25_000)
        partial.rename(source)
    return Stream("telemetry", source, [Query("telemetry", one) for one in telemetry.queries(count, seed)])


def best_columns(sample: Sample, queries: Sequence[Query], blocks: int, kind: str) -> tuple[str, ...]:
    """Up to three columns whose z-order, or sort, lets these queries skip most: told the queries beforehand."""
    step = max(1, len(queries) // _JUDGED)
    predicates = [query.predicate for query in queries[::step]]
    uses = Counter(name for one in predicates for name in columns_of(one))
    names = [name for name, _ in uses.most_common(_TRIED)]
    workload = Workload.of(predicates)
    make: Callable[[Sample, Sequence[str], int], Layout | None] = ZOrderLayout.of if kind == "zorder" else sort_layout
    choose = itertools.combinations if kind == "zorder" else itertools.permutations
    tries: Iterable[tuple[str, ...]] = itertools.chain.from_iterable(
        choose(names, many) for many in range(1, _MOST + 1)
    )
    best, least = tuple(names[:1]), np.inf
    for columns in tries:
        layout = make(sample, columns, blocks)
        if layout is None:
            continue
        cost = float(service_costs(workload, sample.blocks(layout, names)).sum())
        if cost < least:
            best, least = columns, cost
    return best


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN: list[tuple[str, Callable[[str], str]]] = [
    (r"date_from_unix_date\(CAST\('(-?\d+)' AS INT\)\)", lambda n: f"DATE '{_EPOCH + timedelta(int(n)):%Y-%m-%d}'"),
    (
        r"timestamp_micros\(CAST\('(-?\d+)' AS BIGINT\)\)",
        lambda n: f"TIMESTAMP '{_EPOCH + timedelta(microseconds=int(n)):%Y-%m-%d %H:%M:%S.%f}'",
    ),
    (r"CAST\('([-\d.]+)' AS (?:BIGINT|DECIMAL\(\d+,\d+\))\)", lambda n: n),
    (r"CAST\(X'([0-9A-F]+)' AS STRING\)", lambda n: "'" + bytes.fromhex(n).decode() + "'"),
]


def plain_sql(predicate: Predicate) -> str:
    """As people write it, in sessions of UTC; the templates' strings have no quotes in them."""
    text = predicate_sql(predicate)
    for pattern, write in _PLAIN:
        text = re.sub(pattern, lambda found, write=write: write(found[1]), text)
    return text
