"""Comparisons of a column with a literal of whatever type, as predicates over the column's own kind.

Engines compare values of different types by casting one side. A literal is therefore placed among the values of the
column's kind: on one of them, or between two. Where an engine would cast the column instead, and that may round or
reorder (texts compared with numbers, decimals with floats), the comparison is not understood.

What is returned agrees with the real condition wherever that is TRUE or FALSE, so it may be negated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal

import numpy as np

from oreo_lakehouse.history.casts import as_date, as_time
from oreo_lakehouse.history.clock import Clock
from oreo_lakehouse.history.literal import Literal, NotUnderstood
from oreo_lakehouse.predicates.tree import FALSE, And, Compare, In, IsNull, Op, Predicate, Unknown
from oreo_lakehouse.predicates.values import Kind, Value

_CANONICAL_INTEGER = re.compile(r"0|-?[1-9]\d{0,17}")
_INEXACT = {Op.LT: Op.LE, Op.LE: Op.LE, Op.GT: Op.GT, Op.GE: Op.GT}
"""The comparison with the greatest value below a literal that lies between two values."""


def compare(column: str, kind: Kind, op: Op, literal: Literal, clock: Clock) -> Predicate:
    """`column op literal`.

    >>> compare("n", Kind.INTEGER, Op.LT, Literal(Kind.DECIMAL, Decimal("5.5"), Decimal("5.5")), Clock())
    Compare(column='n', op=<Op.LE: '<='>, kind=<Kind.INTEGER: 'integer'>, value=5)

    Raises:
        NotUnderstood: the comparison's meaning is not certain.
    """
    if literal.kind is None:
        return FALSE
    if kind is Kind.BOOLEAN and op not in (Op.EQ, Op.NE):
        raise NotUnderstood("an order of booleans")
    low, high, doubt = _place(kind, literal, clock)
    if low == high and not doubt:
        return _placed(column, kind, op, *low)
    unknown = Unknown(doubt)  # beside it, a condition holds wherever the real one does, but must not be negated
    above, below = _placed(column, kind, Op.GE, *low), _placed(column, kind, Op.LE, *high)
    match op:
        case Op.GT | Op.GE:
            return And((_placed(column, kind, op, *low), unknown))
        case Op.LT | Op.LE:
            return And((_placed(column, kind, op, *high), unknown))
        case Op.EQ:
            return And((above, below, unknown))
        case Op.NE:
            return And((IsNull(column, negated=True), unknown))


def contained(column: str, kind: Kind, literals: Iterable[Literal], clock: Clock, negate: bool = False) -> Predicate:
    """`column [NOT] IN (literals)`.

    Raises:
        NotUnderstood: the meaning is not certain.
    """
    given = list(literals)
    kinds = {literal.kind for literal in given} - {None}
    if len(kinds) > 1 and not kinds <= {Kind.INTEGER, Kind.DECIMAL}:
        raise NotUnderstood("IN with literals of several types")
    if Kind.STRING in kinds and kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
        raise NotUnderstood("a time IN texts")  # compared as texts without ANSI mode
    values: set[Value] = set()
    for literal in given:
        if literal.kind is not None:
            (value, exact), high, doubt = _place(kind, literal, clock)
            if doubt or high != (value, exact):
                raise NotUnderstood(doubt)
            if exact:
                values.add(value)
    if negate and any(literal.kind is None for literal in given):
        return FALSE  # x NOT IN (…, NULL) is FALSE or NULL, never TRUE
    if not values:
        return IsNull(column, negated=True) if negate else FALSE
    return In(column, kind, tuple(sorted(values)), negate)  # pyright: ignore[reportArgumentType]


def _placed(column: str, kind: Kind, op: Op, value: Value, exact: bool) -> Predicate:
    if exact:
        return Compare(column, op, kind, value)
    if op is Op.EQ:
        return FALSE
    return IsNull(column, negated=True) if op is Op.NE else Compare(column, _INEXACT[op], kind, value)


def _place(kind: Kind, literal: Literal, clock: Clock) -> tuple[tuple[Value, bool], tuple[Value, bool], str]:
    """For both ends of a literal: the greatest value of the column's kind not above it, and whether it is equal."""
    if kind is Kind.DATE:
        return _place_among_days(literal, clock)
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
        time = as_time(literal, kind, clock)
        return (time.low, True), (time.high, True), time.doubt
    placed = _place_plain(kind, literal)
    return placed, placed, ""


def _place_plain(kind: Kind, literal: Literal) -> tuple[Value, bool]:
    value = literal.low
    match kind, literal.kind:
        case (Kind.BOOLEAN, Kind.BOOLEAN) | (Kind.STRING, Kind.STRING) | (Kind.BINARY, Kind.BINARY):
            return value, True
        case Kind.INTEGER, Kind.INTEGER | Kind.DECIMAL | Kind.FLOAT | Kind.STRING:
            return _place_among_integers(value)
        case Kind.FLOAT, Kind.INTEGER | Kind.DECIMAL | Kind.FLOAT:
            return _as_float(value), True
        case Kind.DECIMAL, Kind.INTEGER | Kind.DECIMAL:
            assert isinstance(value, int | Decimal)
            number = Decimal(value)
            exponent = number.as_tuple().exponent
            # both sides must fit 38 digits, or engines round one: true of columns with up to 28 digits before the point
            if isinstance(exponent, int) and exponent >= -10 and number.adjusted() < 18:
                return number, True
        case _:
            pass
    raise NotUnderstood(f"a {kind.value} compared with a {literal.kind.value if literal.kind else 'null'}")


def _place_among_integers(value: Value) -> tuple[Value, bool]:
    if isinstance(value, str):
        if not _CANONICAL_INTEGER.fullmatch(value):
            raise NotUnderstood("an integer compared with a text")
        return int(value), True
    # engines cast the integers to double, which keeps their order around values below 2^53
    if isinstance(value, float) and not abs(value) < 1 << 53:
        raise NotUnderstood("an integer compared with a large or special float")
    assert isinstance(value, int | float | Decimal)
    below = math.floor(value)
    if not -(1 << 63) <= below < 1 << 63:
        raise NotUnderstood("a literal beyond 64 bits")
    return below, below == value


def _as_float(value: Value) -> float:
    assert isinstance(value, int | float | Decimal)
    number = float(value)
    if not math.isfinite(number):
        raise NotUnderstood("a comparison with NaN or infinity")
    # a narrow float column may be compared with the integer as a narrow float
    if isinstance(value, int) and float(np.float32(value)) != value:
        raise NotUnderstood("a float compared with a large integer")
    return number


def _place_among_days(literal: Literal, clock: Clock) -> tuple[tuple[Value, bool], tuple[Value, bool], str]:
    day = as_date(literal, clock)
    if literal.kind in (Kind.DATE, Kind.STRING):
        return (day.low, True), (day.high, True), day.doubt
    # the column is cast to a time: its midnights
    midnights = [as_time(Literal(Kind.DATE, d, d), literal.kind or Kind.TIMESTAMP, clock) for d in (day.low, day.high)]
    if day.doubt or any(m.doubt for m in midnights) or literal.low != literal.high:
        return (int(day.low) - 1, False), (int(day.high) + 1, True), day.doubt or literal.doubt or clock.doubt
    if int(literal.low) < int(midnights[0].low):  # the local day begins after a skipped midnight
        return (int(day.low) - 1, False), (int(day.low) - 1, False), ""
    placed = (day.low, literal.low == midnights[0].low)
    return placed, placed, ""
