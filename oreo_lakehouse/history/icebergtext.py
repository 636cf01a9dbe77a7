"""Filters as an Iceberg scan prints them in a plan: SQL, but with quotes that are not escaped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from oreo_lakehouse.history.conditions import Conditions
from oreo_lakehouse.history.constants import Session
from oreo_lakehouse.history.literal import NotUnderstood
from oreo_lakehouse.history.plantext import DOUBT
from oreo_lakehouse.predicates.tree import TRUE, And, Compare, In, Not, Or, Predicate
from oreo_lakehouse.predicates.values import Kind


def read_iceberg_filters(text: str, schema: Mapping[str, Kind]) -> Predicate:
    """The parsed predicate behind the filters that an Iceberg scan prints: SQL, but with quotes that are not escaped,
    and with dates and times as numbers.

    >>> read_iceberg_filters("d >= 19754", {"d": Kind.DATE})
    And(children=(Compare(column='d', op=<Op.GE: '>='>, kind=<Kind.DATE: 'date'>, value=19754),))
    """
    if not text:
        return TRUE
    if "'" in text or '"' in text or "`" in text:
        return DOUBT
    names = {name.lower(): name for name in schema}
    times = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)
    numbers = {name: Kind.INTEGER if kind in times else kind for name, kind in schema.items()}

    def resolve(column: exp.Column) -> str:
        if column.name.lower() not in names or len(column.parts) > 1:
            raise NotUnderstood("a filter on a nested column")
        return names[column.name.lower()]

    try:
        tree = parse_one(f"SELECT {text}", dialect="spark")
        reader = Conditions(numbers, resolve, Session(), "")
        found = And(tuple(reader.read(item) for item in tree.expressions))
    except (SqlglotError, RecursionError):
        return DOUBT
    return _typed(found, schema)


def _typed(predicate: Predicate, schema: Mapping[str, Kind]) -> Predicate:
    match predicate:
        case And(children):
            return And(tuple(_typed(child, schema) for child in children))
        case Or(children):
            return Or(tuple(_typed(child, schema) for child in children))
        case Not(child):
            return Not(_typed(child, schema))
        case Compare(column) | In(column):
            return replace(predicate, kind=schema[column])
        case _:
            return predicate
