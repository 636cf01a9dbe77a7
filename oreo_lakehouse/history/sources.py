"""The parts of a query while its scans are being found: scans, the conditions on them, and what names mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from oreo_lakehouse.history.exactness import FOREIGN


@dataclass(eq=False)
class Scan:
    """One scan of the table while its query is being read."""

    optional: bool = False
    """An outer join may replace its rows by NULLs."""
    clauses: list[Clause] = field(default_factory=lambda: list[Clause]())
    columns: set[str] = field(default_factory=lambda: set[str]())


Meaning: TypeAlias = tuple[Scan | None, str]
"""What a column's name means: a scan's column, or None and the reason why we cannot say."""

Columns: TypeAlias = dict[str, Meaning]
"""By lower-case name."""


@dataclass(frozen=True, eq=False)
class Clause:
    """A condition that a scan's row must meet to matter to the query."""

    condition: exp.Expr
    meanings: Mapping[int, Meaning]
    """Of the condition's columns, by the id of their node."""
    optional: bool
    """It counts only if it cannot hold for an all-NULL row."""


@dataclass(eq=False)
class Relation:
    """Rows with columns, as far as they are known, and the scans below them."""

    columns: Columns
    open: bool
    """It may have columns that we do not know of."""
    scans: list[Scan]
    name: tuple[str, ...] = ()
    """As the query may qualify its columns, in lower case."""

    def opaque(self, reason: str) -> Relation:
        """The same rows, but no condition on a column may be moved below."""
        return Relation(dict.fromkeys(self.columns, (None, reason)), self.open, self.scans, self.name)


def unexpected(node: exp.Expr, names: Iterable[str]) -> str:
    """The first argument of a node that is not among those we know; "" if there is none."""
    return next((name for name, value in node.args.items() if value and name not in names), "")


def meaning_of(
    column: exp.Column, visible: list[Relation], shared: set[str], alone: bool
) -> tuple[Meaning, list[Scan]]:
    """What a column's name means among these relations, and the scans that it may concern.

    Args:
        column: the name, qualified or not.
        visible: the relations that it may belong to.
        shared: names that a join gives one meaning for both of its sides.
        alone: no outer query's columns are in reach.
    """
    name = column.name.lower()
    qualifier = tuple(part.name.lower() for part in column.parts[:-1])
    if qualifier:
        owners = [r for r in visible if r.name[-len(qualifier) :] == qualifier]
        if not owners:
            roots = [r for r in visible if qualifier[0] in r.columns or r.name[-1:] == qualifier[:1]]
            return _unclear("a nested field", roots) if roots else ((None, FOREIGN), [])
        closed = not owners[0].open
    else:
        owners = [r for r in visible if name in r.columns]
        closed = alone and not any(r.open for r in visible)
    if len(owners) > 1 or (owners and not qualifier and name in shared):
        return _unclear("an ambiguous column", owners)
    known = owners[0].columns.get(name) if owners else None
    if known is None:
        missing = _unclear("a column that the table does not have", owners or visible)
        return missing if closed else ((None, FOREIGN), [])
    scan, text = known
    return known, [scan] if scan else [] if text == FOREIGN else owners[0].scans


def _unclear(reason: str, relations: Iterable[Relation]) -> tuple[Meaning, list[Scan]]:
    return (None, reason), [scan for relation in relations for scan in relation.scans]
