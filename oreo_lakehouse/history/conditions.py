"""Boolean expressions of SQL as parsed predicates over one table's columns.

Node types are whitelisted, and a node that says more than we look at is refused: what is not understood becomes
`Unknown` with the reason, leaf by leaf, so that the rest of the condition is kept. Every leaf agrees with the real one
wherever that is TRUE or FALSE under SQL's three-valued logic, so `relax` may push NOT through them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from sqlglot import exp

from oreo_lakehouse.history.coercion import compare, contained
from oreo_lakehouse.history.constants import Session, literal, only
from oreo_lakehouse.history.exactness import FOREIGN
from oreo_lakehouse.history.literal import Literal, NotUnderstood
from oreo_lakehouse.predicates.tree import (
    FALSE,
    And,
    Compare,
    CompareColumns,
    Constant,
    IsNull,
    Like,
    Not,
    Op,
    Or,
    Predicate,
    Unknown,
)
from oreo_lakehouse.predicates.values import Kind

Resolve: TypeAlias = Callable[[exp.Column], str]
"""The table's column that a name means, or `NotUnderstood`."""

_OPS: dict[type[exp.Expr], Op] = {
    exp.EQ: Op.EQ,
    exp.NEQ: Op.NE,
    exp.LT: Op.LT,
    exp.LTE: Op.LE,
    exp.GT: Op.GT,
    exp.GTE: Op.GE,
}


def walk_level(node: exp.Expr) -> Iterator[exp.Expr]:
    """The node and what is below it in the order of the text, without the insides of nested queries."""
    todo = [node]
    while todo:
        item = todo.pop()
        yield item
        if not isinstance(item, exp.Query):
            todo += item.iter_expressions(reverse=True)


