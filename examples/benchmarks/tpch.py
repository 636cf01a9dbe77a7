"""TPC-H denormalised around lineitem, and the paper's 13 query templates as predicates on it."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from oreo_lakehouse.predicates.tree import And, Compare, CompareColumns, In, Op, Or, Predicate
from oreo_lakehouse.predicates.values import Kind, Value

Random = np.random.Generator
SCALE_FACTOR = 0.07
"""About 420,000 lineitems."""
_LINES = 5_990_000
"""Lineitems at scale factor 1, a little less than there are."""
_PART = 25_000
"""Rows of a row group: small, so that Spark can divide the file evenly."""
_JOINS = [
    ("l_orderkey", "orders", "o_orderkey", ["o_custkey", "o_orderstatus", "o_orderdate", "o_orderpriority"], ""),
    ("l_partkey", "part", "p_partkey", ["p_brand", "p_type", "p_size", "p_container"], ""),
    ("l_suppkey", "supplier", "s_suppkey", ["s_nationkey"], ""),
    ("o_custkey", "customer", "c_custkey", ["c_nationkey", "c_mktsegment"], ""),
    ("s_nationkey", "nation", "n_nationkey", ["n_name", "n_regionkey"], "s_"),
    ("c_nationkey", "nation", "n_nationkey", ["n_name", "n_regionkey"], "c_"),
    ("c_n_regionkey", "region", "r_regionkey", ["r_name"], "c_"),
]


def rows(folder: Path, count: int) -> pa.Table:
    """`count` denormalised lineitems in the order of their keys, made in `folder` on first use."""
    return pq.read_table(file(folder, count))


def file(folder: Path, count: int) -> Path:
    """The Parquet file with these rows, at the least scale factor that has so many."""
    made = folder / f"tpch-{count}.parquet"
    if made.exists():
        return made
    if shutil.which("tpchgen-cli") is None:
        raise SystemExit("tpchgen-cli is not installed; run with: uv run --group bench")
    small = count <= SCALE_FACTOR * _LINES
    scale = SCALE_FACTOR if small else math.ceil(100 * count / _LINES) / 100
    raw = folder if small else folder / f"scale-{scale}"
    raw.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(["tpchgen-cli", "parquet", "-s", str(scale), "--output-dir", str(raw)], check=True)
        _denormalise(raw, count, made)
    finally:
        if not small:
            shutil.rmtree(raw)
    return made


def _denormalise(raw: Path, count: int, made: Path) -> None:
    """Lineitems joined with all that they refer to, part by part: millions of wide rows are many gigabytes."""
    others = {
        (name, prefix): _plain(pq.read_table(raw / f"{name}.parquet", columns=[other, *wanted]))
        for _, name, other, wanted, prefix in _JOINS
    }
    left, writer, partial = count, None, made.with_suffix(".partial")
    try:
        for batch in pq.ParquetFile(raw / "lineitem.parquet").iter_batches(_PART):
            out = _plain(pa.Table.from_batches([batch])).slice(0, left)
            for key, name, other, wanted, prefix in _JOINS:
                table = others[name, prefix]
                at = np.searchsorted(table[other].to_numpy(), out[key].to_numpy())  # every key column is sorted
                for column in wanted:
                    out = out.append_column(prefix + column, table[column].take(pa.array(at)))
            writer = writer or pq.ParquetWriter(partial, out.schema)
            writer.write_table(out)
            left -= len(out)
            if left <= 0:
                break
    finally:
        if writer is not None:
            writer.close()
    if left > 0:
        raise SystemExit(f"{raw} has {left:,} lineitems too few for {made}")
    partial.rename(made)


def _plain(table: pa.Table) -> pa.Table:
    """Strings as strings: Arrow's views of them cannot be gathered."""
    types = [pa.string() if pa.types.is_string_view(f.type) else f.type for f in table.schema]
    return table.cast(pa.schema(zip(table.schema.names, types, strict=True)))


