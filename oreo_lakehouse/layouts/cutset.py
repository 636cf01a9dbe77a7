"""The cuts that a qd-tree may make: what each sends to the left, on all rows of a sample.

A **range** cut at position j sends rows at positions up to j left. In the `bid` mode there are two more: an
**equality** cut sends the rows of one category left, and a **comparison** cut those for which `a < b` is TRUE. The
positions of all columns lie side by side in one range, a column's NULLs at its end, so that one count over a node's
rows tells everything about every cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.layouts.blocks import Bools, Ints
from oreo_lakehouse.layouts.columnview import positions
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.skipping import Mode
from oreo_lakehouse.predicates.shape import Junction, Member, Place, Shape, Test, comparisons
from oreo_lakehouse.predicates.tree import Compare, CompareColumns, Op, Predicate
from oreo_lakehouse.predicates.values import Array, python_value
from oreo_lakehouse.predicates.workload import Group, Workload

RANGE, EQUAL, COMPARE = 0, 1, 2
_MOST = 1024
"""Cuts of one column that are tried, evenly spread if there are more."""
_FEW = 256
"""Values up to which a column's blocks know their distinct sets (`sample.py`), so that equality cuts pay."""


class CutSet:
    """Columns side by side, and the cuts on them in the order of columns; comparisons come last."""

    def __init__(self, sample: Sample, workload: Workload, mode: Mode) -> None:
        self.literals, self.mode = workload.literals, mode
        self.places: list[Place] = []
        located: list[npt.NDArray[np.int32]] = []
        starts, few = [0], list[bool]()
        cuts: list[tuple[int, int, int]] = []
        for place, (ranges, equals) in _wanted(workload).items():
            column = sample.rows.column(place[0])
            if column is None or column.kind is not place[1]:
                continue
            null = 2 * len(self.literals[place]) + 1
            located.append(np.append(positions(self.literals[place], column.values), null)[column.ranks] + starts[-1])
            few.append(mode == "bid" and len(column.values) <= _FEW)
            own = [(RANGE, position) for position in _thin(ranges)]
            own += [(EQUAL, position) for position in _thin(equals) if few[-1]]
            cuts += [(len(self.places), style, position) for style, position in own]
            self.places.append(place)
            starts.append(starts[-1] + null + 1)
        self.few = few
        self.number = {place: number for number, place in enumerate(self.places)}
        self.by_name = {place[0]: number for place, number in self.number.items()}
        self.starts, self.ends = np.array(starts[:-1], np.int64), np.array(starts[1:], np.int64) - 1
        """First positions of the columns, and those of their NULLs."""
        self.located = np.stack(located, axis=1) if located else np.zeros((len(sample), 0), np.int32)
        self.comparisons: list[CompareColumns] = []
        self.true: list[Bools] = []
        leaves = [comparisons(group.shape) for group in workload.groups] if mode == "bid" else []
        for leaf in sorted(frozenset[CompareColumns]().union(*leaves), key=repr):
            true = sample.holds(leaf)
            if true is not None:
                cuts.append((len(self.places) + len(self.comparisons), COMPARE, 0))
                self.comparisons.append(leaf)
                self.true.append(true)
        table = np.array(cuts, np.int64).reshape(-1, 3)
        self.owners: Ints = table[:, 0]
        self.styles: Ints = table[:, 1]
        within = np.minimum(self.owners, max(0, len(self.places) - 1))
        self.positions: Ints = table[:, 2] + (self.starts[within] if len(self.starts) else 0)
        """Where each cut is, among all columns' positions."""

    def count(self, rows: npt.NDArray[np.intp]) -> Ints:
        """How many of the rows are at each position of all columns."""
        return np.bincount(self.located[rows].ravel(), minlength=int(self.ends[-1]) + 1 if len(self.ends) else 0)

    def goes_left(self, cut: int, rows: npt.NDArray[np.intp]) -> Bools:
        """Which of the rows the cut sends left."""
        owner, style = int(self.owners[cut]), int(self.styles[cut])
        if style == COMPARE:
            return self.true[owner - len(self.places)][rows]
        found = self.located[rows, owner]
        return found == self.positions[cut] if style == EQUAL else found <= self.positions[cut]

    def predicate(self, cut: int) -> Predicate:
        """The cut as a condition; where it is TRUE a row goes left."""
        owner, style = int(self.owners[cut]), int(self.styles[cut])
        if style == COMPARE:
            return self.comparisons[owner - len(self.places)]
        place = self.places[owner]
        code, odd = divmod(int(self.positions[cut] - self.starts[owner]), 2)
        op = Op.EQ if style == EQUAL else Op.LE if odd else Op.LT
        return Compare(place[0], op, place[1], python_value(place[1], self.literals[place][code]))

    def columns_of(self, cut: int) -> Sequence[str]:
        """The columns that the cut needs."""
        owner = int(self.owners[cut])
        if owner < len(self.places):
            return (self.places[owner][0],)
        leaf = self.comparisons[owner - len(self.places)]
        return (leaf.left, leaf.right)


def _wanted(workload: Workload) -> Mapping[Place, tuple[set[int], set[int]]]:
    """Per column, the positions at which its literals can be told apart: before one (2c) or after it (2c + 1); and the
    positions of literals that are compared for equality."""
    out: dict[Place, tuple[set[int], set[int]]] = {}
    for group in workload.groups:
        for op, place, codes in _tests(group):
            ranges, equals = out.setdefault(place, (set(), set()))
            if op not in (Op.LE, Op.GT):
                ranges.update((2 * codes).tolist())
            if op not in (Op.LT, Op.GE):
                ranges.update((2 * codes + 1).tolist())
            if op in (Op.EQ, Op.NE):
                equals.update((2 * codes + 1).tolist())
    return out


def _tests(group: Group) -> list[tuple[Op, Place, Array]]:
    slots = iter(group.slots)
    out: list[tuple[Op, Place, Array]] = []
    todo: list[Shape] = [group.shape]
    while todo:
        match todo.pop(0):
            case Junction(_, children):
                todo[:0] = children
            case Test(op, place):
                out.append((op, place, np.unique(next(slots))))
            case Member(place):
                out.append((Op.EQ, place, np.unique(next(slots))))
            case _:
                pass
    return out


def _thin(cuts: set[int]) -> list[int]:
    found = sorted(cuts)
    return found if len(found) <= _MOST else [found[i] for i in np.linspace(0, len(found) - 1, _MOST).astype(int)]
