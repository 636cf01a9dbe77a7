"""The safety rule, on a real engine: a scan that returns only rows that satisfy its stored predicate changes no answer.

SQLite runs generated queries (all kinds of joins, nested and correlated subqueries, common table expressions,
aggregates, windows, limits) once on the whole table and once with every use of the table replaced by the rows that its
stored predicate lets through.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from random import Random
from typing import Any

import pytest
from history_reference import evaluate

from oreo_lakehouse.history.sqltext import SqlText
from oreo_lakehouse.predicates.tree import TRUE
from oreo_lakehouse.predicates.values import Kind

SCHEMA = {"id": Kind.INTEGER, "n": Kind.INTEGER, "s": Kind.STRING}
TEXTS = ["a", "ab", "b", ""]


class Generator:
    """Random queries over t (written `{t}`), u and a common table expression (written `{c}`), all with id, n and s."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def rows(self) -> list[tuple[Any, ...]]:
        choose = self.random.choice
        return [(choose([None, 0, 1, 2]), choose([None, 0, 1, 2]), choose([None, *TEXTS])) for _ in range(8)]

    def leaf(self, names: list[str]) -> str:
        choose = self.random.choice
        name = choose(names)
        number, other = (f"{n}.{choose(['id', 'n'])}" for n in (name, choose(names)))
        value, text = str(choose([0, 1, 2, 0.5, 1.5])), choose(TEXTS)
        return choose(
            [
                *[f"{number} {choose(['=', '<', '<=', '>', '>=', '<>'])} {value}"] * 4,
                *[f"{number} = {other}"] * 4,
                *[f"{number} IS NULL", f"{name}.s IS NULL", f"{name}.s IS NOT NULL"] * 2,
                f"{value} >= {number}",
                f"{number} < {other}",
                f"{number} IN (0, {value})",
                f"{number} NOT IN (1, {value})",
                f"{number} NOT IN ({value}, NULL)",
                f"{number} BETWEEN 0 AND {value}",
                f"{name}.s = '{text}'",
                f"{name}.s > '{text}'",
                f"{name}.s LIKE '{text}%'",
                f"{name}.s NOT LIKE '_{text}'",
                f"{name}.s LIKE 'a!%%' ESCAPE '!'",
                f"abs({number}) = 1",
                f"{number} + 1 = 2",
                f"coalesce({number}, 1) = 1",
                f"CASE WHEN {number} = 1 THEN 1 ELSE 0 END = 0",
                "1 = 1",
            ]
        )

    def condition(self, names: list[str], depth: int = 2) -> str:
        choose = self.random.choice
        kind = choose(["leaf", "leaf", "leaf", "and", "and", "or", "not", "exists", "in"]) if depth else "leaf"
        if kind in ("and", "or"):
            parts = [self.condition(names, depth - 1) for _ in range(2)]
            return "(" + f" {kind.upper()} ".join(parts) + ")"
        if kind == "not":
            return f"NOT ({self.condition(names, depth - 1)})"
        if kind in ("exists", "in"):
            inner, table, negated = f"i{len(names)}", choose(["{t}", "{t}", "u"]), choose(["", "NOT "])
            where = self.condition([inner, *names], 1)
            if kind == "exists":
                return f"{negated}EXISTS (SELECT 1 FROM {table} {inner} WHERE {where})"
            return f"{names[0]}.id {negated}IN (SELECT {inner}.n FROM {table} {inner} WHERE {where})"
        return self.leaf(names)

    def relation(self, name: str, depth: int) -> str:
        """An item of FROM."""
        kinds = ["plain", "star", "swap", "group", "window", "limit", "union", "join"] if depth else []
        kind = self.random.choice(["{t}", "{t}", "{t}", "u", "{c}", *kinds])
        if kind not in kinds:
            return f"{kind} AS {name}"
        inner, other = f"{name}{depth}", f"{name}o"
        where = f"WHERE {self.condition([inner], 1)}" if self.random.random() < 0.5 else ""
        table = self.joins([inner, other], 0) if kind == "join" else self.relation(inner, 0)
        columns, tail = {
            "star": ("*", ""),
            "swap": (f"{inner}.n AS id, {inner}.id AS n, {inner}.s AS s", ""),
            "group": (f"{inner}.n AS n, max({inner}.id) AS id, min({inner}.s) AS s", f"GROUP BY {inner}.n"),
            "window": (
                f"{inner}.id AS id, row_number() OVER (ORDER BY {inner}.id, {inner}.n) AS n, {inner}.s AS s",
                "",
            ),
            "join": (f"{inner}.id AS id, {other}.n AS n, {inner}.s AS s", ""),
        }.get(kind, (f"{inner}.id AS id, {inner}.n AS n, {inner}.s AS s", ""))
        tail = {"limit": "ORDER BY 1, 2, 3 LIMIT 3", "union": "UNION ALL SELECT id, n, s FROM u"}.get(kind, tail)
        return f"(SELECT {columns} FROM {table} {where} {tail}) AS {name}"

    def joins(self, names: list[str], depth: int) -> str:
        text = self.relation(names[0], depth)
        for number, name in enumerate(names[1:], 1):
            kind = self.random.choice(["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"])
            on = "" if kind == "CROSS JOIN" else f" ON {self.condition(names[: number + 1], 1)}"
            text += f" {kind} {self.relation(name, depth)}{on}"
        return text

    def query(self) -> tuple[str, str]:
        """For the parser, with WITH, and for SQLite, with the common table expression written out."""
        names = ["a", "b", "c"][: self.random.choice([1, 2, 2, 3])]
        columns = ", ".join(f"{name}.{column}" for name in names for column in SCHEMA)
        main = f"SELECT {columns} FROM {self.joins(names, 1)}"
        if self.random.random() < 0.8:
            main += f" WHERE {self.condition(names)}"
        body = f"SELECT id, n, s FROM {{t}} AS k WHERE {self.condition(['k'], 1)}"
        return f"WITH cte AS ({body}) " + main.replace("{c}", "cte"), main.replace("{c}", f"({body})")


def fill(connection: sqlite3.Connection, name: str, rows: list[Any]) -> None:
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(f"CREATE TABLE {name} (id INTEGER, n INTEGER, s TEXT)")
    connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)


@pytest.mark.parametrize("seed", range(2))
def test_filtering_each_scan_by_its_stored_predicate_changes_no_answer(seed: int) -> None:
    sql = SqlText(["t"], SCHEMA)
    generator = Generator(seed)
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA case_sensitive_like = ON")
    restricted = 0
    for _ in range(200):
        query, written_out = generator.query()
        scans = sql.scans(query.replace("{t}", "t"))
        assert scans == sql.scans(query.replace("{t}", "t"), cached=False)
        assert len(scans) == written_out.count("{t}")
        for name in ("t", "u"):
            fill(connection, name, generator.rows())
        rows = connection.execute("SELECT id, n, s FROM t").fetchall()
        for number, scan in enumerate(scans):
            kept = [row for row in rows if evaluate(scan.predicate, dict(zip(SCHEMA, row, strict=True)))]
            fill(connection, f"f{number}", kept)
            restricted += scan.predicate != TRUE
        numbers = iter(range(len(scans)))
        filtered = re.sub(r"\{t\}", lambda _, numbers=numbers: f"f{next(numbers)}", written_out)
        whole = Counter(connection.execute(written_out.replace("{t}", "t")))
        assert Counter(connection.execute(filtered)) == whole, query
    connection.close()
    assert restricted > 100
