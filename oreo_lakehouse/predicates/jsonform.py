"""Stored predicates as JSON and back, every literal with its kind.

    {"and": [{"compare": ["o_orderdate", "<", "date", 9131]}, {"in": ["o_status", false, "string", ["F", "O"]]}]}

Numbers that JSON cannot carry exactly travel as text (decimals, NaN and infinities), bytes as base64. Reading checks
everything: a document from a broken or foreign file is a `StoreError`, never a crash later on.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.predicates.relax import MAX_DEPTH
from oreo_lakehouse.predicates.tree import (
    And,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Like,
    Op,
    Or,
    Predicate,
)
from oreo_lakehouse.predicates.values import Kind, Value


def to_json(predicate: Predicate) -> dict[str, Any]:
    """The stored predicate as JSON values.

    >>> to_json(Compare("price", Op.GE, Kind.DECIMAL, Decimal("1.50")))
    {'compare': ['price', '>=', 'decimal', '1.50']}
    """
    match predicate:
        case Constant(value):
            return {"constant": value}
        case Compare(column, op, kind, value):
            return {"compare": [column, op.value, kind.value, value_to_json(kind, value)]}
        case In(column, kind, values, negated):
            return {"in": [column, negated, kind.value, [value_to_json(kind, v) for v in values]]}
        case IsNull(column, negated):
            return {"null": [column, negated]}
        case Like(column, pattern, negated):
            return {"like": [column, pattern, negated]}
        case CompareColumns(left, op, right):
            return {"columns": [left, op.value, right]}
        case And(children):
            return {"and": [to_json(child) for child in children]}
        case Or(children):
            return {"or": [to_json(child) for child in children]}
        case _:
            raise TypeError(f"{type(predicate).__name__} is not part of a stored predicate; relax it first")


def from_json(document: object) -> Predicate:
    """The predicate that `to_json` described.

    Raises:
        StoreError: the document is not one of ours.
    """
    return _read(document, 0)


def value_to_json(kind: Kind, value: Value) -> bool | int | float | str:
    """A literal of a known kind as a JSON value; `value_from_json` takes it back."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    if kind is Kind.FLOAT:
        return float(value) if abs(float(value)) < float("inf") else str(float(value))
    return value


def value_from_json(kind: Kind, value: object) -> Value:
    """A literal of a known kind, checked.

    Raises:
        StoreError: the value is not of that kind.
    """
    try:
        match kind, value:
            case Kind.BOOLEAN, bool():
                return value
            case ((Kind.INTEGER | Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ), int()) if not isinstance(
                value, bool
            ):
                return value
            case Kind.FLOAT, int() | float() | str() if not isinstance(value, bool):
                return float(value)
            case Kind.DECIMAL, str():
                number = Decimal(value)
                if number.is_finite():
                    return number
            case Kind.STRING, str():
                return value
            case Kind.BINARY, str():
                return base64.b64decode(value, validate=True)
            case _:
                pass
    except (ValueError, InvalidOperation, binascii.Error, OverflowError):
        pass
    raise StoreError(f"malformed predicate: a literal is not a {kind.value}")


def _read(document: object, depth: int) -> Predicate:
    if not isinstance(document, dict) or len(cast("dict[str, Any]", document)) != 1:
        raise StoreError(f"malformed predicate: expected an object with one key, found {_short(document)}")
    if depth > MAX_DEPTH + 1:
        raise StoreError(f"malformed predicate: nested deeper than {MAX_DEPTH}")
    ((tag, body),) = cast("dict[str, Any]", document).items()
    if tag == "constant" and isinstance(body, bool):
        return Constant(body)
    if tag in ("and", "or") and isinstance(body, list):
        children = tuple(_read(child, depth + 1) for child in cast("list[Any]", body))
        return And(children) if tag == "and" else Or(children)
    reader = _LEAVES.get(tag)
    if reader is None or not isinstance(body, list):
        raise StoreError(f"malformed predicate: {_short(cast('object', document))}")
    try:
        return reader(*cast("list[Any]", body))
    except (TypeError, ValueError) as error:
        raise StoreError(f"malformed predicate: {_short(cast('object', document))}") from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _compare(column: object, op: object, kind: object, value: object) -> Predicate:
    known = Kind(kind)
    return Compare(_text(column), Op(op), known, value_from_json(known, value))


def _in(column: object, negated: object, kind: object, values: list[object]) -> Predicate:
    known = Kind(kind)
    return In(_text(column), known, tuple(value_from_json(known, v) for v in values), _flag(negated))


_LEAVES: dict[str, Callable[..., Predicate]] = {
    "compare": _compare,
    "in": _in,
    "null": lambda column, negated: IsNull(_text(column), _flag(negated)),
    "like": lambda column, pattern, negated: Like(_text(column), _text(pattern), _flag(negated)),
    "columns": lambda left, op, right: CompareColumns(_text(left), Op(op), _text(right)),
}


def _short(document: object) -> str:
    """What it looks like, without literals: messages end in logs."""
    if not isinstance(document, dict):
        return f"a {type(document).__name__}"
    return f"an object with {', '.join(repr(key)[:20] for key in list(cast('dict[str, Any]', document))[:3])}"
