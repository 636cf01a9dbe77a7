"""TPC-H's and TPC-DS's own queries: every row that Spark's scan would return satisfies what is stored for that scan.

Spark plans each query, and its plan's filters are run on rows made for the purpose: values on both sides of every
literal that the queries compare a column with, and NULLs. The suite takes a share of the queries, since planning them
is slow; all of them: `OREO_FULL=1 uv run pytest -n 0 tests/history/test_history_tpc.py`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import duckdb_extensions
import pytest
import sqlglot
from history_reference import evaluate
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from oreo_lakehouse.history.catalysttext import CatalystText, Question
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.sqltext import SqlText, TableScan
from oreo_lakehouse.jvm import compile_java
from oreo_lakehouse.predicates.tree import TRUE, And, Compare, In, Like, Op, Or, Predicate
from oreo_lakehouse.predicates.values import encode, kind_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
EPOCH = date(1970, 1, 1)
TYPES = {"INTEGER": "int", "BIGINT": "bigint", "VARCHAR": "string", "DATE": "date", "TIME": "string"}

PLAIN = {"string": "ü", "date": 9_500}
"""For columns that no query compares with a literal; 1 where it is a number."""


def benchmark(name: str, make: str) -> tuple[dict[str, str], list[str]]:
    """The tables with their columns in Spark's DDL, and the queries in Spark's SQL."""
    duckdb_extensions.import_extension(name)
    connection = duckdb.connect()
    connection.execute(f"LOAD {name}")
    connection.execute(f"CALL {make}(sf=0)")
    tables: dict[str, str] = {}
    for (table,) in connection.execute("SHOW TABLES").fetchall():
        columns = connection.execute(f"DESCRIBE {table}").fetchall()
        tables[table] = ", ".join(f"{c[0]} {TYPES.get(c[1], c[1])}" for c in columns)
    texts = [text for (text,) in connection.execute(f"SELECT query FROM {name}_queries() ORDER BY query_nr").fetchall()]
    return tables, [sqlglot.transpile(text, read="duckdb", write="spark")[0] for text in texts]


def leaves(predicate: Predicate) -> Iterator[Predicate]:
    if isinstance(predicate, And | Or):
        for child in predicate.children:
            yield from leaves(child)
    else:
        yield predicate


def near(random: Random, leaf: Predicate) -> Any:
    """A value for the leaf's column, mostly one for which it holds."""
    if isinstance(leaf, Compare):
        step = {Op.GT: 1, Op.LT: -1}.get(leaf.op, 0) + random.choice([0, 0, 0, 1, -1])
        value: Any = leaf.value
        return value + step if not isinstance(value, str | bool) else value
    if isinstance(leaf, In):
        return random.choice(leaf.values)
    return leaf.pattern.replace("%", "ü").replace("_", "x") if isinstance(leaf, Like) else None


def rows(random: Random, schema: StructType, predicates: list[Predicate]) -> list[tuple[Any, ...]]:
    """Two rows for each predicate that meet most of its conditions, the rest at random, with NULLs."""
    values: dict[str, list[Any]] = {
        field.name: [None, *[PLAIN.get(field.dataType.typeName(), 1)] * 8] for field in schema
    }
    for predicate in predicates:
        for leaf in leaves(predicate):
            if isinstance(leaf, Compare | In | Like):
                values[leaf.column].append(near(random, leaf))
    made: list[dict[str, Any]] = []
    for predicate in [*predicates, *predicates]:
        row = {name: random.choice(own) for name, own in values.items()}
        row |= {leaf.column: near(random, leaf) for leaf in leaves(predicate) if isinstance(leaf, Compare | In | Like)}
        made.append(row)
    types = {field.name: field.dataType.simpleString() for field in schema}
    return [tuple(fitting(value, types[name]) for name, value in row.items()) for row in made]


def fitting(value: Any, type_name: str) -> Any:
    if value is None:
        return None
    if type_name == "date":
        return EPOCH + timedelta(days=int(value))
    return Decimal(value) if type_name.startswith("decimal") else value


def cells(table: pa.Table) -> list[dict[str, Any]]:
    columns = {}
    for name in table.column_names:
        own, nulls = encode(table.column(name))
        columns[name] = [None if null else value for value, null in zip(own.tolist(), nulls, strict=True)]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize(("name", "make", "step"), [("tpch", "dbgen", 3), ("tpcds", "dsdgen", 12)])