class Conditions:
    """Reads conditions about one scan of one table."""

    def __init__(self, schema: Mapping[str, Kind], resolve: Resolve, session: Session, escape: str) -> None:
        self._schema = schema
        self._resolve = resolve
        self._session = session
        self._escape = escape
        """LIKE's escape character where the query names none; "" if the dialect has none."""

    def read(self, node: exp.Expr, negate: bool = False) -> Predicate:
        """The condition, or its negation, in parsed form."""
        match node:
            case exp.Paren():
                return self.read(node.this, negate)
            case exp.Not():
                return self.read(node.this, not negate)
            case exp.And() | exp.Or():
                connective = And if isinstance(node, exp.And) is not negate else Or
                return connective(tuple([self.read(child, negate) for child in node.flatten()]))
            case _:
                return self._leaf(node, negate)

    def _leaf(self, node: exp.Expr, negate: bool) -> Predicate:
        try:
            return self._understood(node, negate)
        except NotUnderstood as reason:
            return Unknown(FOREIGN if str(reason) == FOREIGN or self._is_foreign(node) else str(reason))

    def _is_foreign(self, node: exp.Expr) -> bool:
        for column in walk_level(node):
            if isinstance(column, exp.Column):
                try:
                    self._resolve(column)
                except NotUnderstood as reason:
                    if str(reason) == FOREIGN:
                        return True
        return False

    def _understood(self, node: exp.Expr, negate: bool) -> Predicate:
        match node:
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                op = _OPS[type(node)]
                return self._compare(node.this, op.negated if negate else op, node.expression)
            case exp.Between():
                only(node, "this", "low", "high")
                ends = (Op.LT, "low"), (Op.GT, "high")
                outside = [self._compare(node.this, op if negate else op.negated, node.args[end]) for op, end in ends]
                return Or(tuple(outside)) if negate else And(tuple(outside))
            case exp.In():
                if node.args.get("query"):
                    raise NotUnderstood("a subquery")
                only(node, "this", "expressions")
                column = self._column(node.this)
                items = [literal(item, self._session) for item in node.expressions]
                return contained(column, self._schema[column], items, self._session.clock, negate)
            case exp.Boolean():
                return Constant(bool(node.this) is not negate)
            case exp.Null():
                return FALSE
            case _:
                found = self._test(node)
                return Not(found) if negate else found

    def _test(self, node: exp.Expr) -> Predicate:
        match node:
            case exp.Is():
                only(node, "this", "expression", "negate")
                found = self._is(self._column(node.this), node.expression)
                return Not(found) if node.args.get("negate") else found
            case exp.NullSafeEQ():
                return self._same(node.this, node.expression)
            case exp.NullSafeNEQ():
                return Not(self._same(node.this, node.expression))
            case exp.Like():
                return self._like(node, self._escape)
            case exp.Escape(this=exp.Like() as like):
                return self._like(like, self._text(node.expression))
            case exp.StartsWith():
                only(node, "this", "expression")
                prefix = "".join("\\" + c if c in "\\%_" else c for c in self._text(node.expression))
                return Like(self._text_column(node.this), prefix + "%")
            case exp.Column():
                column = self._column(node)
                if self._schema[column] is Kind.BOOLEAN:
                    return Compare(column, Op.EQ, Kind.BOOLEAN, True)
                raise NotUnderstood("a column in place of a condition")
            case _:
                raise NotUnderstood("a subquery" if node.find(exp.Query) else f"{node.key} as a condition")

    def _operand(self, node: exp.Expr) -> str | Literal:
        """A column's name or a constant."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Column):
            return self._column(node)
        try:
            return literal(node, self._session)
        except NotUnderstood:
            if node.find(exp.Query):
                raise NotUnderstood("a subquery") from None
            if node.find(exp.Column):
                raise NotUnderstood(f"{node.key} of a column") from None
            raise

    def _column(self, node: exp.Expr) -> str:
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column):
            raise NotUnderstood(f"{node.key} of a column" if node.find(exp.Column) else f"{node.key} of a constant")
        return self._resolve(node)

    def _compare(self, left_node: exp.Expr, op: Op, right_node: exp.Expr) -> Predicate:
        left, right = self._operand(left_node), self._operand(right_node)
        if isinstance(left, Literal) and isinstance(right, Literal):
            return _constant(left, op, right)
        if isinstance(left, Literal):
            assert isinstance(right, str)
            left, op, right = right, op.mirrored, left
        kind = self._schema[left]
        if isinstance(right, Literal):
            return compare(left, kind, op, right, self._session.clock)
        if kind is not self._schema[right] or kind is Kind.OTHER:
            raise NotUnderstood("a comparison of columns of different types")
        return CompareColumns(left, op, right)

    def _same(self, left: exp.Expr, right: exp.Expr) -> Predicate:
        """`<=>`, which is never NULL."""
        sides = [self._operand(left), self._operand(right)]
        columns = [side for side in sides if isinstance(side, str)]
        if len(columns) == 1 and any(isinstance(side, Literal) and side.kind is None for side in sides):
            return IsNull(columns[0])
        equal = And((*(IsNull(column, negated=True) for column in columns), self._compare(left, Op.EQ, right)))
        if len(columns) < 2:
            return equal
        return Or((And(tuple(IsNull(column) for column in columns)), equal))

    def _is(self, column: str, value: exp.Expr) -> Predicate:
        if isinstance(value, exp.Null):
            return IsNull(column)
        if isinstance(value, exp.Boolean) and self._schema[column] is Kind.BOOLEAN:
            return And((IsNull(column, negated=True), Compare(column, Op.EQ, Kind.BOOLEAN, bool(value.this))))
        raise NotUnderstood("IS with something else than NULL, TRUE or FALSE")

    def _text(self, node: exp.Expr) -> str:
        value = literal(node, self._session)
        if value.kind is not Kind.STRING:
            raise NotUnderstood("a pattern that is not a text")
        return str(value.low)

    def _text_column(self, node: exp.Expr) -> str:
        column = self._column(node)
        if self._schema[column] is not Kind.STRING:
            raise NotUnderstood("LIKE of something else than a text")
        return column

    def _like(self, node: exp.Like, escape: str) -> Predicate:
        only(node, "this", "expression", "negate")
        pattern = _with_backslashes(self._text(node.expression), escape)
        return Like(self._text_column(node.this), pattern, bool(node.args.get("negate")))


def _constant(left: Literal, op: Op, right: Literal) -> Predicate:
    if left.kind is None or right.kind is None:
        return FALSE
    if left.kind is not right.kind or left.doubt or right.doubt or left.kind is Kind.FLOAT:
        raise NotUnderstood("a comparison of two constants")
    order = (left.low > right.low) - (left.low < right.low)  # pyright: ignore[reportOperatorIssue]
    holds = {Op.EQ: order == 0, Op.NE: order != 0, Op.LT: order < 0, Op.LE: order <= 0, Op.GT: order > 0}
    return Constant(holds.get(op, order >= 0))


def _with_backslashes(pattern: str, escape: str) -> str:
    """A LIKE pattern with `\\` as its escape character."""
    if len(escape) > 1:
        raise NotUnderstood("an escape of several characters")
    out: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            escaped = next(characters, "")
            if escaped not in ("%", "_", escape):
                raise NotUnderstood("a pattern with a stray escape character")
            character = "\\" + escaped if escaped in "%_\\" else escaped
        elif character == "\\":
            if not escape:
                raise NotUnderstood("a backslash in a pattern")  # dialects differ on what it means
            character = "\\\\"
        out.append(character)
    return "".join(out)
