"""What SQL text says about a table, case by case."""

from __future__ import annotations

from decimal import Decimal

import pytest

from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.sqltext import NotAQuery, SqlText, TableScan
from oreo_lakehouse.predicates.tree import (
    FALSE,
    TRUE,
    And,
    Compare,
    CompareColumns,
    In,
    IsNull,
    Like,
    Op,
    Or,
    Predicate,
)
from oreo_lakehouse.predicates.values import Kind, Value

SCHEMA = {
    "id": Kind.INTEGER,
    "n": Kind.INTEGER,
    "f": Kind.FLOAT,
    "m": Kind.DECIMAL,
    "s": Kind.STRING,
    "s2": Kind.STRING,
    "d": Kind.DATE,
    "ts": Kind.TIMESTAMP,
    "w": Kind.TIMESTAMP_NTZ,
    "ok": Kind.BOOLEAN,
    "bin": Kind.BINARY,
    "list": Kind.OTHER,
    "Mixed": Kind.INTEGER,
}
MAY_1_2024 = 19_844
DAY_US = 86_400_000_000
NOON = 1_714_564_800_000_000  # 2024-05-01 12:00 UTC


def c(column: str, op: str, value: Value) -> Compare:
    return Compare(column, Op(op), SCHEMA[column], value)


def scans(text: str, dialect: str = "spark", zone: str | None = "UTC") -> list[TableScan]:
    sql = SqlText(["lake.shop.t"], SCHEMA, dialect)
    found = sql.scans(text, zone, NOON)
    assert sql.scans(text, zone, NOON) == found == sql.scans(text, zone, NOON, cached=False)
    return found


def where(condition: str, zone: str | None = "UTC", dialect: str = "spark") -> TableScan:
    [scan] = scans(f"SELECT id FROM t WHERE {condition}", dialect, zone)
    return scan


