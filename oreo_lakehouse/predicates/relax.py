"""From the parsed form of a predicate to the stored one: weaker, never stronger, and free of what we do not understand.

The stored predicate must be implied by the real one. NOT is pushed to the leaves first (under SQL's three-valued logic
`NOT (a < 1)` is `a >= 1`, since both are NULL where `a` is); only then may a condition that we do not understand become
TRUE, because negating a weakened subtree would make it stronger.
"""

from __future__ import annotations

from dataclasses import replace

from oreo_lakehouse.predicates.tree import (
    FALSE,
    TRUE,
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

MAX_DEPTH = 100
"""Alternations of AND and OR that are kept; what lies deeper counts as not understood."""


def relax(parsed: Predicate) -> tuple[Predicate, tuple[str, ...]]:
    """The stored form of `parsed`, and the reasons why parts of it were dropped.

    An unknown conjunct becomes TRUE; an unknown disjunct makes the whole OR TRUE.

    >>> from oreo_lakehouse.predicates.values import Kind
    >>> a = Compare("a", Op.LT, Kind.INTEGER, 1)
    >>> relax(Not(Or((a, Unknown("a function")))))
    (Compare(column='a', op=<Op.GE: '>='>, kind=<Kind.INTEGER: 'integer'>, value=1), ('a function',))
    """
    reasons: dict[str, None] = {}
    stored = _relax(parsed, False, reasons, 0)
    return stored, tuple(reasons)


def _relax(node: Predicate, negate: bool, reasons: dict[str, None], depth: int) -> Predicate:
    while isinstance(node, Not):
        node, negate = node.child, not negate
    match node:
        case Unknown(reason):
            reasons[reason] = None
            return TRUE
        case And() | Or():
            if depth > MAX_DEPTH:
                reasons[f"nested deeper than {MAX_DEPTH}"] = None
                return TRUE
            conjunction = isinstance(node, And) is not negate
            return _join(conjunction, _operands(node, negate), reasons, depth)
        case Constant(value):
            return Constant(value is not negate)
        case Compare() | CompareColumns():
            return replace(node, op=node.op.negated) if negate else node
        case In():
            return _in(replace(node, negated=node.negated is not negate))
        case IsNull() | Like():
            return replace(node, negated=node.negated is not negate)


def _operands(node: And | Or, negate: bool) -> list[tuple[Predicate, bool]]:
    """The operands of a chain of one connective, however deeply a parser nested it, each with its polarity."""
    conjunction = isinstance(node, And) is not negate
    out: list[tuple[Predicate, bool]] = []
    todo: list[tuple[Predicate, bool]] = [(node, negate)]
    while todo:
        item, flipped = todo.pop()
        while isinstance(item, Not):
            item, flipped = item.child, not flipped
        if isinstance(item, And | Or) and (isinstance(item, And) is not flipped) is conjunction:
            todo += [(child, flipped) for child in reversed(item.children)]
        else:
            out.append((item, flipped))
    return out


def _join(conjunction: bool, operands: list[tuple[Predicate, bool]], reasons: dict[str, None], depth: int) -> Predicate:
    neutral, absorbing = (TRUE, FALSE) if conjunction else (FALSE, TRUE)
    connective = And if conjunction else Or
    kept: dict[Predicate, None] = {}
    for operand, flipped in operands:
        relaxed = _relax(operand, flipped, reasons, depth + 1)
        if relaxed == absorbing:
            return absorbing
        if isinstance(relaxed, connective):
            kept |= dict.fromkeys(relaxed.children)
        elif relaxed != neutral:
            kept[relaxed] = None
    if not kept:
        return neutral
    return next(iter(kept)) if len(kept) == 1 else connective(tuple(kept))


def _in(node: In) -> Predicate:
    if not node.values:
        return Constant(node.negated)
    if len(node.values) == 1:
        return Compare(node.column, Op.NE if node.negated else Op.EQ, node.kind, node.values[0])
    return node
