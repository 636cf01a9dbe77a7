"""Stored predicates as Spark SQL text that means the same in every session.

A literal never depends on a session setting: no escapes in strings (`spark.sql.parser.escapedStringLiterals`), no time
zone in timestamps, no sign or suffix that a parser could overflow on. Anything but the plainest text travels as bytes.
"""

from __future__ import annotations

import re
from decimal import Decimal

from oreo_lakehouse.predicates.tree import (
    And,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Like,
    Or,
    Predicate,
)
from oreo_lakehouse.predicates.values import Kind, Value

_PLAIN = re.compile(r"[A-Za-z0-9 _.:,;/+#@()&*-]*")


def quoted(name: str) -> str:
    """A column name in backticks.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"


def literal(kind: Kind, value: Value) -> str:
    """A value as an expression of its column's type.

    >>> literal(Kind.STRING, "it's"), literal(Kind.TIMESTAMP, -1)
    ("CAST(X'69742773' AS STRING)", "timestamp_micros(CAST('-1' AS BIGINT))")
    """
    match kind:
        case Kind.BOOLEAN:
            return "TRUE" if value else "FALSE"
        case Kind.INTEGER:
            return f"CAST('{value}' AS BIGINT)"
        case Kind.FLOAT:
            return f"CAST('{_double(float(value))}' AS DOUBLE)"
        case Kind.DECIMAL:
            return _decimal(Decimal(value) if isinstance(value, int) else value)
        case Kind.STRING:
            return _string(str(value))
        case Kind.BINARY:
            return f"X'{value.hex().upper()}'" if isinstance(value, bytes) else "NULL"
        case Kind.DATE:
            return f"date_from_unix_date(CAST('{value}' AS INT))"
        case Kind.TIMESTAMP:
            return f"timestamp_micros(CAST('{value}' AS BIGINT))"
        case Kind.TIMESTAMP_NTZ:
            return _wall_clock(value)
        case Kind.OTHER:
            return "NULL"


def predicate_sql(predicate: Predicate) -> str:
    """A stored predicate as a condition; where it is TRUE, `rowtest.holds` says so too.

    >>> from oreo_lakehouse.predicates.tree import Op
    >>> predicate_sql(Or((IsNull("a"), Compare("b", Op.LT, Kind.STRING, "x"))))
    "(`a` IS NULL OR `b` < 'x')"
    """
    match predicate:
        case Constant(value):
            return "TRUE" if value else "FALSE"
        case Compare(column, op, kind, value):
            return f"{quoted(column)} {op.value} {literal(kind, value)}"
        case In(column, kind, values, negated):
            listed = ", ".join(literal(kind, v) for v in values)
            return f"{quoted(column)} {'NOT ' if negated else ''}IN ({listed})"
        case IsNull(column, negated):
            return f"{quoted(column)} IS {'NOT ' if negated else ''}NULL"
        case Like(column, pattern, negated):
            return f"{quoted(column)} {'NOT ' if negated else ''}LIKE {_string(pattern)}"
        case CompareColumns(left, op, right):
            return f"{quoted(left)} {op.value} {quoted(right)}"
        case And(children):
            return f"({' AND '.join(map(predicate_sql, children))})"
        case Or(children):
            return f"({' OR '.join(map(predicate_sql, children))})"
        case _:
            raise TypeError(f"{type(predicate).__name__} is not part of a stored predicate; relax it first")


def _string(text: str) -> str:
    return f"'{text}'" if _PLAIN.fullmatch(text) else f"CAST(X'{text.encode().hex().upper()}' AS STRING)"


def _double(value: float) -> str:
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(repr(value), repr(value))


def _decimal(value: Value) -> str:
    number = value if isinstance(value, Decimal) else Decimal(str(value))
    sign_and_digits, scale = number.as_tuple(), max(0, -int(number.as_tuple().exponent))
    precision = max(len(sign_and_digits.digits) + max(0, int(sign_and_digits.exponent)), scale, 1)
    return f"CAST('{number:f}' AS DECIMAL({min(precision, 38)},{min(scale, 38)}))"


def _wall_clock(value: Value) -> str:
    """As a distance from the epoch: there is no function for it, and a literal's text ends with the year 9999."""
    seconds, micros = divmod(int(value), 1_000_000)
    days, seconds = divmod(seconds, 86_400)
    return f"TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval({days}, 0, 0, {seconds}.{micros:06d})"
