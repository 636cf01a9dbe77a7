"""A sample of a table's rows, encoded once, and the block metadata that a layout would give the table.

The minimum of a few sampled rows lies above the minimum of the whole block, so metadata taken as it is promises too
much skipping (0.72 of the true cost at 10 rows a block). n sampled rows of m leave about 1/n - 1/m of a block's rows
beyond each of their extremes. The bounds are therefore widened until that share of rows more, measured on the whole
sample, fits between them, and a value so rare that n rows would miss it counts as present in every block whose bounds
enclose it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oreo_lakehouse.layouts.blocks import Blocks, Bools, ColumnStats, Distinct, Ints
from oreo_lakehouse.layouts.layout import Bids, Layout
from oreo_lakehouse.predicates.encoded import NULL, EncodedColumn, EncodedRows
from oreo_lakehouse.predicates.rowtest import holds
from oreo_lakehouse.predicates.tree import CompareColumns

_FEW = 256
"""Values up to which a column's distinct sets are kept for the `bid` mode."""


class Sample:
    """Rows drawn uniformly from a table that has `total_rows`."""

    def __init__(self, rows: pa.Table, total_rows: int | None = None) -> None:
        self.rows = EncodedRows(rows)
        self.total_rows = rows.num_rows if total_rows is None else total_rows
        self._holds: dict[CompareColumns, Bools | None] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def blocks(
        self, layout: Layout, columns: Iterable[str] | None = None, comparisons: Iterable[CompareColumns] = ()
    ) -> Blocks:
        """The block metadata that `layout` would give the whole table, estimated from these rows."""
        return self.blocks_of(layout.assign_encoded(self.rows), layout.blocks, columns, comparisons)

    def blocks_of(
        self,
        bids: Bids,
        count: int,
        columns: Iterable[str] | None = None,
        comparisons: Iterable[CompareColumns] = (),
    ) -> Blocks:
        """The metadata of `count` blocks, given each row's BID; of all columns, or of those named."""
        found = _Division.of(bids, count, self.total_rows)
        stats: dict[str, ColumnStats] = {}
        for name in self.rows.kinds if columns is None else columns:
            column = self.rows.column(name)
            if column is not None:
                stats[name] = _stats(column, found)
        shown: dict[CompareColumns, Bools] = {}
        for leaf in comparisons:
            true = self.holds(leaf)
            if true is not None:
                shown[leaf] = np.bincount(bids[true], minlength=count) > 0
        return Blocks(found.rows, stats, comparisons=shown)

    def holds(self, leaf: CompareColumns) -> Bools | None:
        """For which rows a comparison between two columns is TRUE; None if they do not compare."""
        if leaf not in self._holds:
            left, right = self.rows.column(leaf.left), self.rows.column(leaf.right)
            comparable = left is not None and right is not None and left.kind is right.kind
            self._holds[leaf] = holds(leaf, self.rows) if comparable else None
        return self._holds[leaf]


def blocks_of(layout: Layout, rows: pa.Table, total_rows: int | None = None) -> Blocks:
    """The block metadata that `layout` would give a table of `total_rows`, estimated from a sample of its rows."""
    return Sample(rows, total_rows).blocks(layout)


@dataclass(frozen=True)
class _Division:
    """Which rows are in which block."""

    order: npt.NDArray[np.intp]
    """Rows, block after block."""
    filled: Ints
    """Blocks with rows, and where each begins in `order`."""
    starts: Ints
    sizes: Ints
    """Sampled rows of every block, and the rows that they stand for."""
    rows: Ints

    @classmethod
    def of(cls, bids: Bids, count: int, total_rows: int) -> _Division:
        sizes = np.bincount(bids, minlength=count).astype(np.int64)
        filled = np.flatnonzero(sizes)
        # Short integers are sorted by radix, several times faster.
        order = np.argsort(bids.astype(np.int16) if count < 1 << 15 else bids, kind="stable")
        edges = np.round(np.cumsum(sizes) * (total_rows / len(bids) if len(bids) else 1.0)).astype(np.int64)
        return cls(order, filled, (np.cumsum(sizes) - sizes)[filled], sizes, np.diff(edges, prepend=0))


def _stats(column: EncodedColumn, blocks: _Division) -> ColumnStats:
    count, filled, starts = len(blocks.sizes), blocks.filled, blocks.starts
    ranks = column.ranks[blocks.order]
    low, high = np.zeros(count, np.int64), np.full(count, NULL, np.int64)
    missing = np.zeros(count, np.int64)
    if len(filled):
        high[filled] = np.maximum.reduceat(ranks, starts)
        if column.has_nulls:
            low[filled] = np.minimum.reduceat(np.where(ranks == NULL, len(column.values), ranks), starts)
            missing[filled] = np.add.reduceat((ranks == NULL).astype(np.int64), starts)
        else:
            low[filled] = np.minimum.reduceat(ranks, starts)
    known = high != NULL
    seen = blocks.sizes - missing
    low[known], high[known] = _widened(column, low[known], high[known], seen[known], blocks.rows[known])
    lower, upper = np.zeros(count, column.kind.dtype), np.zeros(count, column.kind.dtype)
    lower[known], upper[known] = column.values[low[known]], column.values[high[known]]
    distinct = None
    if len(column.values) <= _FEW:
        present = np.zeros((count, len(column.values) + 1), np.bool_)
        present[np.repeat(filled, blocks.sizes[filled]), ranks] = True
        present = present[:, :-1]
        if (blocks.rows > blocks.sizes).any():
            values = np.arange(len(column.values))
            within = (values >= low[:, None]) & (values <= high[:, None])
            expected = column.counts / max(1, len(column.ranks)) * seen[:, None]
            present |= within & (expected < 1) & (blocks.rows > blocks.sizes)[:, None]
        distinct = Distinct(column.values, present, np.ones(count, np.bool_))
    nulls = _scaled(missing, blocks.sizes, blocks.rows)
    return ColumnStats(column.kind, lower, upper, known, known.copy(), nulls, distinct)


def _widened(column: EncodedColumn, low: Ints, high: Ints, seen: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Bounds of the whole block from those of its sampled rows."""
    if not (rows > seen).any():
        return low, high
    upto = np.append(0, np.cumsum(column.counts))  # sampled rows below each rank
    share = np.maximum(0.0, 1 / np.maximum(seen, 1) - 1 / np.maximum(rows, 1))
    more = share * (upto[high + 1] - upto[low])
    wider_low = np.searchsorted(upto, upto[low] - more)
    wider_high = np.searchsorted(upto, upto[high + 1] + more, "right") - 2
    return np.minimum(wider_low, low), np.clip(wider_high, high, len(column.values) - 1)


def _scaled(missing: Ints, sizes: Ints, rows: Ints) -> Ints:
    """NULLs of the whole block: none stays none, all stays all, some stays some."""
    share = missing / np.maximum(sizes, 1)
    some = np.clip(np.round(share * rows), np.minimum(1, rows), np.maximum(rows - 1, 0)).astype(np.int64)
    return np.where(missing == 0, 0, np.where(missing == sizes, rows, some))
