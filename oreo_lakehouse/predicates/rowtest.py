"""Which rows a stored predicate is TRUE for, on encoded rows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.errors import TableError
from oreo_lakehouse.predicates.encoded import NULL, EncodedColumn, EncodedRows
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
from oreo_lakehouse.predicates.values import Array, Kind

Bools = npt.NDArray[np.bool_]


def holds(predicate: Predicate, rows: EncodedRows, at: Any = slice(None)) -> Bools:
    """Where the predicate is TRUE (not NULL, not FALSE) among the rows at these positions.

    Raises:
        TableError: a column is missing or its values do not compare.

    >>> import pyarrow as pa
    >>> holds(Compare("a", Op.LT, Kind.INTEGER, 3), EncodedRows(pa.table({"a": [1, None, 3]})))
    array([ True, False, False])
    """
    match predicate:
        case Constant(value):
            return np.full(len(np.arange(len(rows))[at]), value)
        case And(children):
            return np.logical_and.reduce([holds(child, rows, at) for child in children])
        case Or(children):
            return np.logical_or.reduce([holds(child, rows, at) for child in children])
        case Compare(name, op, kind, value):
            column = _column(rows, name)
            return _compare(column, op, _array(kind, [value]), at)
        case In(name, kind, values, negated):
            column = _column(rows, name)
            listed = _array(kind, values)
            found = np.isin(column.values, listed)
            if kind is Kind.FLOAT and np.isnan(listed).any():  # NaN equals itself in SQL, not in numpy
                found |= np.isnan(column.values)
            return _chosen(column, found, negated, at)
        case IsNull(name, negated):
            return (_column(rows, name).ranks[at] == NULL) ^ negated
        case Like(name, pattern, negated):
            column = _column(rows, name)
            matches = re.compile(_regex(pattern), re.DOTALL).fullmatch
            found = np.fromiter((matches(str(v)) is not None for v in column.values), np.bool_, len(column.values))
            return _chosen(column, found, negated, at)
        case CompareColumns(left, op, right):
            return _between(_column(rows, left), op, _column(rows, right), at)
        case _:
            raise TypeError(f"{type(predicate).__name__} is not part of a stored predicate; relax it first")


def _column(rows: EncodedRows, name: str) -> EncodedColumn:
    column = rows.column(name)
    if column is None:
        raise TableError(f"column {name!r} is missing here or has no order; choose a layout without it")
    return column


def _array(kind: Kind, values: Any) -> Array:
    out = np.empty(len(values), kind.dtype)
    out[:] = list(values)
    return out


def _compare(column: EncodedColumn, op: Op, literal: Array, at: Any) -> Bools:
    ranks = column.ranks[at]
    below = np.searchsorted(column.values, literal, "left")[0]
    upto = np.searchsorted(column.values, literal, "right")[0]
    match op:
        case Op.LT:
            return (ranks < below) & (ranks != NULL)
        case Op.LE:
            return (ranks < upto) & (ranks != NULL)
        case Op.GT:
            return ranks >= upto
        case Op.GE:
            return ranks >= below
        case Op.EQ:
            return (ranks >= below) & (ranks < upto)
        case Op.NE:
            return ((ranks < below) | (ranks >= upto)) & (ranks != NULL)


def _chosen(column: EncodedColumn, values: Bools, negated: bool, at: Any) -> Bools:
    """Rows whose value is among the chosen ones; never a NULL row."""
    return np.append(values ^ negated, False)[column.ranks[at]]


def _between(left: EncodedColumn, op: Op, right: EncodedColumn, at: Any) -> Bools:
    if left.kind is not right.kind:
        raise TableError(f"cannot compare a {left.kind.value} column with a {right.kind.value} column")
    both = np.unique(np.concatenate([left.values, right.values]))
    a = np.append(np.searchsorted(both, left.values), -1)[left.ranks[at]]
    b = np.append(np.searchsorted(both, right.values), -1)[right.ranks[at]]
    compare = {Op.LT: np.less, Op.LE: np.less_equal, Op.EQ: np.equal, Op.GE: np.greater_equal, Op.GT: np.greater}
    return compare.get(op, np.not_equal)(a, b) & (a >= 0) & (b >= 0)


def _regex(pattern: str) -> str:
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            parts.append(re.escape(next(characters, "\\")))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return "".join(parts)
