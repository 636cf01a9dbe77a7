"""Which queries would reach the children of a qd-tree's node, for all cuts at once.

A node is a block with known rows, so its bounds are positions among the workload's literals (see `columnview.py`), and
a cut at position j sends rows at positions up to j left. The positions of all columns lie side by side in one range, a
column's NULLs at its end: one count over the node's rows tells everything about every cut. The children of all cuts of
some columns are then judged as if they were so many blocks: first the left and then the right ones of each column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.layouts.blocks import Bools, Ints
from oreo_lakehouse.layouts.columnview import BoundsView, ColumnView, positions
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.skipping import evaluate
from oreo_lakehouse.predicates.tree import CompareColumns, IsNull
from oreo_lakehouse.predicates.values import Array
from oreo_lakehouse.predicates.workload import Group, Place

_HIGHEST = np.iinfo(np.int32).max
_UNKNOWN = BoundsView(np.array([-1], np.int32), np.array([_HIGHEST], np.int32))
_MAYBE = np.ones((1, 1), np.bool_)


class CutColumns:
    """The columns to cut: every row's position in each of them, and the positions to cut at."""

    def __init__(self, sample: Sample, literals: Mapping[Place, Array], cuts: Mapping[Place, Sequence[int]]) -> None:
        self.literals = literals
        self.places: list[Place] = []
        located: list[npt.NDArray[np.int32]] = []
        starts, all_cuts, owners = [0], list[Array](), list[Array]()
        for place, wanted in cuts.items():
            column = sample.rows.column(place[0])
            if column is None or column.kind is not place[1]:
                continue
            null = 2 * len(literals[place]) + 1
            located.append(np.append(positions(literals[place], column.values), null)[column.ranks] + starts[-1])
            all_cuts.append(np.sort(np.array(wanted, np.int64)) + starts[-1])
            owners.append(np.full(len(wanted), len(self.places)))
            self.places.append(place)
            starts.append(starts[-1] + null + 1)
        self.number = {place: number for number, place in enumerate(self.places)}
        self.by_name = {place[0]: number for place, number in self.number.items()}
        self.starts = np.array(starts[:-1], np.int64)
        self.ends = np.array(starts[1:], np.int64) - 1
        """Positions of the columns' NULLs."""
        none = np.zeros(0, np.int64)
        self.cuts: Ints = np.concatenate([none, *all_cuts])
        self.owners: Ints = np.concatenate([none, *owners])
        self.located = np.stack(located, axis=1) if located else np.zeros((len(sample), 0), np.int32)


class NodeColumns:
    """All columns of one node, and its cuts that leave enough rows on either side."""

    def __init__(self, columns: CutColumns, rows: npt.NDArray[np.intp], smallest: int) -> None:
        self.columns = columns
        starts, ends = columns.starts, columns.ends
        size = int(ends[-1]) + 1 if len(ends) else 0
        counts = np.bincount(columns.located[rows].ravel(), minlength=size)
        upto = np.cumsum(counts)[columns.cuts] - columns.owners * len(rows)
        fits = np.minimum(upto, len(rows) - upto) >= smallest
        self.cuts, self.owners, left = columns.cuts[fits], columns.owners[fits], upto[fits]
        self.has_null = counts[ends] > 0
        counts[ends] = 0
        filled = np.append(np.flatnonzero(counts), size)  # the sentinel stands for "nothing there"
        first = filled[np.searchsorted(filled, starts)]
        last = filled[np.searchsorted(filled, ends) - 1] if len(filled) > 1 else starts - 1
        self.has_value = first < ends
        self.low = np.where(self.has_value, first - starts, _HIGHEST).astype(np.int32)
        self.high = np.where(self.has_value, last - starts, -1).astype(np.int32)
        at = np.searchsorted(filled, self.cuts, "right")
        after, before = filled[at], filled[at - 1]
        origin, end = starts[self.owners], ends[self.owners]
        self.right_empty = after >= end  # nothing but NULLs on that side
        self.right_low = np.where(self.right_empty, _HIGHEST, after - origin).astype(np.int32)
        self.left_high = (before - origin).astype(np.int32)
        self.rows = np.stack([left, len(rows) - left])
        bounds = np.searchsorted(self.owners, np.arange(len(starts) + 1))
        self.at = [slice(a, b) for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]

    def cut_of(self, number: int) -> tuple[Place, int]:
        """A cut's column, and its position among that column's literals."""
        owner = int(self.owners[number])
        return self.columns.places[owner], int(self.cuts[number] - self.columns.starts[owner])


class NodeJudge:
    """Judges queries against a node (no column to cut), or against the children of all cuts of some columns."""

    def __init__(self, node: NodeColumns, cut: Sequence[int] = ()) -> None:
        self._node = node
        self._at: dict[int, slice] = {}
        self._blocks = 0
        for number in cut:
            size = 2 * (node.at[number].stop - node.at[number].start)
            self._at[number] = slice(self._blocks, self._blocks + size)
            self._blocks += size
        self._blocks = self._blocks or 1
        self._views: dict[Place, BoundsView] = {}

    def might_match(self, group: Group) -> Bools:
        return evaluate(group.shape, iter(group.slots), self)

    def view(self, place: Place) -> ColumnView:
        found = self._views.get(place)
        if found is None:
            found = self._views[place] = self._view(place)
        return found

    def _view(self, place: Place) -> BoundsView:
        node, number = self._node, self._node.columns.number.get(place)
        if number is None:
            return _UNKNOWN
        low, high = np.full(self._blocks, node.low[number]), np.full(self._blocks, node.high[number])
        if number in self._at:
            at, own = self._at[number], node.at[number]
            middle = at.start + (own.stop - own.start)
            high[at.start : middle] = node.left_high[own]
            low[middle : at.stop] = node.right_low[own]
            high[middle : at.stop][node.right_empty[own]] = -1
        return BoundsView(low, high)

    def null(self, leaf: IsNull) -> Bools:
        node, number = self._node, self._node.columns.by_name.get(leaf.column)
        if number is None:
            return _MAYBE
        out = np.full(self._blocks, node.has_value[number] if leaf.negated else node.has_null[number])
        if number in self._at:
            at, own = self._at[number], node.at[number]
            middle = at.start + (own.stop - own.start)
            out[at.start : middle] = leaf.negated
            if leaf.negated:
                out[middle : at.stop] = ~node.right_empty[own]
        return out[None, :]

    def between(self, leaf: CompareColumns) -> Bools:
        del leaf
        return _MAYBE
