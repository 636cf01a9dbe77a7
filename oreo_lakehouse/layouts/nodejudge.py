"""Which queries would reach the children of a qd-tree's node, for all cuts at once.

A node is a block with known rows, so its bounds are positions among the workload's literals (see `columnview.py`), and
a cut at position j sends rows at positions up to j left. The children of all cuts of some columns are judged as if they
were so many blocks: first the left and then the right ones of each column's cuts, column after column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.layouts.blocks import Bools, Ints
from oreo_lakehouse.layouts.columnview import BoundsView, ColumnView
from oreo_lakehouse.layouts.skipping import evaluate
from oreo_lakehouse.predicates.tree import CompareColumns, IsNull
from oreo_lakehouse.predicates.values import Array
from oreo_lakehouse.predicates.workload import Codes, Group, Place

_HIGHEST = np.iinfo(np.int32).max
_UNKNOWN = BoundsView(np.array([-1], np.int32), np.array([_HIGHEST], np.int32))
_MAYBE = np.ones((1, 1), np.bool_)


@dataclass(frozen=True)
class CutColumn:
    """A column to cut: its literals, each row's position among them (NULL: above all), and the positions to cut at."""

    place: Place
    literals: Array
    located: Codes
    cuts: Codes


@dataclass(frozen=True)
class NodeColumn:
    """One column of one node: its bounds, and what the children of its cuts would look like, left ones first."""

    low: int
    high: int
    has_null: bool
    cuts: Codes
    rows: Ints
    lows: Codes
    highs: Codes
    nulls: Bools
    values: Bools

    @classmethod
    def of(cls, column: CutColumn, rows: npt.NDArray[np.intp], smallest: int, most: int) -> NodeColumn:
        """Of the cuts that leave at least `smallest` rows on either side, `most` evenly spread ones."""
        counts = np.bincount(column.located[rows], minlength=2 * len(column.literals) + 2)
        filled = np.flatnonzero(counts[:-1])
        has_null = bool(counts[-1])
        if not len(filled):
            none = np.zeros(0, np.int32)
            return cls(_HIGHEST, -1, has_null, none, none.astype(np.int64), none, none, none > 0, none > 0)
        upto = np.cumsum(counts)
        cuts = column.cuts[np.minimum(upto[column.cuts], len(rows) - upto[column.cuts]) >= smallest]
        if len(cuts) > most:
            cuts = cuts[np.linspace(0, len(cuts) - 1, most).astype(np.intp)]
        after = np.searchsorted(filled, cuts, "right")  # the first position on the right side
        empty = after == len(filled)  # nothing but NULLs there
        first = np.where(empty, _HIGHEST, filled[np.minimum(after, len(filled) - 1)])
        low, high = int(filled[0]), int(filled[-1])
        return cls(
            low,
            high,
            has_null,
            cuts,
            np.concatenate([upto[cuts], len(rows) - upto[cuts]]),
            np.concatenate([np.full(len(cuts), low), first]).astype(np.int32),
            np.concatenate([filled[np.maximum(after - 1, 0)], np.where(empty, -1, high)]).astype(np.int32),
            np.repeat([False, has_null], len(cuts)),
            np.concatenate([np.ones(len(cuts), np.bool_), ~empty]),
        )


class NodeJudge:
    """Judges queries against a node (no column to cut), or against the children of all cuts of some columns."""

    def __init__(self, columns: Mapping[Place, NodeColumn], cut: Sequence[Place] = ()) -> None:
        self._columns = columns
        sizes = [2 * len(columns[place].cuts) for place in cut]
        self._at = {p: slice(e - s, e) for p, s, e in zip(cut, sizes, np.cumsum(sizes, dtype=np.int64), strict=True)}
        self._blocks = sum(sizes) if cut else 1
        self._views: dict[Place, BoundsView] = {}
        self._names = {place[0]: place for place in columns}

    def might_match(self, group: Group) -> Bools:
        return evaluate(group.shape, iter(group.slots), self)

    def view(self, place: Place) -> ColumnView:
        found = self._views.get(place)
        if found is None:
            column = self._columns.get(place)
            found = _UNKNOWN
            if column is not None:
                low, high = np.full(self._blocks, column.low, np.int32), np.full(self._blocks, column.high, np.int32)
                if place in self._at:
                    low[self._at[place]], high[self._at[place]] = column.lows, column.highs
                found = BoundsView(low, high)
            self._views[place] = found
        return found

    def null(self, leaf: IsNull) -> Bools:
        place = self._names.get(leaf.column)
        if place is None:
            return _MAYBE
        column = self._columns[place]
        out = np.full(self._blocks, column.low <= column.high if leaf.negated else column.has_null)
        if place in self._at:
            out[self._at[place]] = column.values if leaf.negated else column.nulls
        return out[None, :]

    def between(self, leaf: CompareColumns) -> Bools:
        del leaf
        return _MAYBE
