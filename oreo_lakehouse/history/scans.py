"""Where a query scans a table.

Every use of the table is one scan: a self-join has two, a common table expression one each time it is used. Which
conditions restrict a scan is `level.py`'s business, one SELECT at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from sqlglot import exp

from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.conditions import walk_level
from oreo_lakehouse.history.exactness import FOREIGN
from oreo_lakehouse.history.level import Level
from oreo_lakehouse.history.sources import Columns, Relation, Scan, unexpected

MAX_RELATIONS = 1_000
"""Tables, subqueries and uses of common table expressions in one statement; nested ones multiply."""

Ctes: TypeAlias = "Mapping[str, tuple[exp.CTE, Ctes] | None]"
"""The common table expressions in reach, each with those that its own text can see; None for a recursive one."""

_PLAIN_TABLE = ("this", "alias", "db", "catalog", "joins", "hints", "version", "when")


class ScanFinder:
    """Finds the scans of one table in a query.

    Args:
        is_table: whether a table's name in the query means the table.
        columns: the table's columns.
    """

    def __init__(self, is_table: Callable[[exp.Table], bool], columns: Iterable[str]) -> None:
        self._is_table = is_table
        self._columns = tuple(columns)
        self._relations = 0
        self.scans: list[Scan] = []
        self.others: set[tuple[str, ...]] = set()
        """The names of tables and views that are not the table."""

    def query(self, node: exp.Expr, ctes: Ctes, alone: bool = True) -> Relation:
        """Read a query: its output, and (in `scans`) the scans that it makes.

        Args:
            node: SELECT, a set operation or one of them in parentheses.
            ctes: the common table expressions in reach.
            alone: whether the query cannot refer to columns of a query around it.
        """
        ctes = _with(node, ctes)
        if isinstance(node, exp.Subquery):
            reason = unexpected(node, ("this", "alias", "with_"))
            inner = self.query(node.this, ctes, alone)
            return inner.opaque(f"a subquery with {reason}") if reason else inner
        if isinstance(node, exp.SetOperation):
            left, right = self.query(node.this, ctes, alone), self.query(node.expression, ctes, alone)
            both = Relation(left.columns, left.open, left.scans + right.scans)
            return both.opaque("a column out of a set operation")
        if isinstance(node, exp.Select):
            return Level(
                source=lambda item: self.sources(item, ctes),
                nested=lambda item: self.query(item, ctes, alone=False),
                alone=alone,
            ).read(node)
        return Relation({}, True, [])

    def sources(self, node: exp.Expr, ctes: Ctes) -> list[Relation]:
        """Read an item of FROM; more than one relation if it is a group of joins."""
        self._relations += 1
        if self._relations > MAX_RELATIONS:
            raise HistoryError(f"the statement has more than {MAX_RELATIONS} tables and subqueries")
        alias = node.args.get("alias")
        name = (alias.name.lower(),) if alias and alias.name else ()
        renamed = [column.name.lower() for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
        inner = node.this
        if isinstance(node, exp.Subquery) and isinstance(inner, exp.Table):
            group = self.sources(inner, ctes)
            return [r.opaque("a group of joins with a name") for r in group] if name else group
        if isinstance(node, exp.Table) and isinstance(inner, exp.Identifier):
            found = self._table(node, name, ctes)
            if node.args.get("joins"):
                return Level(lambda i: self.sources(i, ctes), lambda i: self.query(i, ctes), True).group(node, found)
        elif isinstance(node, exp.Query):
            found = self.query(node, ctes)
        else:  # a function, VALUES, LATERAL: rows that we know nothing of
            for part in walk_level(node):
                if isinstance(part, exp.Query):
                    self.query(part, ctes, alone=False)
            return [Relation(dict.fromkeys(renamed, (None, FOREIGN)), not renamed, [], name)]
        if renamed:
            found = Relation(dict.fromkeys(renamed, (None, "")), False, found.scans).opaque("a renamed column")
        found.name = name or found.name
        return [found]

    def _table(self, node: exp.Table, alias: tuple[str, ...], ctes: Ctes) -> Relation:
        parts = tuple(part.name.lower() for part in node.parts)
        if len(parts) == 1 and parts[0] in ctes:
            return self._cte(parts, ctes[parts[0]])
        if not self._is_table(node):
            self.others.add(tuple(part.name for part in node.parts))
            return Relation({}, True, [], parts)
        scan = Scan()
        self.scans.append(scan)
        columns: Columns = {}
        for column in self._columns:
            clash = column.lower() in columns
            columns[column.lower()] = (None, "a name that differs only in case") if clash else (scan, column)
        table = Relation(columns, False, [scan], alias or parts)
        reason = unexpected(node, _PLAIN_TABLE)
        return table.opaque(f"a table with {reason}") if reason else table

    def _cte(self, name: tuple[str, ...], known: tuple[exp.CTE, Ctes] | None) -> Relation:
        if known is None:
            return Relation({}, True, [], name)
        cte, ctes = known
        result = self.query(cte.this, ctes)
        renamed = cte.args["alias"].columns
        if renamed:
            result = Relation({c.name.lower(): (None, "a renamed column") for c in renamed}, False, result.scans)
        result.name = name
        return result


def _with(node: exp.Expr, ctes: Ctes) -> Ctes:
    clause = node.args.get("with_")
    if clause is None:
        return ctes
    known = dict(ctes)
    for cte in clause.expressions:
        name = cte.alias.lower()
        known[name] = (cte, {**known, name: None} if clause.args.get("recursive") else dict(known))
    return known