def _day(year: int, month: int = 1, day: int = 1) -> int:
    return (date(year + (month - 1) // 12, (month - 1) % 12 + 1, day) - date(1970, 1, 1)).days


def _date(column: str, op: Op, day: int) -> Compare:
    return Compare(column, op, Kind.DATE, day)


def _between(column: str, low: int, high: int) -> tuple[Predicate, Predicate]:
    return _date(column, Op.GE, low), _date(column, Op.LT, high)


def _is(column: str, value: Value) -> Compare:
    return Compare(column, Op.EQ, Kind.STRING, value)


class Templates:
    """Draws queries; categories are drawn from the values that the table has."""

    def __init__(self, table: pa.Table) -> None:
        names = ("c_mktsegment", "c_r_name", "s_n_name", "p_type", "l_shipmode", "p_brand", "p_container")
        self._values = {name: sorted(table[name].unique().to_pylist()) for name in names}
        self.all: dict[str, Callable[[Random], Predicate]] = {
            name.removeprefix("_"): getattr(self, name) for name in dir(self) if name.startswith("_q")
        }

    def _pick(self, random: Random, column: str, count: int = 1) -> Any:
        chosen = random.choice(len(self._values[column]), count, replace=False)
        found = sorted(self._values[column][i] for i in chosen)
        return found[0] if count == 1 else tuple(found)

    def _q1(self, random: Random) -> Predicate:
        return _date("l_shipdate", Op.LE, _day(1998, 12, 1) - int(random.integers(60, 121)))

    def _q3(self, random: Random) -> Predicate:
        day = _day(1995, 3, int(random.integers(1, 32)))
        segment = self._pick(random, "c_mktsegment")
        return And((_is("c_mktsegment", segment), _date("o_orderdate", Op.LT, day), _date("l_shipdate", Op.GT, day)))

    def _q4(self, random: Random) -> Predicate:
        month = int(random.integers(1, 59))
        late = CompareColumns("l_commitdate", Op.LT, "l_receiptdate")
        return And((*_between("o_orderdate", _day(1993, month), _day(1993, month + 3)), late))

    def _q5(self, random: Random) -> Predicate:
        year = int(random.integers(1993, 1998))
        return And(
            (_is("c_r_name", self._pick(random, "c_r_name")), *_between("o_orderdate", _day(year), _day(year + 1)))
        )

    def _q6(self, random: Random) -> Predicate:
        year, percent = int(random.integers(1993, 1998)), int(random.integers(2, 10))
        discount = [
            Compare("l_discount", op, Kind.DECIMAL, Decimal(percent + d) / 100) for op, d in ((Op.GE, -1), (Op.LE, 1))
        ]
        quantity = Compare("l_quantity", Op.LT, Kind.DECIMAL, Decimal(int(random.integers(24, 26))))
        return And((*_between("l_shipdate", _day(year), _day(year + 1)), *discount, quantity))

    def _q7(self, random: Random) -> Predicate:
        a, b = self._pick(random, "s_n_name", 2)
        pairs = Or((And((_is("s_n_name", a), _is("c_n_name", b))), And((_is("s_n_name", b), _is("c_n_name", a)))))
        return And((pairs, *_between("l_shipdate", _day(1995), _day(1997))))

    def _q8(self, random: Random) -> Predicate:
        region, kind = self._pick(random, "c_r_name"), self._pick(random, "p_type")
        return And((_is("c_r_name", region), *_between("o_orderdate", _day(1995), _day(1997)), _is("p_type", kind)))

    def _q10(self, random: Random) -> Predicate:
        month = int(random.integers(2, 26))
        return And((*_between("o_orderdate", _day(1993, month), _day(1993, month + 3)), _is("l_returnflag", "R")))

    def _q12(self, random: Random) -> Predicate:
        year = int(random.integers(1993, 1998))
        modes = In("l_shipmode", Kind.STRING, self._pick(random, "l_shipmode", 2))
        late = CompareColumns("l_commitdate", Op.LT, "l_receiptdate")
        return And((modes, *_between("l_receiptdate", _day(year), _day(year + 1)), late))

    def _q14(self, random: Random) -> Predicate:
        month = int(random.integers(1, 61))
        return And(_between("l_shipdate", _day(1993, month), _day(1993, month + 1)))

    def _q17(self, random: Random) -> Predicate:
        return And(
            (_is("p_brand", self._pick(random, "p_brand")), _is("p_container", self._pick(random, "p_container")))
        )

    def _q19(self, random: Random) -> Predicate:
        parts: list[Predicate] = []
        for size, low, high in ((5, 1, 10), (10, 10, 20), (15, 20, 30)):
            start = Decimal(int(random.integers(low, high + 1)))
            quantity = [Compare("l_quantity", op, Kind.DECIMAL, v) for op, v in ((Op.GE, start), (Op.LE, start + 10))]
            sizes = [Compare("p_size", op, Kind.INTEGER, v) for op, v in ((Op.GE, 1), (Op.LE, size))]
            parts.append(And((_is("p_brand", self._pick(random, "p_brand")), *quantity, *sizes)))
        return And(
            (
                In("l_shipmode", Kind.STRING, ("AIR", "REG AIR")),
                _is("l_shipinstruct", "DELIVER IN PERSON"),
                Or(tuple(parts)),
            )
        )

    def _q21(self, random: Random) -> Predicate:
        late = CompareColumns("l_receiptdate", Op.GT, "l_commitdate")
        return And((_is("s_n_name", self._pick(random, "s_n_name")), _is("o_orderstatus", "F"), late))
