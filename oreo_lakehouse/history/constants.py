"""Constant expressions of SQL as literals: `date '2024-01-31' + interval 1 month`, `-5`, `current_date()`.

Only what is certain is folded; everything else raises `NotUnderstood`, and the condition that holds it becomes unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sqlglot import exp

from oreo_lakehouse.history.casts import as_date, cast
from oreo_lakehouse.history.clock import DAY_US, Clock, add_months, check_day
from oreo_lakehouse.history.literal import NULL, Interval, Literal, NotUnderstood, certain
from oreo_lakehouse.predicates.values import Kind

NOW_SLACK_US = 3_600_000_000
"""How long after its recorded start a query may have fixed its `current_timestamp`."""


@dataclass(frozen=True)
class Session:
    """What the meaning of a statement's constants depends on besides their text."""

    clock: Clock = field(default_factory=Clock)
    now_us: int | None = None
    """When the query started, UTC: `current_date()` means that day."""
    texts: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())
    """The texts of literals for which a cached syntax tree holds placeholders."""


def only(node: exp.Expr, *names: str) -> None:
    """Refuse a node that says more than we look at."""
    for name, value in node.args.items():
        if name not in names and value not in (None, False, []):
            raise NotUnderstood(f"{node.key} with {name}")


def fold(node: exp.Expr, session: Session) -> Literal | Interval:
    """The value of a constant expression.

    >>> from sqlglot import parse_one
    >>> fold(parse_one("date '2024-01-31' + interval 1 month", dialect="spark"), Session())
    Literal(kind=<Kind.DATE: 'date'>, low=19782, high=19782, doubt='')

    Raises:
        NotUnderstood: it is not constant, or its value depends on what we do not know.
    """
    folder = _FOLDERS.get(type(node))
    if folder is None:
        raise NotUnderstood(f"{node.key} in place of a constant")
    return folder(node, session)


def literal(node: exp.Expr, session: Session) -> Literal:
    """`fold`, where a span of time makes no sense."""
    value = fold(node, session)
    if isinstance(value, Interval):
        raise NotUnderstood("an interval in place of a value")
    return value


def _literal(node: exp.Literal, session: Session) -> Literal:
    text = session.texts.get(node.this, node.this)
    if "\0" in text:
        raise NotUnderstood("a text with an unusual escape")
    if node.is_string:
        return certain(Kind.STRING, text)
    if re.fullmatch(r"\d{1,38}", text):
        return certain(Kind.INTEGER, int(text))
    if re.fullmatch(r"\d{0,38}\.\d{0,38}", text) and text != ".":
        return certain(Kind.DECIMAL, Decimal(text))
    if re.fullmatch(r"(\d{1,38}\.?\d{0,38}|\.\d{1,38})[eE][+-]?\d{1,3}", text):
        return certain(Kind.FLOAT, float(text))
    raise NotUnderstood("a number in an unusual form")


def _negative(node: exp.Neg, session: Session) -> Literal | Interval:
    value = fold(node.this, session)
    if isinstance(value, Interval):
        return value * -1
    match value.kind, value.low:
        case (Kind.INTEGER | Kind.DECIMAL | Kind.FLOAT) as kind, (int() | Decimal() | float()) as number:
            return certain(kind, -number)
        case _:
            pass
    raise NotUnderstood("minus in front of a value that is no number")


def _arithmetic(node: exp.Binary, session: Session) -> Literal:
    left, right = fold(node.this, session), fold(node.expression, session)
    sign = -1 if isinstance(node, exp.Sub) else 1
    if isinstance(left, Interval) and isinstance(node, exp.Add):
        left, right = right, left
    if isinstance(left, Interval) or (isinstance(right, Interval) and isinstance(node, exp.Mul)):
        raise NotUnderstood("arithmetic of intervals")
    if isinstance(right, Interval):
        return _moved(left, right * sign, session.clock)
    if left.kind is None or right.kind is None:
        return NULL
    a, b = left.low, right.low
    if left.kind is Kind.DATE and right.kind is Kind.INTEGER and not isinstance(node, exp.Mul):
        return _moved(left, Interval(days=int(b)) * sign, session.clock)
    if {left.kind, right.kind} <= {Kind.INTEGER, Kind.DECIMAL}:
        assert isinstance(a, int | Decimal)
        assert isinstance(b, int | Decimal)
        x, y = Decimal(a), Decimal(b)
        value = x * y if isinstance(node, exp.Mul) else x + y * sign
        # 18 digits are what every engine computes exactly; beyond, each overflows or rounds in its own way
        if max(map(_digits, (x, y, value))) <= 18:
            kind = Kind.DECIMAL if Kind.DECIMAL in (left.kind, right.kind) else Kind.INTEGER
            return certain(kind, value if kind is Kind.DECIMAL else int(value))
    raise NotUnderstood(f"arithmetic of {left.kind.value} and {right.kind.value}")


