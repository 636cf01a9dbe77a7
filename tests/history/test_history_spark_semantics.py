"""Spark itself judges what SQL text was taken to mean: where a condition holds, its stored predicate holds.

Thousands of comparisons of columns with literals of every type, in several time zones, with ANSI mode on and off, on
rows with NULLs, NaN, decimals and text beyond ASCII. Exactly understood conditions must hold for the same rows.
"""

from __future__ import annotations

import itertools
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from history_reference import evaluate
from pyspark.errors import PySparkException

from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.sparktypes import text_kinds
from oreo_lakehouse.history.sqltext import SqlText
from oreo_lakehouse.predicates.tree import TRUE
from oreo_lakehouse.predicates.values import encode, kind_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

VALUES: dict[str, list[str]] = {
    "i INT": ["-1", "0", "1", "2", "5", "6", "100", "2147483647"],
    "l BIGINT": ["-1", "0", "1", "2", "5", "6", "16777217", "9007199254740993"],
    "f FLOAT": ["-0.0", "0.1", "1.5", "5", "16777216", "'NaN'", "'Infinity'", "2"],
    "g DOUBLE": ["0.0", "0.1", "1.5", "5", "16777217", "'NaN'", "'-Infinity'", "5.1"],
    "h DECIMAL(38,0)": ["-6", "0", "5", "6", "100", "9" * 38],
    "m DECIMAL(10,2)": ["-0.01", "0.05", "0.06", "0.07", "1.5", "5", "5.55", "100"],
    "s STRING": ["''", "'a'", "'ab'", "'A'", "'ü'", "'a%b'", "'5'", "'2024-05-01'"],
    "d DATE": [f"'{d}'" for d in ("1969-12-31", "2023-12-31", "2024-01-01", "2024-03-10", "2024-05-01", "2024-05-02")],
    "ts TIMESTAMP": [
        f"'{t}'"
        for t in (
            "1960-01-01 00:00:00Z",
            "2024-03-10 07:30:00Z",
            "2024-05-01 00:00:00Z",
            "2024-05-01 00:00:00",
            "2024-05-01 12:00:00Z",
        )
    ],
    "w TIMESTAMP_NTZ": [f"'{t}'" for t in ("2024-03-10 02:30:00", "2024-05-01 00:00:00", "2024-05-01 12:00:00.000001")],
    "b BOOLEAN": ["true", "false"],
    "y BINARY": ["X''", "X'00FF'", "X'61'"],
}
LITERALS = """
-1 0 1 2 5 5.5 0.06-0.01 0.05 5.55 1e0 1.5e0 5L 1.5D 5.1 0.1 16777217 9007199254740993 100 2147483648 1.50BD 2-1 2*2.5
'5' '05' '5.5' 'a' 'ab' '' 'ü' 'A' true false NULL X'61' X'00FF' date'2024-05-01' '2024-05-01' '2024-5-1'
cast('5'|as|int) cast(1|as|double) cast('0.05'|as|decimal(4,2)) cast('NaN'|as|double) cast('2024-05-01'|as|timestamp)
cast(timestamp'2024-05-01|23:30:00'|as|date) '2024-05-01|00:00:00' '2024-05-01T12:00:00Z' '2024-05-01|12:00'
timestamp'2024-05-01|00:00:00' timestamp'2024-05-01|12:00:00.000001' timestamp'2024-03-10|02:30:00'
timestamp'1960-01-01|00:00:00' timestamp_ntz'2024-05-01|12:00:00' timestamp'2024-05-01|00:00:00+05:30'
date'2024-03-31'+interval|1|month date'2024-05-31'-interval|'30'|day add_months(date'2024-03-31',1)
date_add(date'2024-04-30',1) date_sub('2024-05-02',1) to_date('2024-05-01') date'2024-05-01'+1
timestamp'2024-05-01|11:00:00'+interval|1|hour timestamp_ntz'2024-04-30|12:00:00'+interval|1|day
timestamp'2024-05-01|00:00:00'-interval|10|days
""".split()  # noqa: SIM905 - a list of quoted quotes would be unreadable
COLUMNS = [declaration.split()[0] for declaration in VALUES]


