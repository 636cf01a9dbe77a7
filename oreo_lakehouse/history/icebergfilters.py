"""The filters that an Iceberg scan took over from the plan, in Iceberg's JSON, as a parsed predicate."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from oreo_lakehouse.history.clock import parse_date, parse_wall
from oreo_lakehouse.history.literal import NotUnderstood
from oreo_lakehouse.history.sparktypes import kind_of_type
from oreo_lakehouse.predicates.tree import And, Compare, Constant, In, IsNull, Like, Not, Op, Or, Predicate, Unknown
from oreo_lakehouse.predicates.values import Kind, Value

_COMPARISONS = {"eq": Op.EQ, "not-eq": Op.NE, "lt": Op.LT, "lt-eq": Op.LE, "gt": Op.GT, "gt-eq": Op.GE}


def read_pushed(node: Any, types: Mapping[str, Any], depth: int = 0) -> Predicate:
    """The condition.

    >>> read_pushed({"type": "gt", "term": "d", "value": "2024-05-01"}, {"d": "date"})
    Compare(column='d', op=<Op.GT: '>'>, kind=<Kind.DATE: 'date'>, value=19844)
    """
    if isinstance(node, bool):
        return Constant(node)
    if not isinstance(node, dict) or depth > 200:
        return Unknown("a filter that Iceberg does not show")
    item = cast("dict[str, Any]", node)
    match item.get("type"):
        case "and" | "or" as kind:
            children = tuple(read_pushed(item.get(side), types, depth + 1) for side in ("left", "right"))
            return And(children) if kind == "and" else Or(children)
        case "not":
            return Not(read_pushed(item.get("child"), types, depth + 1))
        case "redacted":
            return Unknown(f"redacted: {item.get('term')} {item.get('value')}")
        case kind:
            try:
                return _leaf(str(kind), item, types)
            except NotUnderstood as reason:
                return Unknown(str(reason))
            except (ValueError, TypeError, InvalidOperation):
                return Unknown(f"Iceberg's {kind} of these arguments")


def _leaf(operation: str, item: Mapping[str, Any], types: Mapping[str, Any]) -> Predicate:
    name = item.get("term")
    if not isinstance(name, str) or name not in types:
        raise NotUnderstood("a filter on a nested or computed column")
    kind = kind_of_type(str(types[name]))
    if operation in ("is-null", "not-null"):
        return IsNull(name, negated=operation == "not-null")
    if operation in _COMPARISONS:
        return Compare(name, _COMPARISONS[operation], kind, _value(item["value"], kind))
    if operation in ("in", "not-in"):
        values = {_value(value, kind) for value in item["values"]}
        return In(name, kind, tuple(sorted(values)), operation == "not-in")  # pyright: ignore[reportArgumentType]
    if operation in ("starts-with", "not-starts-with") and kind is Kind.STRING:
        plain = "".join("\\" + c if c in "\\%_" else c for c in str(item["value"]))
        return Like(name, plain + "%", operation == "not-starts-with")
    raise NotUnderstood(f"Iceberg's {operation}")


def _value(value: Any, kind: Kind) -> Value:
    """Iceberg writes a literal in its own type's form, which may be a number or a text."""
    match kind, value:
        case (Kind.BOOLEAN, bool()) | (Kind.STRING, str()):
            return value
        case ((Kind.INTEGER | Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ), int()) if not isinstance(value, bool):
            return value
        case Kind.FLOAT, int() | float() if not isinstance(value, bool):
            return float(value)
        case Kind.DECIMAL, str():
            return Decimal(value)
        case Kind.DATE, str():
            return parse_date(value)
        case ((Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ), str()):
            wall, offset = parse_wall(value)
            if (offset is None) is (kind is Kind.TIMESTAMP_NTZ):
                return wall - (offset or 0)
        case _:
            pass
    raise NotUnderstood(f"Iceberg's literal of type {kind.value}")