EXACT: list[tuple[str, Predicate]] = [
    ("id = 5", c("id", "=", 5)),
    ("5 < id", c("id", ">", 5)),
    ("id <> -5", c("id", "!=", -5)),
    ("id < 5.5", c("id", "<=", 5)),
    ("id >= 5.5", c("id", ">", 5)),
    ("id = 5.5", FALSE),
    ("id != 5.5", IsNull("id", negated=True)),
    ("id = 5.0", c("id", "=", 5)),
    ("id < 1e3", c("id", "<", 1000)),
    ("id = '7'", c("id", "=", 7)),
    ("id = 3L", c("id", "=", 3)),
    ("id = 2 + 3 * 4", c("id", "=", 14)),
    ("id = NULL", FALSE),
    ("mixed = 1", c("Mixed", "=", 1)),
    ("T.ID = 1 AND shop.t.n = 2", c("id", "=", 1)),
    ("f = 1", c("f", "=", 1.0)),
    ("f > 0.1", c("f", ">", 0.1)),
    ("m BETWEEN 0.06 - 0.01 AND 0.06 + 0.01", And((c("m", ">=", Decimal("0.05")), c("m", "<=", Decimal("0.07"))))),
    ("m = cast('1.5' as decimal(10,2))", c("m", "=", Decimal("1.5"))),
    ("s > 'a'", c("s", ">", "a")),
    ('s = "it\'s"', c("s", "=", "it's")),
    ("s LIKE 'a%'", Like("s", "a%")),
    ("s NOT LIKE '_b%'", Like("s", "_b%", negated=True)),
    (r"s LIKE 'a\%b%'", Like("s", r"a\%b%")),
    ("s LIKE 'a!%!!\\\\\\\\%' ESCAPE '!'", Like("s", "a\\%!\\\\\\\\%")),
    ("startswith(s, 'a_')", Like("s", "a\\_%")),
    ("d = '2024-05-01'", c("d", "=", MAY_1_2024)),
    ("d >= date '2024-01-31' + interval 3 month", c("d", ">=", MAY_1_2024 - 1)),
    ("d < date '2024-05-01' - interval '90' day", c("d", "<", MAY_1_2024 - 90)),
    ("d > date_sub(to_date('2024-05-01'), 1)", c("d", ">", MAY_1_2024 - 1)),
    ("d = add_months(date'2024-04-01', 1)", c("d", "=", MAY_1_2024)),
    ("d >= current_date() - 7", c("d", ">=", MAY_1_2024 - 7)),
    ("d < timestamp '2024-05-01 00:00:00'", c("d", "<", MAY_1_2024)),
    ("d < timestamp '2024-05-01 10:00:00'", c("d", "<=", MAY_1_2024)),
    ("d = timestamp '2024-05-01 10:00:00'", FALSE),
    ("ts >= '2024-05-01'", c("ts", ">=", MAY_1_2024 * DAY_US)),
    ("ts < timestamp '2024-05-01 12:00:00.5'", c("ts", "<", NOON + 500_000)),
    ("ts < '2024-05-01T14:00:00+02:00'", c("ts", "<", NOON)),
    ("ts < date '2024-05-01'", c("ts", "<", MAY_1_2024 * DAY_US)),
    ("ts < timestamp '2024-05-01 11:00:00' + interval 1 hour", c("ts", "<", NOON)),
    ("w <= timestamp_ntz '2024-05-01 12:00:00'", c("w", "<=", NOON)),
    ("w = timestamp '2024-05-01 12:00:00'", c("w", "=", NOON)),
    ("ok", c("ok", "=", True)),
    ("NOT ok", c("ok", "!=", True)),
    ("ok IS NOT TRUE", Or((IsNull("ok"), c("ok", "!=", True)))),
    ("bin = X'0aFF'", c("bin", "=", b"\x0a\xff")),
    ("id IN (3, 1, 3)", In("id", Kind.INTEGER, (1, 3))),
    ("id IN (2.5, 3)", c("id", "=", 3)),
    ("id IN (1, NULL)", c("id", "=", 1)),
    ("id NOT IN (1, 2)", In("id", Kind.INTEGER, (1, 2), negated=True)),
    ("id NOT IN (1, NULL)", FALSE),
    ("d IN ('2024-05-01', '2024-05-02')", In("d", Kind.DATE, (MAY_1_2024, MAY_1_2024 + 1))),
    ("id NOT BETWEEN 1 AND 2", Or((c("id", "<", 1), c("id", ">", 2)))),
    ("s IS NULL OR s IS NOT NULL", Or((IsNull("s"), IsNull("s", negated=True)))),
    ("id <=> NULL", IsNull("id")),
    ("id <=> 5", And((IsNull("id", negated=True), c("id", "=", 5)))),
    ("NOT (id <=> 5)", Or((IsNull("id"), c("id", "!=", 5)))),
    ("id < n", CompareColumns("id", Op.LT, "n")),
    ("NOT (id < n OR s = s2)", And((CompareColumns("id", Op.GE, "n"), CompareColumns("s", Op.NE, "s2")))),
    ("1 = 1", TRUE),
    ("id = 1 AND 1 = 0", FALSE),
]


@pytest.mark.parametrize(("condition", "expected"), EXACT)
def test_a_condition_is_understood_exactly(condition: str, expected: Predicate) -> None:
    scan = where(condition)
    assert (scan.predicate, scan.exactness, scan.reasons) == (expected, Exactness.EXACT, ())


UNKNOWN = [
    "upper(s) = 'A'",
    "id + 1 = 5",
    "year(d) = 2024",
    "cast(id AS string) = '5'",
    "s = 5",
    "s > date '2024-05-01'",
    "id = '5.5'",
    "id IN (1, '2')",
    "m = 1.5e0",
    "m = '1.5'",
    "f = 'NaN'",
    "f = 16777217",
    "id = 99999999999999999999",
    "ok > false",
    "ok = 1",
    "d = '2024-5-1'",
    "d = '2024-13-01'",
    "ts IN ('2024-05-01')",
    "ts > timestamp '2024-05-01 00:00:00' + interval 1 month",
    "s LIKE s2",
    r"s LIKE 'a\b'",
    r"s = '\x41'",
    "s = 'a''b'",
    "s LIKE ANY ('a', 'b')",
    "s RLIKE 'a.*'",
    "s ILIKE 'a%'",
    "list = 1",
    "s.field = 1",
    "nosuch = 1",
    "rand() < 0.5",
    "id = n + 1",
    "id < s",
    "id = (SELECT max(x) FROM u)",
    "id IN (SELECT x FROM u)",
    "id NOT IN (SELECT x FROM u)",
    "EXISTS (SELECT 1 FROM u WHERE u.x = t.id)",
    "(id, n) IN ((1, 2))",
    "CASE WHEN id = 1 THEN true END",
    "id BETWEEN SYMMETRIC 2 AND 1",
    "id = 1 OR my_udf(n)",
]


