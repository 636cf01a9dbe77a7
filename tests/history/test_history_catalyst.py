"""Spark's planner as a second reader: what it understands, that it is safe, and that nothing runs."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from history_reference import evaluate
from test_history_spark_semantics import COLUMNS, conditions, holds, table

from oreo_lakehouse.history.catalysttext import CatalystText, Question, better
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.importing import import_history
from oreo_lakehouse.history.sqltext import SqlText, TableScan
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.predicates.tree import TRUE, And, Compare, In, IsNull, Op, Predicate
from oreo_lakehouse.predicates.values import Kind, encode, kind_of
from oreo_lakehouse.store import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def planner(spark: SparkSession) -> CatalystText:
    schema = spark.sql("SELECT 1L AS id, 'a' AS s, date'2024-01-01' AS d, 1.5BD AS m").schema
    return CatalystText(spark, ["shop.t"], schema)


def scans(planner: CatalystText, text: str) -> list[TableScan] | None:
    return planner.read([Question(text, "UTC")])[0]


def conjuncts(scan: TableScan) -> set[Predicate]:
    parts = scan.predicate.children if isinstance(scan.predicate, And) else (scan.predicate,)
    return {part for part in parts if not isinstance(part, IsNull)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM shop.t WHERE id = '5'", [{Compare("id", Op.EQ, Kind.INTEGER, 5)}]),
        ("SELECT * FROM t WHERE d = '2024-5-1'", [{Compare("d", Op.EQ, Kind.DATE, 19844)}]),
        ("SELECT * FROM t WHERE s = 'a\\x41'", [{Compare("s", Op.EQ, Kind.STRING, "ax41")}]),
        ("SELECT * FROM (SELECT id FROM t UNION ALL SELECT id FROM t) WHERE id IN (1, 2)",
         [{In("id", Kind.INTEGER, (1, 2))}] * 2),
        ("SELECT a.s FROM t a JOIN t b ON a.id = b.id WHERE a.id = 3", [{Compare("id", Op.EQ, Kind.INTEGER, 3)}] * 2),
        ("WITH q AS (SELECT id, max(s) m FROM t GROUP BY id) SELECT * FROM q WHERE id > 7 AND m = 'x'",
         [{Compare("id", Op.GT, Kind.INTEGER, 7)}]),
        ("SELECT * FROM t VERSION AS OF 3 WHERE id < 2", [{Compare("id", Op.LT, Kind.INTEGER, 2)}]),
        ("SELECT 1", []),
    ],
)  # fmt: skip
def test_the_planner_finds_each_scan_s_filters(
    planner: CatalystText, text: str, expected: list[set[Predicate]]
) -> None:
    found = scans(planner, text)
    assert found is not None
    assert [conjuncts(scan) for scan in found] == expected


@pytest.mark.parametrize(
    "text",
    [
        "CALL iceberg.system.expire_snapshots('x')",
        "DROP TABLE shop.t",
        "INSERT INTO shop.t SELECT * FROM shop.t",
        "SELECT * FROM t WHERE size(sequence(1, 1000000000)) > 0",
        "SELECT * FROM t WHERE repeat('x', 2000000000) = s",
        "SELECT * FROM t WHERE java_method('java.lang.System', 'exit', 0) = 1",
        "SELECT * FROM t WHERE id IN (SELECT reflect('java.lang.System', 'exit', 0))",
        "WITH q AS (SELECT * FROM range(10)) SELECT * FROM q",
        "SELECT * FROM t JOIN no_such_table USING (id)",
        "SELECT * FROM t WHERE d = current_date()",
        "SELECT * FROM parquet.`/etc/passwd`",
        "EXECUTE IMMEDIATE 'DROP TABLE shop.t'",
        "not sql",
    ],
)
def test_what_is_not_plainly_a_query_is_refused(planner: CatalystText, text: str) -> None:
    assert scans(planner, text) is None


def test_without_a_time_zone_the_planner_is_not_asked(planner: CatalystText) -> None:
    assert planner.read([Question("SELECT * FROM t WHERE id = 1")]) == [None]


def test_planning_starts_no_job(spark: SparkSession, planner: CatalystText) -> None:
    before = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    planner.read([Question(f"SELECT * FROM t WHERE id = {n}", "UTC") for n in range(20)])
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == before


def test_the_planner_s_reading_is_safe_and_no_weaker(spark: SparkSession) -> None:
    random = Random(11)
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    rows = session.sql(f"SELECT * FROM {table(random)}")
    arrow = rows.toArrow()
    kinds = {field.name: kind_of(field.type) for field in arrow.schema}
    cells = {}
    for name in COLUMNS:
        values, nulls = encode(arrow.column(name))
        cells[name] = [None if null else value for value, null in zip(values.tolist(), nulls, strict=True)]
    neutral = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
    texts = random.sample(conditions(random), 250)
    statements = [f"SELECT * FROM t WHERE {text}" for text in texts]
    planned = CatalystText(spark, ["t"], rows.schema).read([Question(s, "America/New_York") for s in statements])
    plain = [SqlText(["t"], kinds).scans(s, "America/New_York") for s in statements]
    judged = gained = 0
    chosen = [(text, better(p, q)[0], p[0]) for text, p, q in zip(texts, plain, planned, strict=True) if q]
    for start in range(0, len(chosen), 30):
        part = chosen[start : start + 30]
        for (text, scan, other), truths in zip(part, holds(rows, [text for text, _, _ in part]), strict=True):
            if truths is None:
                continue
            judged += 1
            gained += scan.exactness is Exactness.EXACT and other.exactness is not Exactness.EXACT
            for row, truth in zip(neutral, truths, strict=True):
                mine = evaluate(scan.predicate, row) is True
                assert mine or truth is not True, (text, scan.predicate, row)
                assert scan.exactness is not Exactness.EXACT or mine is (truth is True), (text, scan.predicate, row)
    assert judged > 50
    assert gained > 1
    assert any(scan.predicate != TRUE for _, scan, _ in chosen)


def test_an_import_asks_the_planner_about_what_is_unclear(
    spark: SparkSession, planner: CatalystText, tmp_path: Path
) -> None:
    file = tmp_path / "log.jsonl"
    texts = [
        "SELECT * FROM t WHERE d = '2024-5-1'",
        "SELECT * FROM t WHERE id = 1",
        "SELECT * FROM t WHERE hash(s) = 1",
    ]
    file.write_text("".join(json.dumps({"statement_text": text, "start_time": 5}) + "\n" for text in texts))
    history = HistoryStore(LocalStore(str(tmp_path / "store")), "u")
    schema = {"id": Kind.INTEGER, "s": Kind.STRING, "d": Kind.DATE, "m": Kind.DECIMAL}
    summary = import_history(history, ["shop.t"], schema, [file], time_zone="UTC", planner=planner)
    assert (summary.imported, summary.relaxed, summary.unknown) == (3, 0, 1)
    assert import_history(history, ["shop.t"], schema, [file], time_zone="UTC", planner=planner).imported == 0
