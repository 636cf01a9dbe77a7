"""SQL text to the scans of one table: what each asks of it, without a JVM and without running anything.

    sql = SqlText(["sales.orders", "orders"], {"id": Kind.INTEGER, "day": Kind.DATE})
    for scan in sql.scans("SELECT * FROM orders WHERE day >= '2024-05-01'"):
        print(scan.predicate)

Statements that differ only in their literals share one syntax tree (`shapes.py`); their predicates are built anew from
it, literal by literal, so a shared tree gives what the statement's own tree would.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.clock import Clock
from oreo_lakehouse.history.conditions import Conditions
from oreo_lakehouse.history.constants import Session
from oreo_lakehouse.history.exactness import FOREIGN, Exactness, stored
from oreo_lakehouse.history.literal import NotUnderstood
from oreo_lakehouse.history.names import TableNames
from oreo_lakehouse.history.scans import ScanFinder
from oreo_lakehouse.history.shapes import Shapes
from oreo_lakehouse.history.sources import Clause, Scan
from oreo_lakehouse.predicates.tree import (
    TRUE,
    And,
    Constant,
    IsNull,
    Not,
    Or,
    Predicate,
    Unknown,
)
from oreo_lakehouse.predicates.values import Kind

Schema: TypeAlias = Mapping[str, Kind]
"""A table's columns by name."""

_BACKSLASH_ESCAPES = ("spark", "spark2", "databricks", "hive", "mysql", "postgres", "redshift")
"""Dialects whose LIKE takes a backslash as an escape without being told."""


class NotAQuery(HistoryError):  # noqa: N818 - a kind of statement, no fault of anybody
    """The statement reads nothing that history records: DDL, CALL, DML."""


@dataclass(frozen=True)
class TableScan:
    """What one scan asks of the table, in stored form."""

    predicate: Predicate
    exactness: Exactness
    reasons: tuple[str, ...]
    columns: tuple[str, ...]
    """Of the table, that the query reads."""


class Reading(NamedTuple):
    """What a statement reads."""

    scans: list[TableScan]
    others: set[tuple[str, ...]]
    """The names, part by part, of other tables and views."""


class SqlText:
    """Reads statements for one table.

    Args:
        table_names: the names that the table goes by: `t`, `db.t`, `catalog.db.t`, a path.
        schema: the table's columns.
        dialect: sqlglot's name of the SQL dialect.

    Raises:
        HistoryError: there is no such dialect.

    >>> sql = SqlText(["sales.orders"], {"id": Kind.INTEGER, "note": Kind.STRING})
    >>> [scan] = sql.scans("SELECT note FROM orders o WHERE o.ID < 5.5 AND upper(note) = 'X'")
    >>> scan.predicate
    Compare(column='id', op=<Op.LE: '<='>, kind=<Kind.INTEGER: 'integer'>, value=5)
    >>> scan.exactness.value, scan.reasons, scan.columns
    ('relaxed', ('upper of a column',), ('id', 'note'))
    """

    def __init__(self, table_names: Iterable[str], schema: Schema, dialect: str = "spark") -> None:
        if not re.fullmatch(r"\w{0,40}", dialect, re.ASCII):  # sqlglot imports a module of that name
            raise HistoryError(f"{dialect[:40]!r} is not a dialect of SQL that we know")
        try:
            known = Dialect.get_or_raise(dialect)
        except ValueError as error:
            raise HistoryError(f"{dialect!r} is not a dialect of SQL that we know: {error}") from error
        self.dialect = dialect.lower()
        self._names = TableNames(table_names)
        self._schema = dict(schema)
        self._escape = "\\" if self.dialect in _BACKSLASH_ESCAPES else ""
        self._shapes = Shapes(known)
        self._clocks: dict[str | None, Clock] = {}

    def scans(self, *arguments: Any, **options: Any) -> list[TableScan]:
        """The statement's scans of the table; `read` has the arguments and the errors."""
        return self.read(*arguments, **options).scans

    def read(
        self,
        text: str,
        time_zone: str | None = None,
        now_us: int | None = None,
        namespace: tuple[str, ...] = (),
        cached: bool = True,
    ) -> Reading:
        """The statement's scans of the table, none if it reads other tables only, and the names of those.

        Args:
            text: one statement.
            time_zone: of the session; without it, times without a zone of their own are known only roughly.
            now_us: when the query started, UTC.
            namespace: what unqualified names are relative to.
            cached: whether to share syntax trees between statements.

        Raises:
            NotAQuery: the statement is not one that reads.
            HistoryError: the statement cannot be parsed, or is too large or too deep.
        """
        parsed, texts = self._shapes.parse(text, cached)
        if time_zone not in self._clocks:
            self._clocks[time_zone] = Clock(time_zone)
        session = Session(self._clocks[time_zone], now_us, texts)
        try:
            if namespace not in parsed.derived:
                finder = ScanFinder(lambda table: self._names.match(table, namespace), self._schema)
                finder.query(_query(parsed.tree), {})
                parsed.derived[namespace] = finder
            found: ScanFinder = parsed.derived[namespace]
            return Reading([self._scan(scan, session) for scan in found.scans], found.others)
        except RecursionError:
            raise HistoryError("the statement is nested too deeply") from None

    def _scan(self, scan: Scan, session: Session) -> TableScan:
        conditions: list[Predicate] = []
        for clause in scan.clauses:

            def resolve(column: exp.Column, clause: Clause = clause) -> str:
                owner, name = clause.meanings.get(id(column), (None, FOREIGN))
                if owner is not scan:
                    raise NotUnderstood(FOREIGN if owner else name)
                return name

            condition = Conditions(self._schema, resolve, session, self._escape).read(clause.condition)
            if not clause.optional or True not in _on_nulls(condition):
                conditions.append(condition)
        predicate, exactness, reasons = stored(And(tuple(conditions)) if conditions else TRUE)
        columns = tuple(column for column in self._schema if column in scan.columns)
        return TableScan(predicate, exactness, reasons, columns)


def _query(tree: exp.Expr) -> exp.Expr:
    """The query that a statement runs to read."""
    if isinstance(tree, exp.Insert) or (isinstance(tree, exp.Create) and tree.kind == "TABLE"):
        tree = tree.expression or tree
    if isinstance(tree, exp.Condition | exp.Alias):  # the parser takes a lone word for a column
        raise HistoryError("not SQL: an expression, not a statement")
    if not isinstance(tree, exp.Query):
        raise NotAQuery(f"{tree.key.upper()} is not recorded")
    return tree


def _on_nulls(predicate: Predicate) -> frozenset[bool | None]:
    """What a parsed predicate may be for an all-NULL row: TRUE, FALSE or (None) NULL."""
    match predicate:
        case Constant(value):
            return frozenset((value,))
        case IsNull(_, negated):
            return frozenset((not negated,))
        case Unknown():
            return frozenset((True, False, None))
        case Not(child):
            return frozenset(None if value is None else not value for value in _on_nulls(child))
        case And(children) | Or(children):
            absorbing = isinstance(predicate, Or)
            result: frozenset[bool | None] = frozenset((not absorbing,))
            for child in children:
                found = _on_nulls(child)
                result = frozenset(_join(a, b, absorbing) for a in result for b in found)
            return result
        case _:
            return frozenset((None,))


def _join(left: bool | None, right: bool | None, absorbing: bool) -> bool | None:
    if absorbing in (left, right):
        return absorbing
    return None if None in (left, right) else not absorbing
