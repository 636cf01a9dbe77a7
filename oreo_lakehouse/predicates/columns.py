"""Which columns a predicate speaks of."""

from __future__ import annotations

from oreo_lakehouse.predicates.tree import And, CompareColumns, Constant, Not, Or, Predicate, Unknown


def columns_of(predicate: Predicate) -> frozenset[str]:
    """The predicate's columns: its signature, by which the change detector tells one kind of query from another.

    >>> from oreo_lakehouse.predicates.tree import IsNull, Op
    >>> sorted(columns_of(And((IsNull("b"), CompareColumns("a", Op.LT, "c")))))
    ['a', 'b', 'c']
    """
    match predicate:
        case And(children) | Or(children):
            return frozenset[str]().union(*map(columns_of, children))
        case Not(child):
            return columns_of(child)
        case CompareColumns(left, _, right):
            return frozenset((left, right))
        case Constant() | Unknown():
            return frozenset()
        case _:
            return frozenset((predicate.column,))
