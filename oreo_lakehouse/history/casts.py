"""Casts of literals, where every engine and mode agrees on the result; anything that may round or fail is refused."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
from sqlglot import exp

from oreo_lakehouse.history.clock import DAY_US, Clock, parse_date, parse_wall
from oreo_lakehouse.history.literal import NULL, Literal, NotUnderstood, certain
from oreo_lakehouse.predicates.values import Kind

_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TIMES = {
    "TIMESTAMPTZ": Kind.TIMESTAMP,
    "TIMESTAMPLTZ": Kind.TIMESTAMP,
    "TIMESTAMP": Kind.TIMESTAMP_NTZ,
    "TIMESTAMPNTZ": Kind.TIMESTAMP_NTZ,
}
"""By sqlglot's names: it reads Spark's TIMESTAMP as TIMESTAMPTZ, and Trino's as TIMESTAMP."""


def cast(value: Literal, to: exp.DataType, clock: Clock) -> Literal:
    """The literal as another type.

    Raises:
        NotUnderstood: the result is not certain.
    """
    name = str(getattr(to.this, "name", to.this))
    sizes = [int(size.name) for size in to.expressions if size.name.isdigit()]
    if value.kind is None:
        return NULL
    if name == "DATE":
        return as_date(value, clock)
    if name in _TIMES:
        if sizes and isinstance(value.low, str) and "." in value.low:
            raise NotUnderstood("a cast that may round a time")
        return as_time(value, _TIMES[name], clock)
    if (name == "TEXT" and value.kind is Kind.STRING) or (name == "BOOLEAN" and value.kind is Kind.BOOLEAN):
        return value
    return _as_number(value, name, sizes)


def as_date(value: Literal, clock: Clock) -> Literal:
    """A date, or a text or time cast to one."""
    if value.kind is Kind.STRING:
        return certain(Kind.DATE, parse_date(str(value.low)))
    if value.kind is Kind.TIMESTAMP_NTZ:
        return value.shifted(lambda micros: micros // DAY_US, Kind.DATE)
    if value.kind is Kind.TIMESTAMP:
        low, high = clock.day(int(value.low))[0], clock.day(int(value.high))[1]
        return Literal(Kind.DATE, low, high, (value.doubt or clock.doubt) if low != high else "")
    if value.kind is not Kind.DATE:
        raise NotUnderstood("a cast to date")
    return value


def as_time(value: Literal, kind: Kind, clock: Clock) -> Literal:
    """A time of the wanted kind from a time, a date (its midnight) or a text."""
    if value.kind is Kind.STRING:
        wall, offset = parse_wall(str(value.low))
        if offset is not None:
            if kind is Kind.TIMESTAMP_NTZ:
                raise NotUnderstood("a time with a zone for a column without")
            return certain(kind, wall - offset)
        value = certain(Kind.TIMESTAMP_NTZ, wall)
    elif value.kind is Kind.DATE:
        value = value.shifted(lambda day: day * DAY_US, Kind.TIMESTAMP_NTZ)
    if value.kind is kind:
        return value
    if value.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
        raise NotUnderstood("a cast to a time")
    convert = clock.instant if value.kind is Kind.TIMESTAMP_NTZ else clock.wall
    low, high = convert(int(value.low))[0], convert(int(value.high))[1]
    return Literal(kind, low, high, (value.doubt or clock.doubt) if low != high else "")


def _as_number(value: Literal, name: str, sizes: list[int]) -> Literal:
    plain = value.low
    if isinstance(plain, str) and re.fullmatch(r"-?\d{1,38}(\.\d{1,38})?", plain):
        plain = Decimal(plain) if "." in plain else int(plain)
    if isinstance(plain, int | Decimal | float) and value.kind not in (Kind.BOOLEAN, Kind.DATE, *_TIMES.values()):
        if name in _INTEGERS and isinstance(plain, int) and -(1 << 63) <= plain << 64 - _INTEGERS[name] < 1 << 63:
            return certain(Kind.INTEGER, plain)
        if name == "DECIMAL" and not isinstance(plain, float):
            return certain(Kind.DECIMAL, _fitting(Decimal(plain), *(sizes or [10, 0])))
        if name == "DOUBLE" or (name == "FLOAT" and float(np.float32(plain)) == plain):
            return certain(Kind.FLOAT, float(plain))
    raise NotUnderstood(f"a cast to {name.lower()}")


def _fitting(value: Decimal, precision: int, scale: int = 0) -> Decimal:
    parts = value.as_tuple()
    assert isinstance(parts.exponent, int)
    if -parts.exponent > scale or len(parts.digits) + parts.exponent > precision - scale:
        raise NotUnderstood("a cast that may round a decimal")
    return value
