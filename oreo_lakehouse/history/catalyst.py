"""What Spark's own planner says about a scan, as a parsed predicate.

The JVM side (`java/Json.java`) writes Catalyst's optimised filters as JSON, types included; Iceberg's scan adds the
filters that it took over from the plan, in Iceberg's JSON. Both are read on the Python side, so that one place decides
what is understood. By then Spark has made all casts explicit: a comparison is understood only if a column stands
directly beside a literal of its own type.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, cast

import numpy as np

from oreo_lakehouse.history.exactness import FOREIGN
from oreo_lakehouse.history.icebergfilters import read_pushed
from oreo_lakehouse.history.literal import NotUnderstood
from oreo_lakehouse.history.sparktypes import kind_of_type
from oreo_lakehouse.predicates.tree import (
    FALSE,
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
    Unknown,
)
from oreo_lakehouse.predicates.values import Kind, Value

Json = Sequence[Any]


def read_filters(document: Mapping[str, Any]) -> Predicate:
    """The parsed predicate of a scan that the JVM side described.

    Raises:
        ValueError: the description is malformed.
    """
    parts = [_expression(item, 0) for item in _list(document.get("filters", []))]
    types = cast("dict[str, Any]", document.get("types", {}))
    parts += [read_pushed(item, types) for item in _list(document.get("pushed", []))]
    parts += [Unknown(str(reason)) for reason in _list(document.get("lost", []))]
    return And(tuple(parts))


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("a scan's filters must be a list")
    return cast("list[Any]", value)


_COMPARISONS = {
    "EqualTo": Op.EQ,
    "LessThan": Op.LT,
    "LessThanOrEqual": Op.LE,
    "GreaterThan": Op.GT,
    "GreaterThanOrEqual": Op.GE,
}


def _expression(node: Any, depth: int) -> Predicate:
    items = _list(node)
    if depth > 200 or not items:
        return Unknown("nested too deeply")
    kind, *parts = items
    if kind in ("And", "Or", "Not"):
        children = tuple(_expression(part, depth + 1) for part in parts)
        return Not(children[0]) if kind == "Not" else And(children) if kind == "And" else Or(children)
    try:
        return _leaf(str(kind), parts)
    except NotUnderstood as reason:
        return Unknown(str(reason))
    except (IndexError, TypeError, ValueError, InvalidOperation, binascii.Error):
        return Unknown(f"{kind} of these arguments")


def _leaf(kind: str, parts: Json) -> Predicate:
    if kind in _COMPARISONS:
        return _compare(_COMPARISONS[kind], *parts)
    if kind == "EqualNullSafe":
        return _same(*parts)
    if kind in ("IsNull", "IsNotNull"):
        return IsNull(_column(parts[0])[0], negated=kind == "IsNotNull")
    if kind == "In":
        return _in(parts[0], [(_literal(item)) for item in parts[1:]])
    if kind == "InSet":
        values, type_name, column = parts
        return _in(column, [_value(value, str(type_name)) for value in _list(values)])
    if kind in ("StartsWith", "EndsWith", "Contains"):
        text = str(_literal(parts[1], Kind.STRING))
        plain = "".join("\\" + c if c in "\\%_" else c for c in text)
        before, after = "" if kind == "StartsWith" else "%", "" if kind == "EndsWith" else "%"
        return Like(_column(parts[0], Kind.STRING), before + plain + after)
    if kind == "Like" and parts[0] == "\\":
        return Like(_column(parts[1], Kind.STRING), str(_literal(parts[2], Kind.STRING)))
    if kind == "literal":
        value = parts[0]
        return Constant(value == "true") if value is not None else FALSE
    if kind == "column":
        return Compare(_column(["column", *parts], Kind.BOOLEAN), Op.EQ, Kind.BOOLEAN, True)
    if kind == "redacted":
        raise NotUnderstood(f"redacted: {parts[0]} {parts[1]}")
    if kind.startswith("DynamicPruning"):
        raise NotUnderstood(FOREIGN)
    raise NotUnderstood(f"{kind} as a condition")


def _column(node: Any, wanted: Kind | None = None) -> Any:
    """A column's (name, kind), or just its name where the kind is given."""
    if node[0] != "column":
        raise NotUnderstood(f"{node[0]} of a column" if "column" in str(node) else f"{node[0]} of a constant")
    name, kind = node[1], kind_of_type(node[2])
    if name is None:
        raise NotUnderstood(FOREIGN)
    if kind is Kind.OTHER or (wanted is not None and kind is not wanted):
        raise NotUnderstood(f"a column of type {str(node[2])[:40]}")
    return (name, kind) if wanted is None else name


def _literal(node: Any, wanted: Kind | None = None) -> Value | None:
    if node[0] != "literal":
        raise NotUnderstood(f"{node[0]} in place of a constant")
    if wanted is not None and kind_of_type(node[2]) is not wanted:
        raise NotUnderstood(f"a constant of type {str(node[2])[:40]}")
    return _value(node[1], str(node[2]))


def _value(text: Any, type_name: str) -> Value | None:
    kind = kind_of_type(type_name)
    if text is None:
        return None
    match kind:
        case Kind.BOOLEAN:
            return text == "true"
        case Kind.INTEGER | Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ:
            return int(text)
        case Kind.FLOAT:
            number = float(np.float32(text)) if type_name == "float" else float(text)
            if not np.isfinite(number):
                raise NotUnderstood("a comparison with NaN or infinity")
            return number
        case Kind.DECIMAL:
            return Decimal(text)
        case Kind.STRING:
            return str(text)
        case Kind.BINARY:
            return base64.b64decode(text, validate=True)
        case _:
            raise NotUnderstood(f"a constant of type {type_name[:40]}")


def _compare(op: Op, left: Any, right: Any) -> Predicate:
    if left[0] == "literal":
        left, right, op = right, left, op.mirrored
    if right[0] != "literal":
        (name, kind), (other, other_kind) = _column(left), _column(right)
        if left[2] != right[2]:
            raise NotUnderstood(f"a comparison of {kind.value} with {other_kind.value}")
        return CompareColumns(name, op, other)
    name, kind = _column(left)
    if left[2] != right[2]:
        raise NotUnderstood(f"a comparison of {left[2]} with {right[2]}")
    value = _literal(right)
    return FALSE if value is None else Compare(name, op, kind, value)


def _same(left: Any, right: Any) -> Predicate:
    if left[0] == "literal":
        left, right = right, left
    name, _ = _column(left)
    if right[0] != "literal":
        other, _ = _column(right)
        equal = And((IsNull(name, negated=True), IsNull(other, negated=True), _compare(Op.EQ, left, right)))
        return Or((And((IsNull(name), IsNull(other))), equal))
    if right[1] is None:
        return IsNull(name)
    return And((IsNull(name, negated=True), _compare(Op.EQ, left, right)))


def _in(column: Any, values: Sequence[Value | None]) -> Predicate:
    name, kind = _column(column)
    present = {value for value in values if value is not None}
    found = In(name, kind, tuple(sorted(present))) if present else FALSE  # pyright: ignore[reportArgumentType]
    return And((found, Unknown("NULL in a list"))) if None in values else found  # with NULL it is never FALSE
