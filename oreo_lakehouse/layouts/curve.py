"""Z-order and Hilbert: several columns at once, by a curve that keeps neighbours together.

Every column is divided into 2^bits buckets of about equal size, which makes a grid of cells; the curve numbers the
cells, and consecutive cells are gathered into k blocks of about equal size. In Spark the block of a row's cell is
looked up in one constant array, so both curves are the same expression. The array is made of one string: Spark folds
it once, where tens of thousands of literals take its planner seconds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from oreo_lakehouse.errors import StoreError, TableError
from oreo_lakehouse.layouts.layout import Bids, Layout, register_layout
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.sort import nearest
from oreo_lakehouse.layouts.sqltext import literal, quoted
from oreo_lakehouse.predicates.encoded import EncodedColumn, EncodedRows
from oreo_lakehouse.predicates.jsonform import value_from_json, value_to_json
from oreo_lakehouse.predicates.values import Kind, Value

Cells = npt.NDArray[np.int64]
_CELLS_A_BLOCK = 64
_MOST_BITS = 10
_HEAVY = 0.1
"""Of a block's rows in one cell, beyond which finer cells are tried, up to so many bits in all."""
_MOST_CELLS_LOG2 = 16


@dataclass(frozen=True)
class Edges:
    """A column's buckets: a row's bucket is the number of edges that are not above its value; NULL is in the last."""

    column: str
    kind: Kind
    values: tuple[Value, ...]


class CurveLayout(Layout):
    """Blocks along a curve; block b begins at position `starts[b]` of it."""

    title: ClassVar[str]

    def __init__(self, edges: Sequence[Edges], bits: int, starts: Sequence[int]) -> None:
        self.edges, self.bits, self.starts = tuple(edges), bits, tuple(starts)
        self.columns = tuple(edge.column for edge in edges)
        self.blocks = len(self.starts)

    @staticmethod
    @abstractmethod
    def curve(buckets: Cells, bits: int) -> Cells:
        """The position on the curve of cells given by their buckets (dimensions x cells)."""

    def assign(self, rows: pa.Table) -> Bids:
        return self.assign_encoded(EncodedRows(rows))

    def assign_encoded(self, rows: EncodedRows) -> Bids:
        buckets = [_buckets(rows.column(edge.column), edge) for edge in self.edges]
        position = self.curve(np.stack(buckets), self.bits)
        return (np.searchsorted(self.starts, position, "right") - 1).astype(np.int32)

    def sql(self) -> str:
        width = 1 << self.bits
        cells = np.indices((width,) * len(self.edges)).reshape(len(self.edges), -1)
        blocks = np.searchsorted(self.starts, self.curve(cells, self.bits), "right") - 1
        index = "1"
        for number, edge in enumerate(self.edges):
            index += f" + {width ** (len(self.edges) - 1 - number)} * ({_bucket_sql(edge)})"
        listed = ",".join(map(str, blocks.tolist()))
        return f"element_at(CAST(split('{listed}', ',') AS ARRAY<INT>), {index})"

    def describe(self) -> str:
        return f"{self.title} {', '.join(self.columns)}: {self.blocks} blocks"

    def _content(self) -> dict[str, Any]:
        edges = [[e.column, e.kind.value, [value_to_json(e.kind, v) for v in e.values]] for e in self.edges]
        return {"edges": edges, "bits": self.bits, "starts": list(self.starts)}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """The layout that `to_json` described.

        Raises:
            StoreError: the document is not one of ours.
        """
        try:
            edges: list[Edges] = []
            for column, name, values in cast("list[Any]", document["edges"]):
                kind = Kind(name)
                edges.append(Edges(str(column), kind, tuple(value_from_json(kind, value) for value in values)))
            bits, starts = int(document["bits"]), [int(start) for start in document["starts"]]
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"malformed layout: its curve cannot be read ({error})") from error
        if not edges or not starts or starts[0] != 0 or starts != sorted(set(starts)) or not 1 <= bits <= _MOST_BITS:
            raise StoreError("malformed layout: its curve has no columns or no blocks")
        return cls(edges, bits, starts)

    @classmethod
    def of(cls, sample: Sample, columns: Sequence[str], k: int) -> Self | None:
        """About k blocks of equal size over some columns; None if no column can be divided."""
        encoded = {name: column for name in columns if (column := sample.rows.column(name)) is not None}
        encoded = {name: column for name, column in encoded.items() if len(column.values) > 1}
        if not encoded:
            return None
        pairs = list(encoded.items())
        bits = int(np.ceil(np.log2(_CELLS_A_BLOCK * max(2, k)) / len(pairs)))
        bits = max(1, min(bits, _MOST_BITS))
        edges, position = cls._grid(pairs, bits)
        # Where columns follow each other, few cells hold most rows: finer ones can be divided more evenly.
        while bits < _MOST_BITS and (bits + 1) * len(pairs) <= _MOST_CELLS_LOG2:
            if np.unique(position, return_counts=True)[1].max(initial=0) * k <= _HEAVY * len(position):
                break
            finer = cls._grid(pairs, bits + 1)
            if finer[0] == edges:
                break
            bits, (edges, position) = bits + 1, finer
        cells, first = np.unique(position, return_index=True)
        wanted = np.arange(1, k) * len(position) // max(1, k)
        begin = cells[np.searchsorted(first, nearest(first, wanted))] if len(first) else cells
        return cls(edges, bits, [0, *(int(start) for start in np.unique(begin) if start > cells[0])])

    @classmethod
    def _grid(cls, columns: Sequence[tuple[str, EncodedColumn]], bits: int) -> tuple[list[Edges], Cells]:
        """The buckets of all columns, and where the rows are on the curve, in its order."""
        edges = [_edges(name, column, bits) for name, column in columns]
        buckets = [_buckets(column, edge) for (_, column), edge in zip(columns, edges, strict=True)]
        return edges, np.sort(cls.curve(np.stack(buckets), bits))


