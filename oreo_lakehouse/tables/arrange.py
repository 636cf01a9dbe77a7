"""From a layout to the DataFrame that a rewrite writes: every row in its block, one block a Spark partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from oreo_lakehouse.layouts.sqltext import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from oreo_lakehouse.layouts.layout import Layout

OVERSIZE = 1.5
"""A block with more than this many times its fair share of the rows becomes several files."""


def numbered(df: DataFrame, layout: Layout, bid_column: str) -> DataFrame:
    """The rows with their BIDs in `bid_column`; as they are where it is ""."""
    return df.withColumn(bid_column, _bid(layout)) if bid_column else df


def arrange(df: DataFrame, layout: Layout, bid_column: str, partition_columns: Sequence[str] = ()) -> DataFrame:
    """Numbered rows, block b in Spark partition b.

    Only `repartitionById` keeps blocks pure: hashing BIDs puts several into one partition, and adaptive execution
    would merge small ones. Inside a partition the rows are sorted, by the table's partition columns first because
    each of their values gets files of its own, then by the layout's order so that Parquet row groups skip too.
    """
    order = list(dict.fromkeys([*partition_columns, *layout.order]))
    parted = df.repartitionById(layout.blocks, sf.col(quoted(bid_column)) if bid_column else _bid(layout))
    return parted.sortWithinPartitions(*[sf.col(quoted(name)) for name in order]) if order else parted


def _bid(layout: Layout) -> Column:
    return sf.expr(layout.sql()).cast("int")


def rows_per_file(rows: int, blocks: int) -> int:
    """Where to cut a block into a second file; since blocks are sorted, the files of one split its value range.

    >>> rows_per_file(rows=1_000, blocks=10)
    150
    """
    return max(1, round(OVERSIZE * rows / max(1, blocks)))
