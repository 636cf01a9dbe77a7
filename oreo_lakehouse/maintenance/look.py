"""Look before you leap: the exact block metadata of a layout, by one narrow pass over the real rows.

A sample promises; this tells. Only the columns that queries filter by or the layout cuts by are read, grouped by the
block (and table partition) that each row would go to, so it costs about what a query costs: its duration is also the
"scan" that alpha is counted in. In `bid` mode the pass is the one that verification makes, with sets of values and
comparisons between columns, a block standing for a file.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as sf

from oreo_lakehouse.errors import ConflictError, TableError
from oreo_lakehouse.jvm import error_reason
from oreo_lakehouse.layouts.blocks import Blocks, ColumnStats
from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.maintenance.facts import wanted_facts
from oreo_lakehouse.predicates.values import Kind, encode
from oreo_lakehouse.tables.factpass import FactColumn, hashed, verified
from oreo_lakehouse.tables.filefacts import enriched

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from oreo_lakehouse.layouts.layout import Layout
    from oreo_lakehouse.layouts.skipping import Mode
    from oreo_lakehouse.predicates.tree import Predicate
    from oreo_lakehouse.tables.contract import Table


@dataclass(frozen=True)
class Look:
    """What a layout would really give, and how long one scan of the columns in question takes."""

    blocks: Blocks
    scan_seconds: float
    columns: tuple[str, ...]
    """Those that were scanned."""


def look(
    table: Table,
    layout: Layout,
    predicates: Iterable[Predicate],
    partition_columns: Sequence[str],
    mode: Mode,
    only: Collection[str] | None = None,
) -> Look:
    """The blocks that `layout` would make of the table's rows as they are now.

    Args:
        table: whose rows are read.
        layout: the candidate.
        predicates: the queries in question: statistics are wanted of what they ask about.
        partition_columns: those of the table's own that have one value a file: a block reaches over no two of them.
        mode: what skips blocks.
        only: the files to look at; None for all of them.

    Raises:
        TableError: the rows cannot be read.
    """
    kinds = table.schema()
    asked, pairs = wanted_facts(layout, predicates)
    columns = [
        FactColumn(name, name, kinds[name]) for name in sorted(asked) if kinds.get(name, Kind.OTHER) != Kind.OTHER
    ]
    needed = dict.fromkeys([*(column.name for column in columns), *layout.columns, *partition_columns])
    block = [sf.expr(layout.sql()), *[sf.col(quoted(name)) for name in partition_columns]]
    started = time.monotonic()
    reading = nullcontext(table.spark.table(table.identity.name)) if only is None else table.reading(only)
    try:
        with reading as everything:
            rows = everything.select(*[sf.col(quoted(name)) for name in needed])
            found = _facts(rows, block, columns, pairs) if mode == "bid" else _bounds(rows, block, columns)
    except ConflictError:
        raise
    except Exception as error:
        raise TableError(f"cannot read rows of {table.identity.name}: {error_reason(error)}") from error
    return Look(found, time.monotonic() - started, tuple(needed))


def _facts(
    rows: DataFrame, block: Sequence[Column], columns: Sequence[FactColumn], pairs: Collection[tuple[str, str]]
) -> Blocks:
    """What pruning skips by."""
    name = sf.to_json(sf.array(*[part.cast("string") for part in block]))
    facts = verified(rows, name, str, columns, pairs, "").facts
    return enriched(Blocks(facts.rows, facts.columns, names=facts.names), facts, {c.name: c.key for c in columns})


def _bounds(rows: DataFrame, block: Sequence[Column], columns: Sequence[FactColumn]) -> Blocks:
    """What engines skip by: minimum, maximum, NULLs."""
    facts = [sf.count(sf.lit(1)).alias("rows"), hashed()]
    for number, column in enumerate(columns):
        value = sf.col(quoted(column.name))
        facts += [
            sf.min(value).alias(f"low{number}"),
            sf.max(value).alias(f"high{number}"),
            sf.count(value).alias(f"count{number}"),
        ]
    found: pa.Table = rows.groupBy(*[part.alias(f"block{i}") for i, part in enumerate(block)]).agg(*facts).toArrow()
    counts = found["rows"].to_numpy().astype(np.int64)
    stats: dict[str, ColumnStats] = {}
    for number, column in enumerate(columns):
        (low, no_low), (high, no_high) = (encode(found[f"{side}{number}"]) for side in ("low", "high"))
        nulls = counts - found[f"count{number}"].to_numpy().astype(np.int64)
        stats[column.name] = ColumnStats(column.kind, low, high, ~no_low, ~no_high, nulls)
    return Blocks(counts, stats)
