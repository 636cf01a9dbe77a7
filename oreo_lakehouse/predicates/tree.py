"""What a query asks of one table: an immutable tree of conditions on its columns.

Two forms share these classes. The **parsed** form may hold `Not` and `Unknown`; the **stored** form, which `relax`
makes, holds neither and is implied by the query's real predicate, so every decision made from it is on the safe side.

Why not pyiceberg's expressions: they have no comparison between two columns and no LIKE beyond a prefix, which the
paper's advanced cuts need, and their JSON does not carry a literal's type. Names are the table's logical column names
as its schema spells them; literals are in the form that `values.py` fixes, already of the column's own kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from oreo_lakehouse.predicates.values import Kind, Value


class Op(StrEnum):
    """A comparison. SQL's `<=>` is parsed as `EQ` (or IS NULL for a NULL literal)."""

    LT = "<"
    LE = "<="
    EQ = "="
    GE = ">="
    GT = ">"
    NE = "!="

    @property
    def negated(self) -> Op:
        """The comparison that holds exactly where this one is false (both are NULL where an operand is)."""
        return _NEGATED[self]

    @property
    def mirrored(self) -> Op:
        """The same comparison with its sides exchanged."""
        return _MIRRORED[self]


_NEGATED = {Op.LT: Op.GE, Op.GE: Op.LT, Op.LE: Op.GT, Op.GT: Op.LE, Op.EQ: Op.NE, Op.NE: Op.EQ}
_MIRRORED = {Op.LT: Op.GT, Op.GT: Op.LT, Op.LE: Op.GE, Op.GE: Op.LE, Op.EQ: Op.EQ, Op.NE: Op.NE}


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE or FALSE; a NULL condition is FALSE, since a row passes only where its predicate is TRUE."""

    value: bool


TRUE = Constant(True)
FALSE = Constant(False)


@dataclass(frozen=True, slots=True)
class Compare:
    """`column op literal`."""

    column: str
    op: Op
    kind: Kind
    value: Value


@dataclass(frozen=True, slots=True)
class In:
    """`column [NOT] IN (literals)`, none of them NULL, sorted and without repetition."""

    column: str
    kind: Kind
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull:
    """`column IS [NOT] NULL`."""

    column: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like:
    """`column [NOT] LIKE pattern`, with `\\` as the escape character; `abc%` is a prefix test."""

    column: str
    pattern: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class CompareColumns:
    """`left op right` between two columns of the same table, both of the same kind."""

    left: str
    op: Op
    right: str


@dataclass(frozen=True, slots=True)
class And:
    """All children hold."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one child holds."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The child is false (not merely NULL). Parsed form only."""

    child: Predicate


@dataclass(frozen=True, slots=True)
class Unknown:
    """A condition that we do not understand, with the reason. Parsed form only."""

    reason: str


Predicate: TypeAlias = Constant | Compare | In | IsNull | Like | CompareColumns | And | Or | Not | Unknown