@pytest.mark.parametrize("condition", UNKNOWN)
def test_what_is_not_certain_is_unknown_with_a_reason(condition: str) -> None:
    for text in (condition, f"NOT ({condition})"):
        scan = where(text)
        if text == "NOT (id = 1 OR my_udf(n))":
            assert (scan.predicate, scan.exactness) == (c("id", "!=", 1), Exactness.RELAXED)
        else:
            assert (scan.predicate, scan.exactness) == (TRUE, Exactness.UNKNOWN)
        assert scan.reasons


def test_an_unknown_conjunct_leaves_the_rest() -> None:
    scan = where("id = 1 AND upper(s) = 'A'")
    assert (scan.predicate, scan.exactness, scan.reasons) == (
        c("id", "=", 1),
        Exactness.RELAXED,
        ("upper of a column",),
    )


def test_a_time_without_a_known_zone_is_relaxed_to_all_zones() -> None:
    scan = where("ts >= '2024-05-01 12:00:00'", zone=None)
    assert scan.predicate == c("ts", ">=", NOON - 14 * 3_600_000_000)
    assert scan.exactness is Exactness.RELAXED
    assert where("NOT (ts >= '2024-05-01 12:00:00')", zone=None).predicate == c("ts", "<", NOON + 12 * 3_600_000_000)
    assert where("NOT (ts = '2024-05-01 12:00:00')", zone=None).predicate == IsNull("ts", negated=True)


def test_the_session_zone_decides_what_a_wall_clock_time_means() -> None:
    assert where("ts >= '2024-05-01 14:00:00'", zone="Europe/Berlin").predicate == c("ts", ">=", NOON)
    assert where("ts >= '2024-05-01 14:00:00'", zone="+02:00").predicate == c("ts", ">=", NOON)


def test_the_current_time_is_relaxed_by_what_a_query_may_wait() -> None:
    assert where("ts > now() - interval 1 hour").predicate == c("ts", ">", NOON - 3_600_000_000)
    assert where("ts < now()").predicate == c("ts", "<", NOON + 3_600_000_000)