class ZOrderLayout(CurveLayout):
    """The Morton curve: bits of all columns in turn, the first column's first."""

    kind: ClassVar[str] = "zorder"
    title: ClassVar[str] = "z-order on"

    @staticmethod
    def curve(buckets: Cells, bits: int) -> Cells:
        out = np.zeros(buckets.shape[1], np.int64)
        for bit in range(bits - 1, -1, -1):
            for axis in buckets:
                out = (out << 1) | ((axis >> bit) & 1)
        return out


class HilbertLayout(CurveLayout):
    """The Hilbert curve: consecutive cells always touch."""

    kind: ClassVar[str] = "hilbert"
    title: ClassVar[str] = "Hilbert curve on"

    @staticmethod
    def curve(buckets: Cells, bits: int) -> Cells:
        """Skilling, "Programming the Hilbert curve" (2004): axes to transposed index, then interleaved."""
        x = buckets.astype(np.int64).copy()
        dimensions = len(x)
        bit = 1 << (bits - 1)
        while bit > 1:  # undo excess work, from the highest bit down
            for axis in range(dimensions):
                high = (x[axis] & bit) > 0
                exchange = np.where(high, 0, (x[0] ^ x[axis]) & (bit - 1))
                x[0] = np.where(high, x[0] ^ (bit - 1), x[0] ^ exchange)
                x[axis] ^= exchange if axis else 0
            bit >>= 1
        for axis in range(1, dimensions):  # Gray code
            x[axis] ^= x[axis - 1]
        flips = np.zeros(x.shape[1], np.int64)
        bit = 1 << (bits - 1)
        while bit > 1:
            flips ^= np.where((x[-1] & bit) > 0, bit - 1, 0)
            bit >>= 1
        return ZOrderLayout.curve(x ^ flips, bits)


for _layout in (ZOrderLayout, HilbertLayout):
    register_layout(_layout.kind, _layout.from_json)


def _edges(name: str, column: EncodedColumn, bits: int) -> Edges:
    """Quantiles of the column's rows, as values at which buckets begin."""
    ranks = np.sort(column.ranks[column.ranks >= 0])
    width = 1 << bits
    wanted = np.unique(ranks[np.arange(1, width) * len(ranks) // width])
    return Edges(name, column.kind, tuple(column.value(int(rank)) for rank in wanted if rank > 0))


def _buckets(column: EncodedColumn | None, edge: Edges) -> Cells:
    if column is None or column.kind is not edge.kind:
        raise TableError(f"column {edge.column!r} is missing here or is no {edge.kind.value}; choose another layout")
    values = np.empty(len(edge.values), edge.kind.dtype)
    values[:] = list(edge.values)
    per_value = np.append(np.searchsorted(values, column.values, "right"), len(values))
    return per_value[column.ranks].astype(np.int64)


def _bucket_sql(edge: Edges, low: int = 0, high: int | None = None) -> str:
    """How many edges are not above the value, by halving."""
    high = len(edge.values) if high is None else high
    if low == high:
        return str(low)
    middle = (low + high) // 2
    condition = f"{quoted(edge.column)} < {literal(edge.kind, edge.values[middle])}"
    left, right = _bucket_sql(edge, low, middle), _bucket_sql(edge, middle + 1, high)
    return f"CASE WHEN {condition} THEN {left} ELSE {right} END"
