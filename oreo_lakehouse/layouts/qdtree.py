"""Qd-tree (Yang et al., SIGMOD 2020): greedy cuts from the workload's own predicates.

At every node the cut is taken that lets the node's queries skip the most rows; a node of fewer than two minimum leaves,
or whose queries gain nothing from any cut, is a leaf. Cuts are ranges (`col < v`, `col <= v`), on categories too:
engines skip by minimum and maximum only, and a single category is often smaller than a block (`cutset.py` has the
further cuts of the `bid` mode). Which queries reach a node is judged by the node's real bounds on the sample, so a cut
on a date also counts for the columns that follow that date.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.layouts.blocks import Ints
from oreo_lakehouse.layouts.cutset import CutSet
from oreo_lakehouse.layouts.layout import register_layout
from oreo_lakehouse.layouts.nodejudge import NodeColumns, NodeJudge
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.skipping import Mode
from oreo_lakehouse.layouts.tree import Branch, Tree, TreeLayout
from oreo_lakehouse.predicates.encoded import NULL
from oreo_lakehouse.predicates.shape import comparisons, places
from oreo_lakehouse.predicates.tree import Compare, Op, Predicate
from oreo_lakehouse.predicates.workload import Group, Workload

_MAX_DEPTH = 50
_LIGHT = 0.03
"""Share of a node's weight below which a group of queries has no say in its first cuts."""
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
    root = builder.grow()
    names = sorted(builder.gains, key=lambda name: -builder.gains[name])
    return QdTreeLayout(tuple(names), root.tree())


@dataclass(eq=False)
class _Node:
    rows: npt.NDArray[np.intp]
    groups: list[Group]
    """The queries that reach this node."""
    counts: Ints
    depth: int = 0
    cut: Predicate | None = None
    sides: tuple[_Node, _Node] | None = None

    def split(self, cut: Predicate, left: npt.NDArray[np.bool_], cutset: CutSet) -> tuple[_Node, _Node]:
        rows = [self.rows[left], self.rows[~left]]
        fewer = cutset.count(min(rows, key=len))  # the other side has the rest: half of the counting is saved
        counts = [fewer, self.counts - fewer] if len(rows[0]) <= len(rows[1]) else [self.counts - fewer, fewer]
        one, other = (_Node(r, self.groups, c, self.depth + 1) for r, c in zip(rows, counts, strict=True))
        self.cut, self.sides = cut, (one, other)
        return self.sides

    def tree(self) -> Tree:
        if self.cut is None or self.sides is None:
            return None
        return Branch(self.cut, self.sides[0].tree(), self.sides[1].tree())


