"""A sample of a table's rows, encoded once, and the block metadata that a layout would give the table."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oreo_lakehouse.layouts.blocks import Blocks, ColumnStats, Distinct, Ints
from oreo_lakehouse.layouts.layout import Bids, Layout
from oreo_lakehouse.predicates.encoded import NULL, EncodedColumn, EncodedRows

_FEW = 256
"""Values up to which a column's distinct sets are kept for the `bid` mode."""


class Sample:
    """Rows drawn uniformly from a table that has `total_rows`."""

    def __init__(self, rows: pa.Table, total_rows: int | None = None) -> None:
        self.rows = EncodedRows(rows)
        self.total_rows = rows.num_rows if total_rows is None else total_rows

    def __len__(self) -> int:
        return len(self.rows)

    def blocks(self, layout: Layout, columns: Iterable[str] | None = None) -> Blocks:
        """The block metadata that `layout` would give the whole table, estimated from these rows."""
        return self.blocks_of(layout.assign_encoded(self.rows), layout.blocks, columns)

    def blocks_of(self, bids: Bids, count: int, columns: Iterable[str] | None = None) -> Blocks:
        """The metadata of `count` blocks, given each row's BID; of all columns, or of those named."""
        sizes = np.bincount(bids, minlength=count).astype(np.int64)
        filled = np.flatnonzero(sizes)
        order = np.argsort(bids, kind="stable")
        starts = (np.cumsum(sizes) - sizes)[filled]
        scale = self.total_rows / len(self) if len(self) else 1.0
        edges = np.round(np.cumsum(sizes) * scale).astype(np.int64)
        rows = np.diff(edges, prepend=0)
        stats: dict[str, ColumnStats] = {}
        for name in self.rows.kinds if columns is None else columns:
            column = self.rows.column(name)
            if column is not None:
                stats[name] = _stats(column, order, starts, filled, sizes, rows)
        return Blocks(rows, stats)


def blocks_of(layout: Layout, rows: pa.Table, total_rows: int | None = None) -> Blocks:
    """The block metadata that `layout` would give a table of `total_rows`, estimated from a sample of its rows."""
    return Sample(rows, total_rows).blocks(layout)


def _stats(
    column: EncodedColumn, order: npt.NDArray[np.intp], starts: Ints, filled: Ints, sizes: Ints, rows: Ints
) -> ColumnStats:
    count = len(sizes)
    ranks = column.ranks[order]
    low, high = np.zeros(count, np.int32), np.full(count, NULL)
    nulls = np.zeros(count, np.int64)
    if len(filled):
        high[filled] = np.maximum.reduceat(ranks, starts)
        if column.has_nulls:
            low[filled] = np.minimum.reduceat(np.where(ranks == NULL, len(column.values), ranks), starts)
            missing = np.zeros(count, np.int64)
            missing[filled] = np.add.reduceat((ranks == NULL).astype(np.int64), starts)
            nulls = _scaled(missing, sizes, rows)
        else:
            low[filled] = np.minimum.reduceat(ranks, starts)
    known = high != NULL
    lower, upper = np.zeros(count, column.kind.dtype), np.zeros(count, column.kind.dtype)
    lower[known], upper[known] = column.values[low[known]], column.values[high[known]]
    distinct = None
    if len(column.values) <= _FEW:
        present = np.zeros((count, len(column.values) + 1), np.bool_)
        present[np.repeat(filled, np.diff(np.append(starts, len(order)))), ranks] = True
        distinct = Distinct(column.values, present[:, :-1], np.ones(count, np.bool_))
    return ColumnStats(column.kind, lower, upper, known, known.copy(), nulls, distinct)


def _scaled(missing: Ints, sizes: Ints, rows: Ints) -> Ints:
    """NULLs of the whole block: none stays none, all stays all, some stays some."""
    share = missing / np.maximum(sizes, 1)
    some = np.clip(np.round(share * rows), np.minimum(1, rows), np.maximum(rows - 1, 0)).astype(np.int64)
    return np.where(missing == 0, 0, np.where(missing == sizes, rows, some))