STRUCTURE: list[tuple[str, list[Predicate]]] = [
    ("SELECT * FROM lake.shop.t AS x WHERE x.id = 1", [c("id", "=", 1)]),
    ("SELECT * FROM other.t WHERE id = 1", []),
    ("SELECT * FROM t JOIN u ON t.id = u.id AND t.n = 3 WHERE u.z = 4 AND s = 'a'",
     [And((c("n", "=", 3), c("s", "=", "a")))]),
    ("SELECT * FROM u LEFT JOIN t ON t.id = u.id AND t.n = 3 WHERE t.s IS NULL", [c("n", "=", 3)]),
    ("SELECT * FROM u LEFT JOIN t ON t.id = u.id WHERE t.n = 3 AND t.s IS NULL", [And((c("n", "=", 3), IsNull("s")))]),
    ("SELECT * FROM t LEFT JOIN u ON t.id = u.id AND t.n = 3 WHERE t.s IS NULL", [IsNull("s")]),
    ("SELECT * FROM t RIGHT JOIN u ON t.n = 3 WHERE t.s IS NULL", [c("n", "=", 3)]),
    ("SELECT * FROM t FULL JOIN u ON t.n = 3 WHERE t.s IS NULL", [TRUE]),
    ("SELECT * FROM t FULL JOIN u ON t.n = 3 WHERE t.s = 'a'", [c("s", "=", "a")]),
    ("SELECT * FROM u LEFT JOIN t ON u.id = t.id JOIN v ON t.s IS NULL", [TRUE]),
    ("SELECT * FROM t a, t b WHERE a.id = b.id AND a.n = 1 AND b.n = 2", [c("n", "=", 1), c("n", "=", 2)]),
    ("SELECT * FROM u LEFT SEMI JOIN t ON u.x = t.id AND t.n = 1 WHERE s = 'a'", [c("n", "=", 1)]),
    ("SELECT * FROM t LEFT ANTI JOIN u ON t.n = 1 WHERE t.s = 'a'", [c("s", "=", "a")]),
    ("SELECT * FROM u NATURAL JOIN t WHERE n = 1", [TRUE]),
    ("SELECT * FROM u JOIN t USING (id) WHERE id = 1 AND n = 2", [c("n", "=", 2)]),
    ("SELECT * FROM (u JOIN t ON u.id = t.id) WHERE t.n = 2", [c("n", "=", 2)]),
    ("SELECT * FROM v LEFT JOIN (u JOIN t ON u.id = t.id AND t.n = 2) ON v.x = t.id WHERE t.s IS NULL",
     [c("n", "=", 2)]),
    ("SELECT * FROM (SELECT id AS k, s FROM t WHERE n = 1) q WHERE q.k = 2 AND s = 'a'",
     [And((c("n", "=", 1), c("id", "=", 2), c("s", "=", "a")))]),
    ("WITH q AS (SELECT * FROM t WHERE n = 1) SELECT * FROM q a JOIN q b ON a.id = b.id WHERE a.s = 'a'",
     [And((c("n", "=", 1), c("s", "=", "a"))), c("n", "=", 1)]),
    ("WITH t AS (SELECT 1 AS id) SELECT * FROM t WHERE id = 1", []),
    ("WITH q AS (SELECT * FROM t) SELECT 1", []),
    ("SELECT * FROM (SELECT id FROM t LIMIT 5) WHERE id = 1", [TRUE]),
    ("SELECT * FROM (SELECT id, row_number() OVER (ORDER BY n) r FROM t) WHERE id = 1 AND r = 1", [TRUE]),
    ("SELECT * FROM (SELECT id, max(n) m FROM t GROUP BY id) WHERE id = 1", [c("id", "=", 1)]),
    ("SELECT * FROM (SELECT id, n FROM t GROUP BY id, n WITH ROLLUP) WHERE id IS NULL", [TRUE]),
    ("SELECT * FROM (SELECT u.* FROM u JOIN t ON u.x = t.id) WHERE n = 1", [TRUE]),
    ("SELECT * FROM (SELECT * EXCEPT (n) FROM t) WHERE id = 1", [TRUE]),
    ("SELECT id FROM t WHERE n = 1 UNION ALL SELECT id FROM t WHERE n = 2", [c("n", "=", 1), c("n", "=", 2)]),
    ("SELECT * FROM (SELECT id FROM t UNION SELECT x FROM u) WHERE id = 1", [TRUE]),
    ("SELECT * FROM u WHERE x IN (SELECT id FROM t WHERE n = 1 AND t.s = u.s)", [c("n", "=", 1)]),
    ("SELECT (SELECT max(id) FROM t WHERE n = 1) FROM u", [c("n", "=", 1)]),
    ("SELECT * FROM t WHERE (t.n = 1 AND u.x = 2) OR t.n = 3", [Or((c("n", "=", 1), c("n", "=", 3)))]),
    ("SELECT * FROM t JOIN u ON t.id = u.id WHERE (t.n = 1 AND u.x = 2) OR (t.n = 3 AND u.x = 4)",
     [Or((c("n", "=", 1), c("n", "=", 3)))]),
    ("SELECT * FROM t TABLESAMPLE (10 PERCENT) WHERE n = 1", [TRUE]),
    ("SELECT * FROM t VERSION AS OF 3 WHERE n = 1", [c("n", "=", 1)]),
    ("SELECT * FROM t LATERAL VIEW explode(list) e AS s WHERE n = 1 AND s = 'a'", [c("n", "=", 1)]),
    ("INSERT INTO u SELECT * FROM t WHERE n = 1", [c("n", "=", 1)]),
    ("CREATE TABLE u AS SELECT * FROM t WHERE n = 1", [c("n", "=", 1)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), STRUCTURE)
def test_conditions_go_to_the_scans_that_they_restrict(text: str, expected: list[Predicate]) -> None:
    assert [scan.predicate for scan in scans(text)] == expected


def test_a_join_condition_loses_nothing_of_the_scan_s_own_predicate() -> None:
    [scan] = scans("SELECT * FROM t JOIN u ON t.id = u.id WHERE t.n = 1 AND t.d > u.d")
    assert (scan.predicate, scan.exactness) == (c("n", "=", 1), Exactness.EXACT)


def test_columns_that_differ_only_in_case_are_ambiguous() -> None:
    [scan] = SqlText(["t"], {"a": Kind.INTEGER, "A": Kind.INTEGER}).scans("SELECT * FROM t WHERE a = 1")
    assert (scan.predicate, scan.exactness) == (TRUE, Exactness.UNKNOWN)


def test_the_columns_read_are_named() -> None:
    [scan] = scans("SELECT s, count(*) FROM t JOIN u ON t.id = u.id WHERE d > '2024-01-01' GROUP BY s ORDER BY max(f)")
    assert scan.columns == ("id", "f", "s", "d")
    [scan] = scans("SELECT * FROM t")
    assert scan.columns == tuple(SCHEMA)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("trino", "SELECT * FROM lake.shop.t WHERE ts >= TIMESTAMP '2024-05-01 12:00:00' AND s LIKE 'a%'"),
        ("snowflake", "SELECT * FROM LAKE.SHOP.T WHERE TS >= '2024-05-01 12:00:00'::timestamp_tz AND S LIKE 'a%'"),
        ("databricks", "SELECT * FROM lake.shop.t WHERE ts >= TIMESTAMP '2024-05-01 12:00:00' AND s LIKE 'a%'"),
    ],
)
def test_other_dialects_are_read(dialect: str, text: str) -> None:
    [scan] = scans(text, dialect)
    assert scan.predicate == And((c("ts", ">=", NOON), Like("s", "a%")))