def conditions(random: Random) -> list[str]:
    literals = [literal.replace("|", " ") for literal in LITERALS]
    out: list[str] = []
    for column, literal in itertools.product(COLUMNS, literals):
        op = random.choice(["=", "<", "<=", ">", ">=", "<>", "<=>"])
        other, third = random.choice(literals), random.choice(literals)
        out += [
            f"{column} {op} {literal}",
            f"{literal} {random.choice(['<', '>='])} {column}",
            random.choice(
                [
                    f"{column} IN ({literal}, {other})",
                    f"{column} NOT IN ({literal}, {other}, {third})",
                    f"NOT ({column} BETWEEN {literal} AND {other})",
                    f"{column} BETWEEN {other} AND {literal}",
                    f"NOT ({column} {op} {literal} OR {random.choice(COLUMNS)} {op} {other})",
                    f"({column} {op} {literal} AND b) OR NOT ({random.choice(COLUMNS)} < {other})",
                ]
            ),
        ]
    for left, right in itertools.combinations(COLUMNS, 2):
        out.append(f"{left} {random.choice(['=', '<', '<=>'])} {right}")
    patterns = ["a%", "%", "_", "a\\%b", "a\\%%", "\\_", "", "%b", "ü_", "a_"]
    for pattern in patterns:
        out += [f"s LIKE '{pattern}'", f"s NOT LIKE '{pattern}'", f"NOT (s LIKE '{pattern}')"]
    out += ["s LIKE 'a!%b' ESCAPE '!'", "s LIKE 'a|_%' ESCAPE '|'", "startswith(s, 'a%')", "s = 'a\\%b'", 's = "a"']
    out += [
        "b",
        "NOT b",
        "b IS TRUE",
        "b IS NOT TRUE",
        "b IS FALSE",
        "NOT (b IS NOT FALSE)",
        "b IS NULL",
        "NOT (b <=> b)",
    ]
    return out


def table(random: Random) -> str:
    """Rows as SQL, so that Spark folds everything without a job."""
    rows: list[str] = []
    for _ in range(40):
        cells = [
            f"cast({random.choice(['NULL', *values, *values])} AS {declaration.split()[1]})"
            for declaration, values in VALUES.items()
        ]
        rows.append(f"({', '.join(cells)})")
    return f"VALUES {', '.join(rows)} AS t({', '.join(COLUMNS)})"


def holds(rows: DataFrame, texts: list[str]) -> list[list[Any] | None]:
    """What Spark says about each condition, row by row; None where it refuses."""
    try:
        answer = rows.selectExpr(*[f"({text}) AS c{number}" for number, text in enumerate(texts)]).collect()
        return [[row[n] for row in answer] for n in range(len(texts))]
    except PySparkException:  # Spark names no condition: halve until the refused one stands alone
        if len(texts) == 1:
            return [None]
        half = len(texts) // 2
        return holds(rows, texts[:half]) + holds(rows, texts[half:])


@pytest.mark.parametrize(("zone", "ansi"), [("America/New_York", True), (None, False)])
def test_the_stored_predicate_holds_wherever_spark_says_that_the_condition_does(
    spark: SparkSession, zone: str | None, ansi: bool
) -> None:
    random = Random(7)
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone or "Asia/Kolkata")
    session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    rows = session.sql(f"SELECT * FROM {table(random)}")
    arrow = rows.toArrow()
    schema = text_kinds({field.name: kind_of(field.type) for field in arrow.schema}, rows.schema)
    cells = {}
    for name in COLUMNS:
        values, nulls = encode(arrow.column(name))
        cells[name] = [None if null else value for value, null in zip(values.tolist(), nulls, strict=True)]
    neutral = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
    sql = SqlText(["t"], schema)
    understood: list[tuple[str, Any]] = []
    generated = conditions(random)
    assert len(generated) > 2_000
    for text in generated:
        [scan] = sql.scans(f"SELECT * FROM t WHERE {text}", zone)
        if scan.predicate != TRUE:
            understood.append((text, scan))
    judged = exact = 0
    for start in range(0, len(understood), 30):
        part = understood[start : start + 30]
        for (text, scan), truths in zip(part, holds(rows, [text for text, _ in part]), strict=True):
            if truths is None:
                continue
            judged += 1
            exact += scan.exactness is Exactness.EXACT
            for row, truth in zip(neutral, truths, strict=True):
                mine = evaluate(scan.predicate, row) is True
                assert mine or truth is not True, (text, scan.predicate, row)
                assert scan.exactness is not Exactness.EXACT or mine is (truth is True), (text, scan.predicate, row)
    assert judged > 500
    assert exact > 400
