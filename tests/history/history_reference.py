"""A plain evaluator of predicates on single rows under SQL's three-valued logic, against which the tests judge."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from typing import Any

from oreo_lakehouse.predicates.tree import (
    And,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Op,
    Or,
    Predicate,
)

Row = Mapping[str, Any]
_FUNCTIONS = {
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.EQ: operator.eq,
    Op.GE: operator.ge,
    Op.GT: operator.gt,
    Op.NE: operator.ne,
}


def evaluate(predicate: Predicate, row: Row) -> bool | None:
    """TRUE, FALSE or (None) NULL."""
    match predicate:
        case Constant(value):
            return value
        case IsNull(column, negated):
            return (row[column] is None) is not negated
        case Not(child):
            value = evaluate(child, row)
            return None if value is None else not value
        case And(children):
            values = [evaluate(child, row) for child in children]
            return False if False in values else None if None in values else True
        case Or(children):
            values = [evaluate(child, row) for child in children]
            return True if True in values else None if None in values else False
        case Compare(column, op, _, value):
            return None if row[column] is None else _FUNCTIONS[op](_ordered(row[column]), _ordered(value))
        case CompareColumns(left, op, right):
            pair = row[left], row[right]
            return None if None in pair else _FUNCTIONS[op](*map(_ordered, pair))
        case In(column, _, values, negated):
            return None if row[column] is None else (row[column] in values) is not negated
        case Like(column, pattern, negated):
            return None if row[column] is None else like(row[column], pattern) is not negated
        case _:
            raise AssertionError(predicate)


def _ordered(value: Any) -> Any:
    """NaN is above every number and equal to itself, as Spark has it."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def like(text: str, pattern: str) -> bool:
    """SQL's LIKE with a backslash as escape."""
    out: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            out.append(re.escape(next(characters)))
        else:
            out.append({"%": ".*", "_": "."}.get(character, re.escape(character)))
    return re.fullmatch("".join(out), text, re.DOTALL) is not None
