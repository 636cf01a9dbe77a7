"""Which queries would reach the children of a qd-tree's node, for many cuts of one column at once.

A node is a block with known rows, so its bounds are positions among the workload's literals (see `columnview.py`), and
a cut at position j sends rows at positions up to j left. All cuts of a column are judged as if they were so many
blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.layouts.blocks import Bools, Ints
from oreo_lakehouse.layouts.columnview import BoundsView, ColumnView
from oreo_lakehouse.layouts.skipping import Mode, evaluate
from oreo_lakehouse.predicates.tree import CompareColumns, IsNull
from oreo_lakehouse.predicates.values import Array
from oreo_lakehouse.predicates.workload import Codes, Group, Place

_UNKNOWN = BoundsView(np.array([-1], np.int32), np.array([np.iinfo(np.int32).max], np.int32))
_MAYBE = np.ones((1, 1), np.bool_)


@dataclass(frozen=True)
class CutColumn:
    """A column to cut: its literals, each row's position among them (NULL: above all), and the positions to cut at."""

    place: Place
    literals: Array
    located: Codes
    cuts: Codes

    @property
    def null(self) -> int:
        return 2 * len(self.literals) + 1


class NodeJudge:
    """Judges queries against one node, or against the children that the cuts of one column would make of it."""

    def __init__(self, columns: Sequence[CutColumn], rows: npt.NDArray[np.intp], mode: Mode) -> None:
        self._mode: Mode = mode
        self._counts: dict[Place, Ints] = {}
        self._views: dict[Place, ColumnView] = {}
        self._nulls: dict[str, tuple[Bools, Bools]] = {}
        for column in columns:
            counts = np.bincount(column.located[rows], minlength=column.null + 1)
            filled = np.flatnonzero(counts[:-1])
            self._counts[column.place] = counts
            self._views[column.place] = _bounds(filled[:1], filled[-1:])
            self._nulls[column.place[0]] = np.array([[counts[-1] > 0]]), np.array([[len(filled) > 0]])

    def rows_upto(self, column: CutColumn) -> Ints:
        """How many of the node's rows lie at or below each position."""
        return np.cumsum(self._counts[column.place])

    def child(self, column: CutColumn, cuts: Codes, side: int) -> NodeJudge:
        """The left (-1) or right (1) children of all cuts, side by side, as far as they differ from the node."""
        out = NodeJudge((), np.zeros(0, np.intp), self._mode)
        out._views, out._nulls = dict(self._views), dict(self._nulls)
        counts = self._counts[column.place]
        filled = np.flatnonzero(counts[:-1])
        name = column.place[0]
        if side < 0:
            last = np.searchsorted(filled, cuts, "right") - 1
            out._views[column.place] = BoundsView(
                np.full(len(cuts), filled[0], np.int32), filled[last].astype(np.int32)
            )
            out._nulls[name] = ~_MAYBE, _MAYBE
        else:
            first = np.searchsorted(filled, cuts, "right")
            empty = first == len(filled)  # nothing but NULLs on this side
            low = np.where(empty, np.iinfo(np.int32).max, filled[np.minimum(first, len(filled) - 1)])
            high = np.where(empty, -1, filled[-1])
            out._views[column.place] = BoundsView(low.astype(np.int32), high.astype(np.int32))
            out._nulls[name] = self._nulls[name][0], ~empty[None, :]
        return out

    def might_match(self, group: Group) -> Bools:
        return evaluate(group.shape, iter(group.slots), self)

    def view(self, place: Place) -> ColumnView:
        return self._views.get(place, _UNKNOWN)

    def null(self, leaf: IsNull) -> Bools:
        has_null, has_value = self._nulls.get(leaf.column, (_MAYBE, _MAYBE))
        return has_value if leaf.negated else has_null

    def between(self, leaf: CompareColumns) -> Bools:
        del leaf
        return _MAYBE


def _bounds(low: npt.NDArray[np.intp], high: npt.NDArray[np.intp]) -> BoundsView:
    if not len(low):
        return BoundsView(_UNKNOWN.high, _UNKNOWN.low)
    return BoundsView(low.astype(np.int32), high.astype(np.int32))