def _digits(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return len(number.as_tuple().digits) + (abs(exponent) if isinstance(exponent, int) else 99)


def _moved(start: Literal, span: Interval, clock: Clock) -> Literal:
    """A date or time moved by a span."""
    if start.kind is Kind.DATE and not span.micros:
        return start.shifted(lambda day: check_day(add_months(day, span.months) + span.days))
    if start.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
        raise NotUnderstood("an interval added to something that is no time")
    if span.months or (span.days and start.kind is Kind.TIMESTAMP and not clock.fixed):
        raise NotUnderstood("calendar arithmetic on a time")  # engines differ where the clocks change
    return start.shifted(lambda micros: micros + span.days * DAY_US + span.micros)


_UNITS = {
    "YEAR": Interval(months=12),
    "MONTH": Interval(months=1),
    "WEEK": Interval(days=7),
    "DAY": Interval(days=1),
    "HOUR": Interval(micros=3_600_000_000),
    "MINUTE": Interval(micros=60_000_000),
    "SECOND": Interval(micros=1_000_000),
}


def _unit(name: str) -> Interval:
    unit = _UNITS.get(name.upper()) or _UNITS.get(name.upper().removesuffix("S"))
    if unit is None:
        raise NotUnderstood(f"an interval in {name[:20]}")
    return unit


def _interval(node: exp.Interval, session: Session) -> Interval:
    """`interval 3 months`, `interval '3' month`, `interval '3 months'`."""
    only(node, "this", "unit")
    unit, amount = node.args.get("unit"), node.this
    sign = -1 if isinstance(amount, exp.Neg) else 1
    amount = amount.this if isinstance(amount, exp.Neg) else amount
    text = session.texts.get(amount.this, amount.this) if isinstance(amount, exp.Literal) else ""
    parts = re.fullmatch(r"\s*([+-]?\d{1,6})(?:\s+([A-Za-z]+))?\s*", text)
    name = unit.name if isinstance(unit, exp.Var) else ""
    if parts is None or bool(parts[2]) is bool(name):
        raise NotUnderstood("an interval of several parts")
    return _unit(parts[2] or name) * (sign * int(parts[1]))


def _date_function(node: exp.Expr, session: Session) -> Literal:
    """`date_add(d, n)`, `date_sub(d, n)`, `add_months(d, n)`."""
    only(node, "this", "expression", "unit")
    start, amount = literal(node.this, session), literal(node.expression, session)
    if amount.kind is not Kind.INTEGER or start.kind not in (Kind.DATE, Kind.STRING):
        raise NotUnderstood(f"{node.key} of these arguments")
    unit = _unit("MONTH" if isinstance(node, exp.AddMonths) else str(node.args.get("unit") or "DAY"))
    span = unit * (int(amount.low) * (-1 if isinstance(node, exp.DateSub) else 1))
    return _moved(as_date(start, session.clock), span, session.clock)


def _now(node: exp.Expr, session: Session) -> Literal:
    only(node)
    if session.now_us is None:
        raise NotUnderstood("the current time, in a query without a start time")
    now = Literal(Kind.TIMESTAMP, session.now_us, session.now_us + NOW_SLACK_US, "the exact current time")
    return as_date(now, session.clock) if isinstance(node, exp.CurrentDate) else now


def _function(node: exp.Anonymous, session: Session) -> Literal:
    if str(node.this).lower() == "now" and not node.expressions:
        return _now(exp.CurrentTimestamp(), session)
    raise NotUnderstood(f"the function {str(node.this)[:40]}")


def _cast(node: exp.Cast, session: Session) -> Literal:
    only(node, "this", "to", "safe")
    return cast(literal(node.this, session), node.to, session.clock)


def _to_date(node: exp.TsOrDsToDate, session: Session) -> Literal:
    only(node, "this", "safe")
    return as_date(literal(node.this, session), session.clock)


def _binary(node: exp.HexString, _session: Session) -> Literal:
    only(node, "this")
    try:
        return certain(Kind.BINARY, bytes.fromhex(node.this))
    except ValueError:
        raise NotUnderstood("a malformed binary literal") from None


_FOLDERS: dict[type[exp.Expr], Callable[[Any, Session], Literal | Interval]] = {
    exp.Literal: _literal,
    exp.Null: lambda _node, _session: NULL,
    exp.Boolean: lambda node, _session: certain(Kind.BOOLEAN, bool(node.this)),
    exp.Paren: lambda node, session: fold(node.this, session),
    exp.Neg: _negative,
    exp.Add: _arithmetic,
    exp.Sub: _arithmetic,
    exp.Mul: _arithmetic,
    exp.Interval: _interval,
    exp.TsOrDsAdd: _date_function,
    exp.DateAdd: _date_function,
    exp.DateSub: _date_function,
    exp.AddMonths: _date_function,
    exp.TsOrDsToDate: _to_date,
    exp.CurrentDate: _now,
    exp.CurrentTimestamp: _now,
    exp.Anonymous: _function,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.HexString: _binary,
}
