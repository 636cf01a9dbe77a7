"""Qd-tree (Yang et al., SIGMOD 2020): greedy cuts from the workload's own predicates.

At every node the cut is taken that lets the node's queries skip the most rows; a node of fewer than two minimum leaves,
or whose queries gain nothing from any cut, is a leaf. Cuts are ranges (`col < v`, `col <= v`), on categories too:
engines skip by minimum and maximum only, and a single category is often smaller than a block (see `advanced.py` for
the cuts of the `bid` mode). Which queries reach a node is judged by the node's real bounds on the sample, so a cut on a
date also counts for the columns that follow that date.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.layouts.columnview import positions
from oreo_lakehouse.layouts.layout import register_layout
from oreo_lakehouse.layouts.nodejudge import CutColumn, NodeJudge
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.skipping import Mode
from oreo_lakehouse.layouts.tree import Branch, Tree, TreeLayout
from oreo_lakehouse.predicates.tree import Compare, Op, Predicate
from oreo_lakehouse.predicates.values import python_value
from oreo_lakehouse.predicates.workload import Group, Junction, Member, Shape, Test, Workload, places

_MAX_CUTS = 256
"""Cuts of one column that are tried at a node, evenly spread if there are more."""
_MAX_DEPTH = 50
_MIN_LEAF = 0.5
"""The smallest block, as a share of the average one."""


class QdTreeLayout(TreeLayout):
    """A qd-tree; `columns` are its cut columns, the most decisive first."""

    kind: ClassVar[str] = "qdtree"
    title: ClassVar[str] = "qd-tree on"


register_layout(QdTreeLayout.kind, QdTreeLayout.from_json)


def qdtree_layout(
    sample: Sample,
    workload: Workload,
    k: int,
    mode: Mode = "native",
    weights: npt.NDArray[np.float64] | None = None,
) -> QdTreeLayout:
    """About k blocks, none smaller than half the average.

    Args:
        sample: rows of the table.
        workload: the queries to build for.
        k: blocks wanted.
        mode: what skips blocks.
        weights: how much each query counts; by default all the same.
    """
    builder = _Builder(sample, workload, k, mode, np.ones(len(workload)) if weights is None else weights)
    tree = builder.grow(_Node(np.arange(len(sample)), list(workload.groups)), 0)
    names = sorted(builder.gains, key=lambda name: -builder.gains[name])
    return QdTreeLayout(tuple(names), tree)


@dataclass(frozen=True)
class _Node:
    rows: npt.NDArray[np.intp]
    groups: list[Group]
    """The queries that reach this node."""


@dataclass(frozen=True)
class _Cut:
    column: CutColumn
    position: int
    gain: float

    def predicate(self) -> Predicate:
        name, kind = self.column.place
        code, up_to = divmod(self.position, 2)
        return Compare(name, Op.LE if up_to else Op.LT, kind, python_value(kind, self.column.literals[code]))


class _Builder:
    def __init__(
        self, sample: Sample, workload: Workload, k: int, mode: Mode, weights: npt.NDArray[np.float64]
    ) -> None:
        self.weights = weights
        self.mode: Mode = mode
        self.smallest = max(1, int(_MIN_LEAF * len(sample) / max(1, k)))
        self.gains: dict[str, float] = {}
        self.columns: dict[tuple[str, object], CutColumn] = {}
        used: dict[tuple[str, object], set[int]] = {}
        for group in workload.groups:
            _collect(group, used)
        for place, cuts in used.items():
            column = sample.rows.column(place[0])
            if column is not None and column.kind is place[1]:
                literals = workload.literals[place[0], column.kind]
                located = np.append(positions(literals, column.values), 2 * len(literals) + 1).astype(np.int32)
                self.columns[place] = CutColumn(
                    (place[0], column.kind), literals, located[column.ranks], np.array(sorted(cuts), np.int32)
                )

    def grow(self, node: _Node, depth: int) -> Tree:
        if len(node.rows) < 2 * self.smallest or depth >= _MAX_DEPTH:
            return None
        judge = NodeJudge(list(self.columns.values()), node.rows, self.mode)
        groups = [g for g in (_reaching(group, judge) for group in node.groups) if len(g.queries)]
        cut = max(
            (found for column in self.columns.values() if (found := self._best(column, judge, groups)) is not None),
            key=lambda cut: cut.gain,
            default=None,
        )
        if cut is None or cut.gain <= 0:
            return None
        name = cut.column.place[0]
        self.gains[name] = self.gains.get(name, 0.0) + cut.gain
        left = cut.column.located[node.rows] <= cut.position
        sides = _Node(node.rows[left], groups), _Node(node.rows[~left], groups)
        return Branch(cut.predicate(), self.grow(sides[0], depth + 1), self.grow(sides[1], depth + 1))

    def _best(self, column: CutColumn, judge: NodeJudge, groups: list[Group]) -> _Cut | None:
        """The cut of this column by which the node's queries skip the most rows."""
        below = judge.rows_upto(column)
        cuts = column.cuts
        large = np.minimum(below[cuts], below[-1] - below[cuts]) >= self.smallest
        cuts = cuts[large]
        if not len(cuts):
            return None
        if len(cuts) > _MAX_CUTS:
            cuts = cuts[np.linspace(0, len(cuts) - 1, _MAX_CUTS).astype(np.intp)]
        gain = np.zeros(len(cuts))
        for side, size in ((-1, below[cuts]), (1, below[-1] - below[cuts])):
            child = judge.child(column, cuts, side)
            for group in groups:
                if column.place in places(group.shape):
                    skips = ~child.might_match(group)
                    gain += self.weights[group.queries] @ np.broadcast_to(skips, (len(group.queries), len(cuts))) * size
        best = int(np.argmax(gain))
        return _Cut(column, int(cuts[best]), float(gain[best]))


def _reaching(group: Group, judge: NodeJudge) -> Group:
    reach = np.broadcast_to(judge.might_match(group), (len(group.queries), 1))[:, 0]
    return group if reach.all() else group.take(np.flatnonzero(reach))


def _collect(group: Group, used: dict[tuple[str, object], set[int]]) -> None:
    """The positions at which the group's literals can be told apart: before a literal (2c) or after it (2c + 1)."""
    slots = iter(group.slots)
    todo: list[Shape] = [group.shape]
    while todo:
        shape = todo.pop(0)
        match shape:
            case Junction(_, children):
                todo[:0] = children
            case Test(op, place):
                codes = np.unique(next(slots)) * 2
                before = op not in (Op.LE, Op.GT)
                after = op not in (Op.LT, Op.GE)
                used.setdefault(place, set()).update(*(codes + 0,) * before, *(codes + 1,) * after)
            case Member(place):
                codes = np.unique(next(slots)) * 2
                used.setdefault(place, set()).update(codes, codes + 1)
            case _:
                pass
