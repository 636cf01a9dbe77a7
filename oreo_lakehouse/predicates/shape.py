"""Shapes: predicates without their literals, by which queries of one template are told from those of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from oreo_lakehouse.predicates.like import like_as_ranges
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

Place: TypeAlias = tuple[str, Kind]
"""Whose literals: a column, and the kind they are of."""


@dataclass(frozen=True, slots=True)
class Test:
    """`column op literal`; the literal is the next slot, an array of codes."""

    op: Op
    place: Place


@dataclass(frozen=True, slots=True)
class Member:
    """`column [NOT] IN literals`; the next slot has one row of `width` codes a query, the last repeated as padding."""

    place: Place
    negated: bool
    width: int


@dataclass(frozen=True, slots=True)
class Junction:
    """AND or OR."""

    conjunction: bool
    children: tuple[Shape, ...]


Shape: TypeAlias = Constant | Test | Member | IsNull | CompareColumns | Junction


def signature(shape: Shape) -> frozenset[str]:
    """Which columns the shape speaks of, and how: from below, from above, or by value.

    >>> sorted(signature(Junction(True, (Test(Op.GE, ("day", Kind.DATE)), Test(Op.EQ, ("shop", Kind.STRING))))))
    ['day >', 'shop =']
    """
    match shape:
        case Test(op, place):
            return frozenset((f"{place[0]} {_SIDES.get(op, '=')}",))
        case Member(place):
            return frozenset((f"{place[0]} =",))
        case Junction(_, children):
            return frozenset[str]().union(*map(signature, children))
        case IsNull(column):
            return frozenset((f"{column} null",))
        case CompareColumns(left, _, right):
            return frozenset((f"{left} {right}",))
        case Constant():
            return frozenset()


_SIDES = {Op.LT: "<", Op.LE: "<", Op.GT: ">", Op.GE: ">"}


def comparisons(shape: Shape) -> frozenset[CompareColumns]:
    """The shape's comparisons between two columns."""
    match shape:
        case CompareColumns():
            return frozenset((shape,))
        case Junction(_, children):
            return frozenset[CompareColumns]().union(*map(comparisons, children))
        case _:
            return frozenset()


def places(shape: Shape) -> list[Place]:
    """Whose literal each slot of the shape holds, left to right."""
    match shape:
        case Test(_, place) | Member(place):
            return [place]
        case Junction(_, children):
            return [place for child in children for place in places(child)]
        case _:
            return []


def shape_of(node: Predicate, values: list[Any]) -> Shape:
    """The shape of a stored predicate; its literals are appended to `values`, a tuple for a list of them."""
    match node:
        case Compare(column, op, kind, value):
            if not _fits(kind, (value,)):
                return Constant(True)
            values.append(value)
            return Test(op, (column, kind))
        case In(column, kind, literals, negated):
            if not literals or not _fits(kind, literals):
                return Constant(True)
            width = 1 << (len(literals) - 1).bit_length()
            values.append(literals + literals[-1:] * (width - len(literals)))
            return Member((column, kind), negated, width)
        case Like():
            return shape_of(like_as_ranges(node), values)
        case And(children) | Or(children):
            return Junction(isinstance(node, And), tuple([shape_of(child, values) for child in children]))
        case Constant() | IsNull() | CompareColumns():
            return node
        case _:
            raise TypeError(f"{type(node).__name__} is not part of a stored predicate; relax it first")


_FORMS: dict[Kind, type | tuple[type, ...]] = {
    Kind.FLOAT: (float, int),
    Kind.BOOLEAN: (bool, int),
    Kind.STRING: str,
    Kind.BINARY: bytes,
    **dict.fromkeys((Kind.INTEGER, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ), int),
}


def _fits(kind: Kind, values: tuple[Value, ...]) -> bool:
    """Whether literals have their kind's array form; what has not is never compared, so it might match."""
    if kind is Kind.DECIMAL:
        return all(not isinstance(v, str | bytes | float) for v in values)
    form = _FORMS.get(kind)
    if form is None or not all(isinstance(v, form) for v in values):
        return False
    return form is not int or all(-(1 << 63) <= v < (1 << 63) for v in values if isinstance(v, int))
