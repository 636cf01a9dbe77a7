"""One SELECT: which of its conditions restrict which scan, and what its output columns mean.

A condition of WHERE, or of an inner join's ON, restricts every scan whose columns it names, wherever they were renamed
through plain subqueries and common table expressions. An outer join limits that: rows of its optional side are also
needed to know that there are none, so a WHERE above it counts only if it cannot hold for an all-NULL row. Columns that
are computed, or come out of LIMIT, a window, an aggregate or a set operation, pass no condition down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sqlglot import exp

from oreo_lakehouse.history.conditions import walk_level
from oreo_lakehouse.history.sources import Clause, Columns, Meaning, Relation, Scan, meaning_of, unexpected

_PLAIN_SELECT = (
    *("with_", "kind", "expressions", "hint", "distinct", "from_", "operation_modifiers", "laterals", "joins", "where"),
    *("group", "having", "qualify", "windows", "distribute", "sort", "cluster", "order", "limit", "offset"),
)

_RESTRICTS = {
    ("", ""): (True, True),
    ("", "INNER"): (True, True),
    ("", "CROSS"): (True, True),
    ("LEFT", ""): (False, True),
    ("LEFT", "OUTER"): (False, True),
    ("RIGHT", ""): (True, False),
    ("RIGHT", "OUTER"): (True, False),
    ("FULL", ""): (False, False),
    ("FULL", "OUTER"): (False, False),
    ("LEFT", "SEMI"): (True, True),
    ("", "SEMI"): (True, True),
    ("LEFT", "ANTI"): (False, True),
    ("", "ANTI"): (False, True),
}
"""Whether ON restricts the left and the right side of a join, by its side and kind."""


class Level:
    """One SELECT, its relations read from left to right.

    Args:
        source: reads an item of FROM.
        nested: reads a query inside an expression.
        alone: no outer query's columns are in reach.
    """

    def __init__(
        self, source: Callable[[exp.Expr], list[Relation]], nested: Callable[[exp.Expr], object], alone: bool
    ) -> None:
        self._source = source
        self._nested = nested
        self._alone = alone
        self._visible: list[Relation] = []
        self._shared: set[str] = set()

    def read(self, select: exp.Select) -> Relation:
        """Read the SELECT; its output."""
        if origin := select.args.get("from_"):
            self._visible += self._source(origin.this)
        below = self._join_all(select.args.get("joins") or [])
        for lateral in select.args.get("laterals") or []:
            self._visible += self._source(lateral)
        if reason := unexpected(select, _PLAIN_SELECT):
            self._visible = [relation.opaque(f"a query with {reason}") for relation in self._visible]
        if where := select.args.get("where"):
            self._restrict(where.this, below)
        for item in _own_parts(select):
            self._note(item)
        columns, is_open = self._outputs(select)
        return Relation(columns, is_open, below)

    def group(self, table: exp.Table, first: Relation) -> list[Relation]:
        """Read a table with its own joins, as in `a LEFT JOIN (b JOIN c ON …) ON …`."""
        self._visible = [first]
        self._join_all(table.args["joins"])
        return self._visible

    def _join_all(self, joins: Iterable[exp.Join]) -> list[Scan]:
        below = [scan for relation in self._visible for scan in relation.scans]
        for join in joins:
            below = below + self._join(join, below)
        return below

    def _join(self, join: exp.Join, left: list[Scan]) -> list[Scan]:
        """Read one more relation and its ON; the scans it brings."""
        before = self._visible
        added = self._source(join.this)
        right = [scan for relation in added for scan in relation.scans]
        side, kind = join.side.upper(), join.kind.upper()
        self._visible = before + added
        self._shared |= {column.name.lower() for column in join.args.get("using") or []}
        plain = (side, kind) in _RESTRICTS and not unexpected(join, ("this", "on", "side", "kind", "using", "hint"))
        if not plain:  # NATURAL, ASOF, …: no name is certain any more
            self._shared |= {name for relation in self._visible for name in relation.columns}
        if (on := join.args.get("on")) is not None:
            to_left, to_right = _RESTRICTS[side, kind] if plain else (False, False)
            self._restrict(on, left * to_left + right * to_right)
            self._note(on)
        if kind in ("SEMI", "ANTI"):
            self._visible = before
        for scan in left * (side in ("RIGHT", "FULL") or not plain) + right * (side in ("LEFT", "FULL") or not plain):
            scan.optional = True
        return right

    def _restrict(self, condition: exp.Expr, scans: Iterable[Scan]) -> None:
        meanings: dict[int, Meaning] = {}
        touched: set[Scan] = set()
        has_query = False
        for node in walk_level(condition):
            has_query |= isinstance(node, exp.Query)
            if isinstance(node, exp.Column):
                meanings[id(node)], concerned = self._meaning(node)
                touched.update(concerned)
        for scan in scans:
            if has_query or scan in touched or not meanings:
                scan.clauses.append(Clause(condition, meanings, scan.optional))

    def _meaning(self, column: exp.Column) -> tuple[Meaning, list[Scan]]:
        return meaning_of(column, self._visible, self._shared, self._alone)

    def _note(self, part: exp.Expr) -> None:
        """Remember which of a scan's columns a part of the query reads, and read the queries inside it."""
        for node in walk_level(part):
            if isinstance(node, exp.Query):
                self._nested(node)
            elif node is part and part.is_star:
                for scan, name in self._star(part)[0].values():
                    if scan is not None:
                        scan.columns.add(name)
            elif isinstance(node, exp.Column) and not node.is_star:
                (scan, name), _ = self._meaning(node)
                if scan is not None:
                    scan.columns.add(name)

    def _star(self, star: exp.Expr) -> tuple[Columns, bool]:
        """The columns that `*` or `t.*` stands for."""
        owner = star.args.get("table")
        columns: Columns = {}
        is_open = False
        for relation in self._visible:
            if owner is None or relation.name[-1:] == (owner.name.lower(),):
                is_open |= relation.open
                for name, meaning in relation.columns.items():
                    columns[name] = (None, "two columns of one name") if name in columns else meaning
        changed = unexpected(star.this if isinstance(star, exp.Column) else star, ())
        return (dict.fromkeys(columns, (None, "a changed star")), True) if changed else (columns, is_open)

    def _outputs(self, select: exp.Select) -> tuple[Columns, bool]:
        """The SELECT's columns, each with its meaning if a condition on it may be moved below the SELECT."""
        outputs: Columns = {}
        is_open = False
        for item in select.expressions:
            plain = item.unalias()
            if item.is_star:
                added, more = self._star(item)
                is_open |= more
            else:
                meaning = self._meaning(plain)[0] if isinstance(plain, exp.Column) else (None, "a computed column")
                added = {item.alias_or_name.lower(): meaning}
            for name, meaning in added.items():
                outputs[name] = (None, "two columns of one name") if name in outputs else meaning
        barrier = _barrier(select)
        keys = self._group_keys(select)
        for name, meaning in outputs.items():
            if barrier or (keys is not None and meaning not in keys):
                outputs[name] = (None, f"a column out of {barrier or 'an aggregate'}")
        return outputs, is_open

    def _group_keys(self, select: exp.Select) -> list[Meaning] | None:
        group = select.args.get("group")
        if group is None:
            return None
        if unexpected(group, ("expressions",)):  # ROLLUP and the like replace keys by NULL
            return []
        return [self._meaning(key)[0] for key in group.expressions if isinstance(key, exp.Column)]


def _own_parts(select: exp.Select) -> Iterator[exp.Expr]:
    for name, value in select.args.items():
        if name not in ("with_", "from_", "joins"):
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, exp.Expr):
                    yield item


def _barrier(select: exp.Select) -> str:
    """What keeps conditions from moving below a SELECT, besides grouping."""
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        return "DISTINCT ON"
    if any(isinstance(node, exp.Window) for item in select.expressions for node in walk_level(item)):
        return "a window"
    return next((name for name in ("limit", "offset", "qualify") if select.args.get(name)), "")
