"""Which queries would reach the children of a qd-tree's node, for all cuts at once.

A node is a block with known rows, so its bounds are positions among the workload's literals (see `columnview.py`). The
children of all cuts of some columns are judged as if they were so many blocks: first the left and then the right ones
of each column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.layouts.blocks import Bools, Ints
from oreo_lakehouse.layouts.columnview import BoundsView, ColumnView
from oreo_lakehouse.layouts.cutset import COMPARE, EQUAL, CutSet
from oreo_lakehouse.layouts.skipping import evaluate
from oreo_lakehouse.predicates.shape import Place
from oreo_lakehouse.predicates.tree import CompareColumns, IsNull, Op
from oreo_lakehouse.predicates.workload import Codes, Group

_HIGHEST = np.iinfo(np.int32).max
_UNKNOWN = BoundsView(np.array([-1], np.int32), np.array([_HIGHEST], np.int32), engine=False)
_MAYBE = np.ones((1, 1), np.bool_)


class NodeColumns:
    """All columns of one node, and its cuts that are allowed.

    Args:
        cutset: the cuts.
        rows: of the node.
        counts: how many of them are at each position (`CutSet.count`).
        allowed: which cuts are, by how many rows they send left.
    """

    def __init__(
        self, cutset: CutSet, rows: npt.NDArray[np.intp], counts: Ints, allowed: Callable[[Ints], Bools]
    ) -> None:
        self.cutset = cutset
        starts, ends, size = cutset.starts, cutset.ends, len(counts)
        true = [int(column[rows].sum()) for column in cutset.true]
        left = np.append(np.cumsum(counts), 0)[np.minimum(cutset.positions, size)] - cutset.owners * len(rows)
        equal, compare = cutset.styles == EQUAL, cutset.styles == COMPARE
        left[equal] = counts[cutset.positions[equal]]
        left[compare] = true
        fits = np.flatnonzero(allowed(left))
        self.cuts: npt.NDArray[np.intp] = fits
        self.rows = np.stack([left[fits], len(rows) - left[fits]])
        self.some_true = [count > 0 for count in true]
        self.has_null = counts[ends] > 0
        counts = counts.copy()
        counts[ends] = 0
        self.counts = counts
        filled = np.append(np.flatnonzero(counts), size)  # the sentinel stands for "nothing there"
        first = filled[np.searchsorted(filled, starts)]
        last = filled[np.searchsorted(filled, ends) - 1] if len(filled) > 1 else starts - 1
        self.has_value = first < ends
        self.low = np.where(self.has_value, first - starts, _HIGHEST).astype(np.int32)
        self.high = np.where(self.has_value, last - starts, -1).astype(np.int32)
        self._children(filled)
        owners = cutset.owners[fits]
        bounds = np.searchsorted(owners, np.arange(len(starts) + len(true) + 1))
        self.at = [slice(a, b) for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]

    def _children(self, filled: Ints) -> None:
        """Bounds of the children in their column, as positions in it; `without` is the category that is missing."""
        cutset, cuts = self.cutset, self.cuts
        owners = np.minimum(cutset.owners[cuts], max(0, len(cutset.starts) - 1))
        if not len(cutset.starts):
            self.lows = self.highs = self.without = np.zeros((2, len(cuts)), np.int32)
            return
        origin, end = cutset.starts[owners], cutset.ends[owners]
        at = np.searchsorted(filled, cutset.positions[cuts], "right")
        after, before = filled[np.minimum(at, len(filled) - 1)], filled[at - 1]
        empty = after >= end  # nothing but NULLs on the right side
        equal = cutset.styles[cuts] == EQUAL
        own = (cutset.positions[cuts] - origin).astype(np.int32)
        low, high = self.low[owners], self.high[owners]
        right_low = np.where(empty, _HIGHEST, after - origin)
        self.lows = np.stack([np.where(equal, own, low), np.where(equal, low, right_low)]).astype(np.int32)
        right_high = np.where(empty & ~equal, -1, high)
        self.highs = np.stack([np.where(equal, own, before - origin), right_high]).astype(np.int32)
        self.without = np.stack([np.full(len(cuts), -1), np.where(equal, own, -1)]).astype(np.int32)


class NodeJudge:
    """Judges queries against a node (no column to cut), or against the children of all cuts of some columns."""

    def __init__(self, node: NodeColumns, cut: Sequence[int] = ()) -> None:
        self._node = node
        self._at: dict[int, tuple[slice, slice]] = {}
        self._blocks = 0
        for number in cut:
            size = node.at[number].stop - node.at[number].start
            middle = self._blocks + size
            self._at[number] = slice(self._blocks, middle), slice(middle, middle + size)
            self._blocks = middle + size
        self._blocks = self._blocks or 1
        self._views: dict[Place, ColumnView] = {}

    def might_match(self, group: Group) -> Bools:
        return evaluate(group.shape, iter(group.slots), self)

    def view(self, place: Place) -> ColumnView:
        found = self._views.get(place)
        if found is None:
            found = self._views[place] = self._view(place)
        return found

    def _view(self, place: Place) -> ColumnView:
        node, number = self._node, self._node.cutset.number.get(place)
        if number is None:
            return _UNKNOWN
        low, high = np.full(self._blocks, node.low[number]), np.full(self._blocks, node.high[number])
        without = np.full(self._blocks, -1, np.int32)
        for side, at in enumerate(self._at.get(number, ())):
            own = node.at[number]
            low[at], high[at], without[at] = node.lows[side, own], node.highs[side, own], node.without[side, own]
        bounds = BoundsView(low, high, node.cutset.mode == "native")
        if not node.cutset.few[number]:
            return bounds
        counts = node.counts[node.cutset.starts[number] : node.cutset.ends[number]]
        return PresenceView(np.append(0, np.cumsum(counts > 0)).astype(np.int32), bounds, without)

    def null(self, leaf: IsNull) -> Bools:
        node, number = self._node, self._node.cutset.by_name.get(leaf.column)
        if number is None:
            return _MAYBE
        out = np.full(self._blocks, node.has_value[number] if leaf.negated else node.has_null[number])
        if number in self._at:
            left, right = self._at[number]
            out[left] = leaf.negated
            if leaf.negated:
                out[right] = node.highs[1, node.at[number]] >= 0
        return out[None, :]

    def between(self, leaf: CompareColumns) -> Bools:
        node, known = self._node, self._node.cutset.comparisons
        if leaf not in known:
            return _MAYBE
        out = np.full(self._blocks, node.some_true[known.index(leaf)])
        for number, (left, right) in self._at.items():
            if number >= len(node.cutset.places):
                cut = known[number - len(node.cutset.places)]
                if cut == leaf:
                    out[right] = False
                elif (cut.left, cut.op.negated, cut.right) == (leaf.left, leaf.op, leaf.right):
                    out[left] = False
        return out[None, :]


@dataclass(frozen=True)
class PresenceView:
    """A column of few values whose blocks know which of them they hold: `upto[p]` values lie below position p."""

    upto: Codes
    bounds: BoundsView
    without: Codes

    def test(self, op: Op, codes: Codes) -> Bools:
        at = 2 * codes + 1
        lowest, highest = np.int32(0), np.int32(len(self.upto) - 2)
        match op:
            case Op.LT:
                return self._some(lowest, at - 1)
            case Op.LE:
                return self._some(lowest, at)
            case Op.GT:
                return self._some(at + 1, highest)
            case Op.GE:
                return self._some(at, highest)
            case Op.EQ:
                return self._some(at, at)
            case Op.NE:
                return self._some(lowest, at - 1) | self._some(at + 1, highest)

    def member(self, codes: Codes, negated: bool) -> Bools:
        if negated:
            return self.bounds.member(codes, negated)
        return np.logical_or.reduce([self.test(Op.EQ, codes[:, [at]]) for at in range(codes.shape[1])])

    def _some(self, first: Codes | np.int32, last: Codes | np.int32) -> Bools:
        """Whether a block holds a value at a position from first to last."""
        first, last = np.maximum(first, self.bounds.low), np.minimum(last, self.bounds.high)
        inside = np.clip(last + 1, 0, len(self.upto) - 1)
        found = self.upto[inside] - self.upto[np.clip(first, 0, len(self.upto) - 1)]
        return (found - ((self.without >= first) & (self.without <= last))) > 0
