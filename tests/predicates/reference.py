"""A slow, plain evaluator of predicates under SQL's three-valued logic, and random predicates to try it on."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from hypothesis import strategies as st

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
    Unknown,
)
from oreo_lakehouse.predicates.values import Kind

KINDS = {
    "i": Kind.INTEGER,
    "j": Kind.INTEGER,
    "f": Kind.FLOAT,
    "s": Kind.STRING,
    "d": Kind.DECIMAL,
    "b": Kind.BOOLEAN,
    "t": Kind.DATE,
}
POOL = {
    Kind.INTEGER: list(range(-3, 7)),
    Kind.FLOAT: [-math.inf, -1.5, -0.0, 0.0, 0.5, 2.0, math.inf, math.nan],
    Kind.STRING: ["", "a", "ab", "abc", "abd", "b", "b%", "ba", "é", "\U0010ffff", "z'\\"],
    Kind.DECIMAL: [Decimal(x) for x in ("-1.50", "0", "0.10", "2", "2.00", "7.25")],
    Kind.BOOLEAN: [False, True],
    Kind.DATE: list(range(-2, 6)),
}
VALUES = {kind: st.sampled_from(pool) for kind, pool in POOL.items()}
LIKES = ["", "a%", "ab%", "ab", "%b", "a_", "a%c", "b\\%", "b\\%%", "\U0010ffff%", "%", "_%"]
PATTERNS = st.sampled_from(LIKES)
OPS = st.sampled_from(list(Op))


def random_rows(random, count):
    def cell(kind):
        return None if random.random() < 0.25 else random.choice(POOL[kind])

    return [{name: cell(kind) for name, kind in KINDS.items()} for _ in range(count)]


def random_predicate(random, depth=3):
    """Nested AND, OR and NOT over every kind of leaf."""
    if depth and random.random() < 0.6:
        children = tuple(random_predicate(random, depth - 1) for _ in range(random.randint(1, 3)))
        return random.choice([And(children), Or(children), Not(children[0])])
    column = random.choice(sorted(KINDS))
    kind = KINDS[column]
    values = _sorted_set(random.choices(POOL[kind], k=random.randint(1, 20)))
    flag = random.random() < 0.5
    return random.choice(
        [
            Compare(column, random.choice(list(Op)), kind, values[0]),
            In(column, kind, values, flag),
            IsNull(column, flag),
            Like("s", random.choice(LIKES), flag),
            CompareColumns("i", random.choice(list(Op)), "j"),
        ]
    )


def leaves():
    def compare(column):
        return st.builds(Compare, st.just(column), OPS, st.just(KINDS[column]), VALUES[KINDS[column]])

    def membership(column):
        values = st.lists(VALUES[KINDS[column]], min_size=1, max_size=20).map(lambda v: _sorted_set(v))
        return st.builds(In, st.just(column), st.just(KINDS[column]), values, st.booleans())

    columns = st.sampled_from(sorted(KINDS))
    return st.one_of(
        columns.flatmap(compare),
        columns.flatmap(membership),
        st.builds(IsNull, columns, st.booleans()),
        st.builds(Like, st.just("s"), PATTERNS, st.booleans()),
        st.builds(CompareColumns, st.just("i"), OPS, st.just("j")),
    )


def _sorted_set(values):
    kept = []
    for value in sorted(values, key=order):
        if not kept or order(kept[-1]) != order(value):
            kept.append(value)
    return tuple(kept)


def predicates(parsed=False):
    base = leaves()
    if parsed:
        base = st.one_of(base, st.just(Unknown("odd")), st.builds(Constant, st.booleans()))

    def extend(children):
        several = st.lists(children, min_size=1, max_size=4).map(tuple)
        options = [st.builds(And, several), st.builds(Or, several)]
        if parsed:
            options.append(st.builds(Not, children))
        return st.one_of(*options)

    return st.recursive(base, extend, max_leaves=8)


def rows(min_size=1, max_size=30):
    cells = {name: st.one_of(st.none(), VALUES[kind]) for name, kind in KINDS.items()}
    return st.lists(st.fixed_dictionaries(cells), min_size=min_size, max_size=max_size)


def order(value):
    """Spark's order: NaN above everything and equal to itself."""
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def truth(node, row, unknown=None):
    """True, False or None (NULL); an `Unknown` condition has the value `unknown`."""
    match node:
        case Constant(value):
            return value
        case Unknown():
            return unknown
        case Not(child):
            found = truth(child, row, unknown)
            return None if found is None else not found
        case And(children):
            found = [truth(child, row, unknown) for child in children]
            return False if False in found else None if None in found else True
        case Or(children):
            found = [truth(child, row, unknown) for child in children]
            return True if True in found else None if None in found else False
        case IsNull(column, negated):
            return (row[column] is None) != negated
        case CompareColumns(left, op, right):
            return _compare(row[left], op, row[right])
        case Compare(column, op, _, value):
            return _compare(row[column], op, value)
        case In(column, _, values, negated):
            if row[column] is None:
                return None
            return any(_compare(row[column], Op.EQ, value) for value in values) != negated
        case Like(column, pattern, negated):
            return None if row[column] is None else _like(row[column], pattern) != negated


def _compare(left, op, right):
    if left is None or right is None:
        return None
    a, b = order(left), order(right)
    return {
        Op.LT: a < b,
        Op.LE: a <= b,
        Op.EQ: a == b,
        Op.GE: a >= b,
        Op.GT: a > b,
        Op.NE: a != b,
    }[op]


def _like(text, pattern):
    regex, escaped = "", False
    for character in pattern:
        if escaped or character not in "\\%_":
            regex, escaped = regex + re.escape(character), False
        elif character == "\\":
            escaped = True
        else:
            regex += ".*" if character == "%" else "."
    return re.fullmatch(regex, text, re.DOTALL) is not None
