"""A layout's Spark expression gives every row the same block as its assignment on Arrow data."""

import math
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oreo_lakehouse.layouts.generators import generate
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.sort import sort_layout
from oreo_lakehouse.layouts.sqltext import literal, predicate_sql
from oreo_lakehouse.predicates.encoded import EncodedRows
from oreo_lakehouse.predicates.rowtest import holds
from oreo_lakehouse.predicates.tree import And, Compare, CompareColumns, In, Like, Op
from oreo_lakehouse.predicates.values import Kind, python_value
from oreo_lakehouse.predicates.workload import Workload

pytestmark = pytest.mark.spark
MICROS = 1_000_000
CELLS = {
    "i": (pa.int64(), [-(2**63), -1, 0, 1, 7, 2**63 - 1]),
    "small": (pa.int8(), [-128, 0, 127]),
    "f": (pa.float64(), [-math.inf, -1e300, -0.0, 0.0, 5e-324, 1.5, math.inf, math.nan]),
    "g": (pa.float32(), [-1.5, 0.1, 3.4e38, math.nan]),
    "d": (pa.decimal128(38, 2), [Decimal("-" + "9" * 36 + ".99"), Decimal("0.01"), Decimal("0"), Decimal("9" * 36)]),
    "e": (pa.decimal128(5, 5), [Decimal("0.00001"), Decimal("-0.99999"), Decimal("0")]),
    "s": (pa.string(), ["", " ", "a", "it's", "back\\slash", "tab\t", "ünï", "\U0001f600", "a%b_c", "z`z", "$x{y}"]),
    "b": (pa.bool_(), [True, False]),
    "x": (pa.binary(), [b"", b"\x00", b"\xff\x00", b"ab"]),
    "day": (pa.date32(), [-719162, -1, 0, 20000, 2932896]),
    "at": (pa.timestamp("us", "UTC"), [-62135596800 * MICROS, -1, 0, 1, 253402300799 * MICROS + 999999]),
    "wall": (pa.timestamp("us"), [-62135596800 * MICROS, -1, 0, 1, 253402300799 * MICROS + 999999]),
    "we`ird.name": (pa.string(), ["x", "y", "'; DROP"]),
}


def table(seed, rows=400):
    random = Random(seed)
    columns = {
        name: pa.array([None if random.random() < 0.15 else random.choice(pool) for _ in range(rows)], kind)
        for name, (kind, pool) in CELLS.items()
    }
    return pa.table({"id": pa.array(range(rows)), **columns})


def queries(rows, random):
    encoded, out = EncodedRows(rows), []
    for name in CELLS:
        column = encoded.column(name)
        for _ in range(6):
            value = python_value(column.kind, random.choice(column.values))
            out.append(Compare(name, random.choice(list(Op)), column.kind, value))
        values = tuple(python_value(column.kind, v) for v in column.values[:3])
        out.append(In(name, column.kind, values, random.random() < 0.5))
    out += [Like("s", "a\\%%"), Like("s", "%'%", negated=True), CompareColumns("f", Op.LT, "f")]
    return out


def evaluated(spark, path, expression):
    rows = spark.read.parquet(path).selectExpr("id", f"{expression} AS found").collect()
    return [row["found"] for row in sorted(rows, key=lambda row: row["id"])]


@pytest.fixture(params=["NO_CODEGEN", "CODEGEN_ONLY"])
def session(request, spark):
    """Interpreted, as the suite runs for speed, and compiled, as users run it; each on other rows."""
    # Not called `spark`: pytest would start the process's session anew for each parameter.
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.factoryMode", request.param)
    session.conf.set("spark.sql.codegen.wholeStage", str(request.param == "CODEGEN_ONLY").lower())
    return session


