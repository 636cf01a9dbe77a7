"""Spark's planner as a second reader: what it understands, that it is safe, and that nothing runs."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from history_reference import evaluate
from test_history_fuzz import TIMES, mutated
from test_history_spark_semantics import COLUMNS, conditions, holds, table

from oreo_lakehouse.history.catalysttext import CatalystText, Question, better
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.importing import import_history
from oreo_lakehouse.history.sparktypes import text_kinds
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


@pytest.mark.parametrize("zone", [None, "Nowhere/Else"])
def test_without_a_time_zone_only_what_no_zone_changes_counts(planner: CatalystText, zone: str | None) -> None:
    texts = ["d = '2024-5-1'", "d < timestamp'2024-05-01 12:00:00Z'"]
    first, second = planner.read([Question(f"SELECT * FROM t WHERE {text}", zone) for text in texts])
    assert first is not None
    assert conjuncts(first[0]) == {Compare("d", Op.EQ, Kind.DATE, 19844)}
    assert second is None


def test_a_repeated_statement_is_planned_once_and_means_the_same(spark: SparkSession, planner: CatalystText) -> None:
    texts = [f"SELECT s FROM t WHERE id BETWEEN {n} AND {n + 5} AND d = '2024-5-{n % 9 + 1}'" for n in range(12)] * 3
    together = planner.read([Question(text, "UTC") for text in texts])
    assert together[:12] == together[12:24] == together[24:]
    alone = CatalystText(spark, ["shop.t"], planner.schema, threads=1)
    for text, found in zip(texts[:12], together, strict=False):
        assert alone.read([Question(text, "UTC")]) == [found]
        alone = CatalystText(spark, ["shop.t"], planner.schema, threads=1) if text is texts[5] else alone


VIEWS = {
    "plain": ("SELECT id AS k, d FROM {t} WHERE s = 'x'", "k = 5"),
    "nested": ("SELECT k FROM {plain} WHERE k < 100", "k > 3"),
    "opaque": ("SELECT id AS k FROM {t} WHERE hash(s) = 1", "k = 5"),
    "today": ("SELECT id AS k FROM {t} WHERE d = current_date()", "k = 5"),
}


@pytest.mark.parametrize("catalog", ["", "iceberg."])
def test_views_are_read_through_without_running_anything(
    spark: SparkSession, place: Any, tmp_path: Path, catalog: str
) -> None:
    home = f"{catalog}{place.delta}"
    using = "iceberg" if catalog else "delta"
    spark.sql(f"CREATE TABLE {home}.t (id bigint, s string, d date) USING {using}")
    spark.sql(f"CREATE TABLE {home}.u (id bigint) USING {using}")
    names = {"t": f"{home}.t"} | {name: f"{home}.{name}" for name in VIEWS}
    for name, (text, _) in VIEWS.items():
        spark.sql(f"CREATE VIEW {home}.{name} AS {text.format(**names)}")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW over_it AS SELECT * FROM {home}.t WHERE id < 9")
    texts = [f"SELECT * FROM {home}.{name} WHERE {condition}" for name, (_, condition) in VIEWS.items()]
    texts += ["SELECT * FROM over_it WHERE s = 'a'", f"SELECT * FROM {home}.u WHERE id = 1"]
    file = tmp_path / "log.jsonl"
    file.write_text("".join(json.dumps({"statement_text": t, "start_time": n}) + "\n" for n, t in enumerate(texts)))
    schema = spark.table(f"{home}.t").schema
    kinds = {"id": Kind.INTEGER, "s": Kind.STRING, "d": Kind.DATE}
    history = HistoryStore(LocalStore(str(tmp_path / "store")), "u")
    jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    planner = CatalystText(spark, [f"{home}.t"], schema)
    summary = import_history(history, [f"{home}.t"], kinds, [file], time_zone="UTC", planner=planner)
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == jobs
    assert (summary.imported, summary.unknown, summary.other_tables) == (5, 2, 1)
    plain, nested, opaque, today, temporary = history.read_since({})[0]
    assert bounds(plain.predicate) == {Compare("s", Op.EQ, Kind.STRING, "x"), Compare("id", Op.EQ, Kind.INTEGER, 5)}
    assert bounds(nested.predicate) == {
        Compare("s", Op.EQ, Kind.STRING, "x"),
        Compare("id", Op.LT, Kind.INTEGER, 100),
        Compare("id", Op.GT, Kind.INTEGER, 3),
    }
    assert (opaque.predicate, opaque.reasons) == (TRUE, ("a view whose text is not understood",))
    assert today.predicate == TRUE  # not the day of the import
    assert bounds(temporary.predicate) == {
        Compare("id", Op.LT, Kind.INTEGER, 9),
        Compare("s", Op.EQ, Kind.STRING, "a"),
    }
    without = HistoryStore(LocalStore(str(tmp_path / "other")), "u")
    assert import_history(without, [f"{home}.t"], kinds, [file]).other_tables == 6  # sqlglot knows no views


def bounds(predicate: Predicate) -> set[Predicate]:
    parts = predicate.children if isinstance(predicate, And) else (predicate,)
    return {part for part in parts if not isinstance(part, IsNull)}


def test_char_columns_and_wide_decimals_are_never_misread(spark: SparkSession, place: Any) -> None:
    spark.sql(f"CREATE TABLE {place.delta}.t (c char(5), m decimal(38,0), n decimal(38,10)) USING delta")
    schema = spark.table(f"{place.delta}.t").schema
    statements = [f"SELECT * FROM t WHERE {text}" for text in ("c = 'a'", "m <= 5.5", "n <= 5.5")]
    char, wide, narrow = CatalystText(spark, ["t"], schema).read([Question(text, "UTC") for text in statements])
    assert char is not None
    assert char[0].predicate == TRUE
    assert wide is not None
    assert conjuncts(wide[0]) == {Compare("m", Op.LE, Kind.DECIMAL, Decimal(6))}  # as Spark rounds it
    assert narrow is not None
    assert conjuncts(narrow[0]) == {Compare("n", Op.LE, Kind.DECIMAL, Decimal("5.5"))}
    given = {"c": Kind.OTHER, "m": Kind.DECIMAL, "n": Kind.DECIMAL}
    reader = SqlText(["t"], text_kinds(given, schema))
    assert [reader.scans(text)[0].exactness for text in statements] == [
        Exactness.UNKNOWN,
        Exactness.UNKNOWN,
        Exactness.EXACT,
    ]


HOSTILE = [
    "CALL iceberg.system.rewrite_data_files('{t}')",
    "DROP TABLE {t}",
    "CREATE TABLE {t}2 AS SELECT * FROM {t}",
    "INSERT INTO {t} SELECT * FROM {t} WHERE id = 1",
    "CREATE OR REPLACE TEMP VIEW evil AS SELECT * FROM {t}",
    "CACHE TABLE evil AS SELECT * FROM {t}",
    "SET spark.sql.shuffle.partitions = 77",
    "USE iceberg",
    "EXECUTE IMMEDIATE 'DROP TABLE {t}'",
    "WITH q AS (SELECT id FROM {t} WHERE s LIKE 'a%') SELECT * FROM q JOIN {t} USING (id) WHERE d = '2024-5-1'",
    "SELECT reflect('java.lang.System', 'getProperty', s) FROM {t} WHERE id IN (SELECT id FROM parquet.`/etc`)",
    "FROM {t} |> WHERE id = 1 |> SELECT s",
    "BEGIN DROP TABLE {t}; SELECT 1; END",
]


def test_mutated_statements_change_nothing_in_the_catalog(spark: SparkSession, place: Any) -> None:
    spark.sql(f"CREATE TABLE {place.delta}.t (id bigint, s string, d date) USING delta")
    spark.sql(f"CREATE DATABASE {place.delta}_x")

    def state() -> list[Any]:
        tables = [spark.sql(f"SHOW TABLES IN {name}").collect() for name in (place.delta, f"{place.delta}_x")]
        version = spark.sql(f"DESCRIBE HISTORY {place.delta}.t LIMIT 1").collect()[0]["version"]
        current = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
        return [tables, version, current, spark.conf.get("spark.sql.shuffle.partitions")]

    before = state()
    jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    planner = CatalystText(spark, [f"{place.delta}.t"], spark.table(f"{place.delta}.t").schema)
    random = Random(21)
    texts = [text.format(t=f"{place.delta}.t") for text in HOSTILE]
    planned = 0
    for _ in range(4 * TIMES):
        asked = [*texts, *(mutated(random, random.choice(texts)) for _ in range(100))]
        planned += sum(found is not None for found in planner.read([Question(text, "UTC") for text in asked]))
    assert planned >= 4 * TIMES  # the one query among them, every time
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == jobs
    assert state() == before


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
    reader = SqlText(["t"], text_kinds(kinds, rows.schema))
    plain = [reader.scans(s, "America/New_York") for s in statements]
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