def test_unqualified_names_are_relative_to_the_namespace() -> None:
    sql = SqlText(["lake.shop.t", "/data/t"], SCHEMA)
    assert len(sql.scans("SELECT * FROM t", namespace=("lake", "shop"))) == 1
    assert sql.scans("SELECT * FROM t", namespace=("lake", "hr")) == []
    assert len(sql.scans("SELECT * FROM delta.`file:/data/t/`")) == 1
    assert sql.scans("SELECT * FROM shop.t.files") == []


@pytest.mark.parametrize(
    "text",
    ["CALL system.drop_everything()", "DROP TABLE t", "DELETE FROM t WHERE id = 1", "UPDATE t SET n = 1", "SET x = 1",
     "OPTIMIZE t", "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE", "CREATE VIEW v AS SELECT * FROM t"],
)  # fmt: skip
def test_statements_that_are_no_queries_are_told_apart(text: str) -> None:
    with pytest.raises(NotAQuery):
        scans(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELEC",
        "SELECT * FROM t WHERE",
        "SELECT 1; SELECT 2",
        "",
        "SELECT " + "(" * 10_000 + "1",
        "SELECT * FROM t WHERE " + "NOT " * 5_000 + "ok",
        "SELECT " + "CASE WHEN ok THEN " * 1_000 + "1" + " END" * 1_000 + " FROM t",
        "SELECT '" + "x" * 600_000 + "' FROM t",
        "SELECT 'unclosed FROM t",
        "WITH a0 AS (SELECT * FROM t), "
        + ", ".join(f"a{i} AS (SELECT * FROM a{i - 1} JOIN a{i - 1} b)" for i in range(1, 40))
        + " SELECT * FROM a39",
    ],
)
def test_hostile_statements_are_refused(text: str) -> None:
    with pytest.raises(HistoryError):
        scans(text)


def test_large_but_honest_statements_are_read() -> None:
    values = range(20_000)
    assert where(f"id IN ({', '.join(map(str, values))})").predicate == In("id", Kind.INTEGER, tuple(values))
    many = where(" OR ".join(f"id = {i}" for i in range(3_000))).predicate
    assert isinstance(many, Or)
    assert len(many.children) == 3_000


def test_an_unknown_dialect_is_an_error() -> None:
    with pytest.raises(HistoryError, match="klingon"):
        SqlText(["t"], SCHEMA, "klingon")