@pytest.fixture
def case(session, tmp_path):
    seed = 1 if session.conf.get("spark.sql.codegen.wholeStage") == "true" else 2
    rows = table(seed)
    path = str(tmp_path / "rows.parquet")
    pq.write_table(rows, path)
    return rows, path, Random(seed)


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_every_generator_assigns_the_same_blocks_in_spark(session, case, zone):
    rows, path, random = case
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", zone)
    try:
        sample, layouts = Sample(rows), []
        for names in (["s", "d"], ["wall", "f"], ["at"], ["x", "b", "i"], ["day", "e"], ["we`ird.name", "g"]):
            workload = Workload.of([q for q in queries(rows, random) if getattr(q, "column", "") in names])
            layouts += [sort_layout(sample, names, 16)]
            layouts += [generate(kind, sample, workload, 16) for kind in ("qdtree", "zorder", "hilbert")]
        select = [f"{layout.sql()} AS b{number}" for number, layout in enumerate(layouts)]
        found = sorted(session.read.parquet(path).selectExpr("id", *select).collect(), key=lambda row: row["id"])
        for number, layout in enumerate(layouts):
            assert [row[f"b{number}"] for row in found] == layout.assign(rows).tolist(), layout.describe()
            assert set(np.unique(layout.assign(rows))) <= set(range(layout.blocks))
    finally:
        session.conf.set("spark.sql.session.timeZone", before)


def test_advanced_cuts_of_the_bid_mode_assign_the_same_blocks_in_spark(session, case):
    rows, path, random = case
    sample = Sample(rows)
    pairs = [CompareColumns(*pair) for pair in (("i", Op.LT, "small"), ("f", Op.GE, "g"), ("d", Op.LE, "e"))]
    listed = [q for q in queries(rows, random) if isinstance(q, In) and not q.negated and q.column != "x"]
    likes = [Like("s", "a%"), Like("s", "it%"), Like("we`ird.name", "'%")]
    asked = (pairs, [*listed, Compare("s", Op.EQ, Kind.STRING, "ünï")], likes, [*pairs, *listed, *likes])
    layouts = [generate("qdtree", sample, Workload.of(part * 10), 12, "bid") for part in asked]
    # Whether a cut at one value leaves even blocks depends on how many are wanted.
    layouts += [generate("qdtree", sample, Workload.of(asked[1] * 10), k, "bid") for k in (5, 6, 7, 8, 9, 10)]
    select = [f"{layout.sql()} AS b{number}" for number, layout in enumerate(layouts)]
    found = sorted(session.read.parquet(path).selectExpr("id", *select).collect(), key=lambda row: row["id"])
    for number, layout in enumerate(layouts):
        assert layout.blocks > 1
        assert [row[f"b{number}"] for row in found] == layout.assign(rows).tolist(), layout.describe()
    assert {"columns", "compare"} <= {tag for layout in layouts for tag in cut_tags(layout.to_json()["tree"])}
    assert any(" = " in layout.sql() for layout in layouts)


def cut_tags(tree):
    return [] if tree is None else [*tree["cut"], *cut_tags(tree["left"]), *cut_tags(tree["right"])]


def test_every_condition_holds_for_the_same_rows_in_spark(session, case):
    rows, path, random = case
    conditions = queries(rows, random)
    conditions += [And((a, b)) for a, b in zip(conditions, conditions[7:], strict=False)]
    select = [f"coalesce({predicate_sql(c)}, FALSE) AS c{number}" for number, c in enumerate(conditions)]
    found = sorted(session.read.parquet(path).selectExpr("id", *select).collect(), key=lambda row: row["id"])
    encoded = EncodedRows(rows)
    for number, condition in enumerate(conditions):
        assert [row[f"c{number}"] for row in found] == holds(condition, encoded).tolist(), condition


def test_literals_do_not_depend_on_how_strings_are_parsed(session, case):
    rows, path, _ = case
    before = session.conf.get("spark.sql.parser.escapedStringLiterals")
    try:
        for setting in ("true", "false"):
            session.conf.set("spark.sql.parser.escapedStringLiterals", setting)
            for text in CELLS["s"][1]:
                found = evaluated(session, path, f"s = {literal(Kind.STRING, text)}")
                assert found == [None if cell is None else cell == text for cell in rows["s"].to_pylist()]
    finally:
        session.conf.set("spark.sql.parser.escapedStringLiterals", before)