class _Builder:
    def __init__(
        self, sample: Sample, workload: Workload, k: int, mode: Mode, weights: npt.NDArray[np.float64]
    ) -> None:
        self.sample, self.workload, self.k, self.weights = sample, workload, k, weights
        self.smallest = max(1, int(_MIN_LEAF * len(sample) / max(1, k)))
        self.gains: dict[str, float] = {}
        self.cutset = CutSet(sample, workload, mode)
        owners = {
            **self.cutset.number,
            **{c: n + len(self.cutset.number) for n, c in enumerate(self.cutset.comparisons)},
        }
        self.owners = {
            group.shape: [
                owners[x] for x in (*dict.fromkeys(places(group.shape)), *comparisons(group.shape)) if x in owners
            ]
            for group in workload.groups
        }

    def grow(self) -> _Node:
        """Split the node with the greatest gain, until there are k leaves or no cut gains anything."""
        everything = np.arange(len(self.sample))
        root = _Node(everything, list(self.workload.groups), self.cutset.count(everything))
        leaves, order = [root], count()
        queue: list[tuple[float, int, _Node, int]] = []
        fresh = [root]
        while True:
            for node in fresh:
                gain, cut = self._choose(node)
                if gain > 0:
                    heappush(queue, (-gain, next(order), node, cut))
            if not queue or len(leaves) >= self.k:
                break
            gain, _, node, cut = heappop(queue)
            for name in self.cutset.columns_of(cut):
                self.gains[name] = self.gains.get(name, 0.0) - gain
            fresh = list(node.split(self.cutset.predicate(cut), self.cutset.goes_left(cut, node.rows), self.cutset))
            leaves.remove(node)
            leaves += fresh
        self._fill(leaves)
        return root

    def _fill(self, leaves: list[_Node]) -> None:
        """Halve the largest leaves that no query's cut divides, so that files keep a sensible size."""
        names = sorted(self.cutset.by_name, key=lambda name: (-self.gains.get(name, 0.0), name))
        order = count()
        queue = [(-len(leaf.rows), next(order), leaf) for leaf in leaves]
        heapify(queue)
        total = len(queue)
        while queue and total < self.k:
            sides = self._halves(heappop(queue)[2], names)
            for side in sides:
                heappush(queue, (-len(side.rows), next(order), side))
            total += bool(sides)

    def _halves(self, node: _Node, names: list[str]) -> tuple[_Node, ...]:
        for name in names if len(node.rows) >= 2 * self.smallest and node.depth < _MAX_DEPTH else ():
            column = self.sample.rows.column(name)
            if column is None:
                continue
            ranks = column.ranks[node.rows]
            known = ranks != NULL
            middle = int(np.median(ranks[known])) if known.any() else 0
            left = known & (ranks < middle)
            if self.smallest <= left.sum() <= len(ranks) - self.smallest:
                self.gains.setdefault(name, 0.0)
                return node.split(Compare(name, Op.LT, column.kind, column.value(middle)), left, self.cutset)
        return ()

    def _choose(self, node: _Node) -> tuple[float, int]:
        """The cut by which the node's queries skip the most rows, after how many they skip."""
        if len(node.rows) < 2 * self.smallest or node.depth >= _MAX_DEPTH:
            return 0.0, -1
        columns = NodeColumns(self.cutset, node.rows, node.counts, self.smallest)
        if not len(columns.cuts):
            return 0.0, -1
        # Groups of little weight decide only where the others gain nothing more: half of the time is saved.
        weights = [float(self.weights[group.queries].sum()) for group in node.groups]
        enough = _LIGHT * sum(weights)
        heavy = _reaching([g for g, weight in zip(node.groups, weights, strict=True) if weight >= enough], columns)
        light = [g for g, weight in zip(node.groups, weights, strict=True) if weight < enough]
        best = self._best(columns, heavy)
        if best[0] <= 0 and light:
            light = _reaching(light, columns)
            best = self._best(columns, light)
        node.groups = heavy + light
        return best

    def _best(self, columns: NodeColumns, groups: list[Group]) -> tuple[float, int]:
        skipped = np.zeros((2, len(columns.cuts)))
        for group in groups:
            cut = [n for n in self.owners[group.shape] if columns.at[n].stop > columns.at[n].start]
            if cut:
                skips = ~NodeJudge(columns, cut).might_match(group)
                weights = self.weights[group.queries]
                found = weights @ skips if len(skips) == len(weights) else weights.sum() * skips[0]
                found = np.broadcast_to(found, 2 * sum(columns.at[n].stop - columns.at[n].start for n in cut))
                start = 0
                for number in cut:
                    own = columns.at[number]
                    size = own.stop - own.start
                    skipped[:, own] += found[start : start + 2 * size].reshape(2, -1)
                    start += 2 * size
        gains = (skipped * columns.rows).sum(axis=0)
        best = int(np.argmax(gains))
        return float(gains[best]), int(columns.cuts[best])


def _reaching(groups: list[Group], columns: NodeColumns) -> list[Group]:
    """The queries that cannot skip the node."""
    judge = NodeJudge(columns)
    out: list[Group] = []
    for group in groups:
        reach = np.broadcast_to(judge.might_match(group), (len(group.queries), 1))[:, 0]
        out.append(group if reach.all() else group.take(np.flatnonzero(reach)))
    return [group for group in out if len(group.queries)]
