"""One column's block statistics as seen from a workload's literals: comparisons become comparisons of positions.

Let L be the sorted literals. A value x has the **position** (how many literals are < x) + (how many are <= x): the
literal L[c] itself has position 2c + 1, values between L[c-1] and L[c] have position 2c. So x < L[c] iff its position
is at most 2c, and x <= L[c] iff it is at most 2c + 1. numpy sorts NaN last and finds it as equal to itself, which is
Spark's order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from oreo_lakehouse.layouts.blocks import Bools, ColumnStats, Distinct, Ints
from oreo_lakehouse.predicates.tree import Op
from oreo_lakehouse.predicates.values import Array
from oreo_lakehouse.predicates.workload import Codes

_WIDE = 16
"""Literals in an IN list up to which comparing them one by one is fastest."""
_MOST_LISTED = 200
"""Literals in an IN list beyond which Iceberg reads every file."""
_ABOVE_ALL = np.iinfo(np.int32).max
_BELOW_ALL = np.int32(-1)


class ColumnView(Protocol):
    """Answers tests on one column for many queries and blocks at once."""

    def test(self, op: Op, codes: Codes) -> Bools:
        """`column op literal`; `codes` is (queries x 1), the answer broadcasts to (queries x blocks)."""
        ...

    def member(self, codes: Codes, negated: bool) -> Bools:
        """`column [NOT] IN literals`; `codes` is (queries x literals)."""
        ...


@dataclass(frozen=True)
class BoundsView:
    """Positions of minimum and maximum; a block of NULLs alone has the highest minimum and the lowest maximum.

    `engine` promises no more than engines keep while they plan: Delta takes an IN list as the range from its least to
    its greatest literal, Iceberg reads everything for more than 200, and neither is sure to skip for != and NOT IN.
    """

    low: Codes
    high: Codes
    engine: bool

    @classmethod
    def of(cls, literals: Array, stats: ColumnStats | None, rows: Ints, engine: bool) -> BoundsView:
        low, high = np.full(len(rows), _BELOW_ALL), np.full(len(rows), _ABOVE_ALL, np.int32)
        if stats is not None:
            low[stats.lower_known] = positions(literals, stats.lower[stats.lower_known])
            high[stats.upper_known] = positions(literals, stats.upper[stats.upper_known])
            dead = all_null(stats, rows)
            low[dead], high[dead] = _ABOVE_ALL, _BELOW_ALL
        return cls(low, high, engine)

    def test(self, op: Op, codes: Codes) -> Bools:
        at = 2 * codes + 1
        match op:
            case Op.LT:
                return self.low < at
            case Op.LE:
                return self.low <= at
            case Op.GT:
                return self.high > at
            case Op.GE:
                return self.high >= at
            case Op.EQ:
                return (self.low <= at) & (self.high >= at)
            case Op.NE:
                return self._some() if self.engine else (self.low < at) | (self.high > at)

    def member(self, codes: Codes, negated: bool) -> Bools:
        if self.engine:
            if negated:
                return self._some()
            least, greatest = codes.min(axis=1, keepdims=True), codes.max(axis=1, keepdims=True)
            within = self.test(Op.GE, least) & self.test(Op.LE, greatest)
            listed = 1 + (np.diff(codes, axis=1) != 0).sum(axis=1, keepdims=True)
            return within | (self._some() & (listed > _MOST_LISTED))
        if negated:  # every literal is a different one, so NOT IN rules out only blocks that equal one of them
            return np.logical_and.reduce([self.test(Op.NE, codes[:, [at]]) for at in range(codes.shape[1])])
        if codes.shape[1] <= _WIDE:
            return np.logical_or.reduce([self.test(Op.EQ, codes[:, [at]]) for at in range(codes.shape[1])])
        # Some literal lies within the bounds iff two searches end at different places.
        rows = 2 * codes + 1
        return np.stack([np.searchsorted(r, self.low) < np.searchsorted(r, self.high, "right") for r in rows])

    def _some(self) -> Bools:
        """Blocks with any value at all."""
        return (self.low <= self.high)[None, :]


@dataclass(frozen=True)
class DistinctView:
    """Complete sets of values, where they are known; bounds elsewhere.

    `counts[v, b]` is how many of the first v values block b holds; `below` and `upto` locate each literal among the
    values. So a test is a difference of two counts.
    """

    counts: Codes
    below: Codes
    upto: Codes
    known: Bools
    bounds: BoundsView

    @classmethod
    def of(cls, literals: Array, distinct: Distinct, bounds: BoundsView) -> DistinctView:
        counts = np.zeros((len(distinct.values) + 1, len(distinct.known)), np.int32)
        np.cumsum(distinct.present.T, axis=0, out=counts[1:])
        below = np.searchsorted(distinct.values, literals, "left").astype(np.int32)
        upto = np.searchsorted(distinct.values, literals, "right").astype(np.int32)
        return cls(counts, below, upto, distinct.known, bounds)

    def test(self, op: Op, codes: Codes) -> Bools:
        below, upto = self.counts[self.below[codes[:, 0]]], self.counts[self.upto[codes[:, 0]]]
        match op:
            case Op.LT:
                found = below > 0
            case Op.LE:
                found = upto > 0
            case Op.GT:
                found = self.counts[-1] > upto
            case Op.GE:
                found = self.counts[-1] > below
            case Op.EQ:
                found = upto > below
            case Op.NE:
                found = self.counts[-1] > upto - below
        return found if self.known.all() else np.where(self.known, found, self.bounds.test(op, codes))

    def member(self, codes: Codes, negated: bool) -> Bools:
        listed = np.zeros((len(codes), self.counts.shape[1]), np.int32)
        previous = np.full(len(codes), -1, np.int32)
        for at in range(codes.shape[1]):
            code = codes[:, at]
            fresh = (code != previous)[:, None]  # padding repeats the last literal
            listed += fresh * (self.counts[self.upto[code]] - self.counts[self.below[code]])
            previous = code
        found = self.counts[-1] > listed if negated else listed > 0
        return found if self.known.all() else np.where(self.known, found, self.bounds.member(codes, negated))


def positions(literals: Array, values: Array) -> Codes:
    """Where values lie among sorted literals."""
    found = np.searchsorted(literals, values, "left") + np.searchsorted(literals, values, "right")
    return found.astype(np.int32)


def all_null(stats: ColumnStats, rows: Ints) -> Bools:
    """Blocks that certainly hold nothing but NULL. A bound contradicts that, whatever the counts say."""
    return (rows > 0) & (stats.nulls == rows) & ~stats.lower_known & ~stats.upper_known
