"""Predicates taken apart: a template, which thousands of queries share, and the literals of one of them.

    {"and": [{"compare": ["day", ">=", "date"]}, {"in": ["state", false, "string", 2]}]}     [19844, "F", "O"]

So a million records are a few templates and a column of short lists, of which predicates are made when somebody wants
one, and whole workloads without making any.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.predicates.jsonform import from_json, to_json, value_from_json, value_to_json
from oreo_lakehouse.predicates.shape import Shape, shape_of
from oreo_lakehouse.predicates.tree import TRUE, And, Compare, In, Like, Or, Predicate
from oreo_lakehouse.predicates.values import Array, Kind

_log = logging.getLogger(__name__)
_Build: TypeAlias = Callable[[Iterator[Any]], Predicate]
_SAMPLES: dict[str, Any] = {Kind.BOOLEAN: True, Kind.FLOAT: 0.0, Kind.DECIMAL: "0", Kind.STRING: "", Kind.BINARY: ""}
"""A literal of each kind, in its JSON form; 0 for the others."""


def split(predicate: Predicate) -> tuple[str, str]:
    """A stored predicate's template and literals, as JSON.

    >>> from oreo_lakehouse.predicates.tree import Op
    >>> split(And((Compare("a", Op.LT, Kind.INTEGER, 5), In("b", Kind.STRING, ("x", "y")))))
    ('{"and":[{"compare":["a","<","integer"]},{"in":["b",false,"string",2]}]}', '[5,"x","y"]')
    """
    literals: list[Any] = []
    return _text(_document(predicate, literals)), _text(literals)


def _text(value: Any) -> str:
    """As JSON; in ASCII where a text is not proper Unicode."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def _document(node: Predicate, literals: list[Any]) -> dict[str, Any]:
    match node:
        case Compare(column, op, kind, value):
            literals.append(value_to_json(kind, value))
            return {"compare": [column, op.value, kind.value]}
        case In(column, kind, values, negated):
            literals += [value_to_json(kind, value) for value in values]
            return {"in": [column, negated, kind.value, len(values)]}
        case Like(column, pattern, negated):
            literals.append(pattern)
            return {"like": [column, negated]}
        case And(children) | Or(children):
            return {"and" if isinstance(node, And) else "or": [_document(child, literals) for child in children]}
        case _:
            return to_json(node)


class Template:
    """A predicate without its literals.

    >>> Template('{"compare":["a","<","integer"]}').predicate("[5]")
    Compare(column='a', op=<Op.LT: '<'>, kind=<Kind.INTEGER: 'integer'>, value=5)

    Raises:
        StoreError: the text is not a template.
    """

    def __init__(self, text: str) -> None:
        try:
            self.example = from_json(_with_samples(json.loads(text)))
        except (ValueError, TypeError, AttributeError, IndexError, RecursionError) as error:
            raise StoreError(f"malformed predicate: {error}") from error
        self.text = text
        self.kinds: list[Kind] = []
        """Of the literals."""
        self._build = self._builder(self.example)
        self._warned = False

    def predicate(self, literals: str) -> Predicate:
        """The predicate with these literals. If they are damaged it is TRUE: whatever was asked, that is implied."""
        try:
            values = json.loads(literals)
            if isinstance(values, list) and len(cast("list[Any]", values)) == len(self.kinds):
                return self._build(iter(cast("list[Any]", values)))
        except (ValueError, RecursionError, StoreError):
            pass
        if not self._warned:
            _log.warning("the literals of a query do not fit %s: such queries count as reading everything", self.text)
            self._warned = True
        return TRUE

    def _builder(self, node: Predicate) -> _Build:
        match node:
            case Compare(column, op, kind):
                self.kinds.append(kind)
                return lambda values: Compare(column, op, kind, value_from_json(kind, next(values)))
            case In(column, kind, given, negated):
                count = len(given)
                self.kinds += [kind] * count
                return lambda values: In(
                    column, kind, tuple([value_from_json(kind, next(values)) for _ in range(count)]), negated
                )
            case Like(column, _, negated):
                self.kinds.append(Kind.STRING)
                return lambda values: Like(column, str(value_from_json(Kind.STRING, next(values))), negated)
            case And(children) | Or(children):
                builders = [self._builder(child) for child in children]
                connective = And if isinstance(node, And) else Or
                return lambda values: connective(tuple([build(values) for build in builders]))
            case _:
                return lambda _: node

    def slots(self, literals: Sequence[str]) -> tuple[Shape, list[Array]] | None:
        """The shape of queries with these literals, and its slots as `Workload.of_slots` takes them.

        None where queries of this template differ in shape (LIKE), or a literal is not plainly of its kind.
        """
        widths = _widths(self.example)
        if widths is None:
            return None
        try:
            rows = json.loads(f"[{','.join(literals)}]")
        except (ValueError, RecursionError):
            return None
        size = len(self.kinds)
        if len(rows) != len(literals) or not all(type(row) is list and len(row) == size for row in rows):
            return None
        columns = [
            _column(list(values), kind) for values, kind in zip(zip(*rows, strict=True), self.kinds, strict=True)
        ]
        shape, slots, at = shape_of(self.example, []), list[Array](), 0
        for width in widths:
            own = [column for column in columns[at : at + max(width, 1)] if column is not None]
            if len(own) < max(width, 1):
                return None
            padding = [own[-1]] * ((1 << (width - 1).bit_length()) - width) if width else []
            slots.append(np.stack([*own, *padding], axis=1) if width else own[0])
            at += max(width, 1)
        return shape, slots


def _widths(node: Predicate) -> list[int] | None:
    """For each slot of the predicate's shape its number of literals, 0 for a single one; None if there is a LIKE."""
    match node:
        case Compare():
            return [0]
        case In(values=values):
            return [len(values)] if values else None
        case Like():
            return None
        case And(children) | Or(children):
            parts = [_widths(child) for child in children]
            return None if None in parts else [width for part in parts for width in part or []]
        case _:
            return []


_PLAIN: dict[Kind, tuple[type, ...]] = {
    Kind.BOOLEAN: (bool,),
    Kind.FLOAT: (float,),
    Kind.STRING: (str,),
    **dict.fromkeys((Kind.INTEGER, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ), (int,)),
}


def _column(values: list[Any], kind: Kind) -> Array | None:
    """Literals in their array form; None unless all have the plain form of their kind."""
    if not {*map(type, values)} <= {*_PLAIN.get(kind, ())}:
        return None
    out = np.empty(len(values), kind.dtype)
    try:
        out[:] = values
    except OverflowError:
        return None
    return out


def _with_samples(node: Any) -> Any:
    """A template's document with a sample in the place of every literal."""
    ((tag, body),) = node.items()
    if tag in ("and", "or"):
        return {tag: [_with_samples(child) for child in body]}
    if tag == "compare":
        return {tag: [*body, _SAMPLES.get(body[2], 0)]}
    if tag == "in":
        column, negated, kind, count = body
        return {tag: [column, negated, kind, [_SAMPLES.get(kind, 0)] * min(count, 1_000_000)]}
    if tag == "like":
        column, negated = body
        return {tag: [column, "", negated]}
    return node
