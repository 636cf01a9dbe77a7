"""Which blocks a query cannot skip, and what fraction of the rows they hold: the service cost.

A block is skipped only if its metadata proves that no row in it makes the predicate TRUE. Whatever is not known (no
statistics, another kind, a bound that was cut off) might match. Two modes: `native` promises what Delta and Iceberg
both skip by themselves while they plan, by minimum, maximum and NULL counts (an IN list counts as the range from its
least to its greatest literal, as Delta takes it); `bid` is what our pruning knows, which judges every literal of a list
and also uses distinct sets and comparisons between columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.layouts.blocks import Blocks, Bools, ColumnStats
from oreo_lakehouse.layouts.columnview import BoundsView, ColumnView, DistinctView, all_null
from oreo_lakehouse.predicates.shape import Junction, Member, Place, Shape, Test
from oreo_lakehouse.predicates.tree import CompareColumns, Constant, IsNull, Op
from oreo_lakehouse.predicates.values import Array, Kind
from oreo_lakehouse.predicates.workload import Codes, Group, Workload

Mode: TypeAlias = Literal["native", "bid"]
Costs: TypeAlias = npt.NDArray[np.float64]
_CELLS = 1 << 21
"""Cells of (queries x blocks) judged at a time: bounds memory, and a chunk stays in the processor's cache."""


def might_match(workload: Workload, blocks: Blocks, mode: Mode = "native") -> Bools:
    """A matrix (queries x blocks): False where metadata proves that the block has no row for the query."""
    out = np.ones((len(workload), len(blocks)), np.bool_)
    for queries, found in _chunks(workload, blocks, mode):
        out[queries] = found
    return out


def service_costs(workload: Workload, blocks: Blocks, mode: Mode = "native") -> Costs:
    """Per query, the fraction of rows in blocks that it cannot skip, times its weight; 0 for an empty table.

    >>> from oreo_lakehouse.predicates.tree import Compare
    >>> stats = ColumnStats.of(Kind.INTEGER, [0, 50], [49, 99], [0, 0])
    >>> blocks = Blocks(np.array([50, 150]), {"a": stats})
    >>> queries = [Compare("a", Op.GT, Kind.INTEGER, 60), Compare("a", Op.GE, Kind.INTEGER, 7)]
    >>> service_costs(Workload.of(queries), blocks)
    array([0.75, 1.  ])
    """
    costs = np.zeros(len(workload))
    total = blocks.total_rows
    if total > 0:
        share = blocks.rows / total
        for queries, found in _chunks(workload, blocks, mode):
            costs[queries] = np.broadcast_to(found, (len(queries), len(blocks))) @ share
    costs = np.minimum(costs, 1.0)
    return costs if workload.weights is None else costs * workload.weights


def _chunks(workload: Workload, blocks: Blocks, mode: Mode) -> Iterator[tuple[npt.NDArray[np.int64], Bools]]:
    judge = Judge(blocks, workload.literals, mode)
    step = max(1, _CELLS // max(1, len(blocks)))
    for group in workload.groups:
        for start in range(0, len(group.queries), step):
            part = group.take(slice(start, start + step))
            yield part.queries, judge.might_match(part)


class BlockJudge(Protocol):
    """Answers a predicate's leaves for some blocks; every answer broadcasts to (queries x blocks)."""

    def view(self, place: Place) -> ColumnView: ...

    def null(self, leaf: IsNull) -> Bools: ...

    def between(self, leaf: CompareColumns) -> Bools: ...


class Judge:
    """Compares groups of queries with n blocks, whose statistics it has located among the workload's literals."""

    def __init__(self, blocks: Blocks, literals: Mapping[Place, Array], mode: Mode) -> None:
        self._columns, self._rows, self._comparisons = blocks.columns, blocks.rows, blocks.comparisons
        self._literals, self._mode = literals, mode
        self._views: dict[Place, ColumnView] = {}

    def might_match(self, group: Group) -> Bools:
        """(queries x blocks), or something that broadcasts to it."""
        return evaluate(group.shape, iter(group.slots), self)

    def view(self, place: Place) -> ColumnView:
        found = self._views.get(place)
        if found is None:
            stats = self._columns.get(place[0])
            stats = stats if stats is not None and stats.kind is place[1] else None
            found = BoundsView.of(self._literals[place], stats, self._rows, self._mode == "native")
            if self._mode == "bid" and stats is not None and stats.distinct is not None:
                found = DistinctView.of(self._literals[place], stats.distinct, found)
            self._views[place] = found
        return found

    def null(self, leaf: IsNull) -> Bools:
        stats = self._columns.get(leaf.column)
        if stats is None:
            return np.ones((1, 1), np.bool_)
        return (~all_null(stats, self._rows) if leaf.negated else stats.nulls != 0)[None, :]

    def between(self, leaf: CompareColumns) -> Bools:
        """`a op b` by both columns' bounds, or from what the rows showed. No engine does this by itself."""
        if self._mode != "bid":
            return np.ones((1, 1), np.bool_)
        found = self._comparisons.get(leaf, np.ones(len(self._rows), np.bool_))
        a, b = self._columns.get(leaf.left), self._columns.get(leaf.right)
        if a is not None and b is not None and a.kind is b.kind and a.kind is not Kind.OTHER:
            found = found & ~(all_null(a, self._rows) | all_null(b, self._rows)) & _between(a, leaf.op, b)
        return found[None, :]


def evaluate(shape: Shape, slots: Iterator[Codes], judge: BlockJudge) -> Bools:
    """The shape over a group's slots; every leaf broadcasts to (queries x blocks)."""
    match shape:
        case Test(op, place):
            return judge.view(place).test(op, next(slots)[:, None])
        case Member(place, negated):
            return judge.view(place).member(next(slots), negated)
        case Junction(conjunction, children):
            combine = np.logical_and if conjunction else np.logical_or
            out = np.full((1, 1), conjunction)
            for child in children:
                found = evaluate(child, slots, judge)
                out = combine(out, found, out=out) if out.shape == found.shape else combine(out, found)
            return out
        case IsNull():
            return judge.null(shape)
        case CompareColumns():
            return judge.between(shape)
        case Constant(value):
            return np.full((1, 1), value)


def _between(a: ColumnStats, op: Op, b: ColumnStats) -> Bools:
    if op in (Op.GT, Op.GE):
        a, op, b = b, op.mirrored, a
    below = _compare(a.lower, a.lower_known, b.upper, b.upper_known, strict=op is Op.LT)
    if op in (Op.LT, Op.LE):
        return below
    if op is Op.EQ:
        return below & _compare(b.lower, b.lower_known, a.upper, a.upper_known, strict=False)
    point = a.lower_known & a.upper_known & b.lower_known & b.upper_known
    differs = _compare(a.lower, point, b.upper, point, strict=True) | _compare(
        b.lower, point, a.upper, point, strict=True
    )
    return differs | ~point


def _compare(
    low: npt.NDArray[np.generic], low_known: Bools, high: npt.NDArray[np.generic], high_known: Bools, strict: bool
) -> Bools:
    """`low < high` (or `<=`) where both are known, with NaN above every number; True elsewhere."""
    out = np.ones(len(low), np.bool_)
    at = np.flatnonzero(low_known & high_known)
    if len(at):
        both = np.unique(np.concatenate([low[at], high[at]]), return_inverse=True)[1]
        left, right = both[: len(at)], both[len(at) :]
        out[at] = left < right if strict else left <= right
    return out