def test_rows_of_a_benchmark_s_scans_satisfy_what_is_stored(
    spark: SparkSession, name: str, make: str, step: int
) -> None:
    random = Random(3)
    full = bool(os.environ.get("OREO_FULL"))
    tables, texts = benchmark(name, make)
    texts = texts if full else texts[::step]
    schemas = {table: StructType.fromDDL(ddl) for table, ddl in tables.items()}
    owner = {field.name: table for table, schema in schemas.items() for field in schema}
    session = spark.newSession()
    readers: dict[str, SqlText] = {}
    frames: dict[str, Any] = {}
    content: dict[str, list[dict[str, Any]]] = {}
    stored: dict[tuple[int, str], list[TableScan]] = {}
    for table, schema in schemas.items():
        empty = session.createDataFrame([], schema).toArrow()
        readers[table] = SqlText([table], {field.name: kind_of(field.type) for field in empty.schema})
        for number, text in enumerate(texts):
            stored[number, table] = readers[table].scans(text, "UTC")
        known = [scan.predicate for number in range(len(texts)) for scan in stored[number, table]]
        frames[table] = session.createDataFrame(rows(random, schema, known[:120]) or [(None,) * len(schema)], schema)
        frames[table].createOrReplaceTempView(table)
        content[table] = cells(frames[table].toArrow())
    judge = compile_java(spark, (Path(__file__).parent / "Filters.java").read_text(), "Filters")
    read = next(method for method in judge.getDeclaredMethods() if method.getName() == "read")
    scans: list[tuple[int, str, list[str]]] = []
    for number, text in enumerate(texts):
        plan = session.sql(text)._jdf.queryExecution().optimizedPlan()
        for first, *conditions in read.invoke(None, _array(spark, plan)):
            plain = [_unqualified(c) for c in conditions if "subquery" not in c.lower()]
            if first in owner:
                scans.append((number, owner[first], plain))
    often = [table for table, _ in Counter(table for _, table, _ in scans).most_common(3)]
    judged = selected = exact = 0
    for table in tables:
        texts_here = sorted({c for _, own, conditions in scans if own == table for c in conditions})
        truth = dict(zip(texts_here, answers(frames[table], texts_here), strict=True))
        asked = sorted({number for number, own, _ in scans if own == table})
        planned: dict[int, list[TableScan] | None] = {}
        if full or table in often:
            planner = CatalystText(spark, [table], schemas[table])
            planned = dict(zip(asked, planner.read([Question(texts[n], "UTC") for n in asked]), strict=True))
        for number, own, conditions in scans:
            if own != table:
                continue
            judged += 1
            found = stored[number, table]
            assert found, (number, table)
            exact += all(scan.exactness is Exactness.EXACT for scan in found)
            for at, row in enumerate(content[table]):
                if all(truth[c] is None or truth[c][at] is True for c in conditions):
                    selected += bool(conditions)
                    assert any(evaluate(scan.predicate, row) is True for scan in found), (number, table, row, found)
                    plan_says = planned.get(number)
                    if plan_says is not None:
                        assert any(evaluate(scan.predicate, row) is True for scan in plan_says), (number, table, row)
    print(f"{name}: {judged} scans, {exact} exact, {selected} rows that a filter lets through")
    assert judged > len(texts)
    assert exact > judged // 3
    assert selected > judged
    assert any(scan.predicate != TRUE for found in stored.values() for scan in found)


def _unqualified(condition: str) -> str:
    """A condition without the names of relations before its columns; numbers keep their points."""
    return re.sub(r"(?<![\w.])[A-Za-z_]\w*\.(?=[A-Za-z_`])|`\w+`\.", "", condition)


def _array(spark: SparkSession, plan: Any) -> Any:
    array = spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    array.add(plan)
    return array.toArray()


def answers(frame: Any, texts: list[str]) -> list[list[Any] | None]:
    """What Spark says about each condition, row by row; None where it does not read its own words."""
    if not texts:
        return []
    try:
        found = frame.selectExpr(*[f"({text}) AS c{number}" for number, text in enumerate(texts)]).collect()
        return [[row[n] for row in found] for n in range(len(texts))]
    except PySparkException:
        if len(texts) == 1:
            return [None]
        half = len(texts) // 2
        return answers(frame, texts[:half]) + answers(frame, texts[half:])
