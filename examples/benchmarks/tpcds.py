"""TPC-DS denormalised around store_sales, and the paper's 17 query templates as predicates on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from oreo_lakehouse.predicates.tree import And, Compare, In, Op, Or, Predicate
from oreo_lakehouse.predicates.values import Kind

Random = np.random.Generator
SCALE_FACTOR = 0.15
"""About 430,000 sales."""
_SQL = """
    SELECT ss_quantity, ss_list_price::DOUBLE AS ss_list_price, ss_sales_price::DOUBLE AS ss_sales_price,
        ss_net_profit::DOUBLE AS ss_net_profit, ss_coupon_amt::DOUBLE AS ss_coupon_amt,
        ss_wholesale_cost::DOUBLE AS ss_wholesale_cost, d_date, d_year, d_moy, d_dom, d_dow, d_qoy, t_hour, t_minute,
        i_manufact_id, i_manager_id, i_category, i_class, i_brand, i_current_price::DOUBLE AS i_current_price,
        cd_gender, cd_marital_status, cd_education_status, hd_dep_count, hd_vehicle_count, hd_buy_potential,
        s_state, s_county, s_city, s_number_employees, s_store_name, ca_state, ca_country
    FROM store_sales JOIN date_dim ON ss_sold_date_sk = d_date_sk JOIN item ON ss_item_sk = i_item_sk
        JOIN store ON ss_store_sk = s_store_sk JOIN time_dim ON ss_sold_time_sk = t_time_sk
        JOIN customer_demographics ON ss_cdemo_sk = cd_demo_sk
        JOIN household_demographics ON ss_hdemo_sk = hd_demo_sk JOIN customer_address ON ss_addr_sk = ca_address_sk
    ORDER BY ss_ticket_number
"""


def rows(folder: Path, count: int) -> pa.Table:
    """`count` denormalised sales in the order of their tickets, made in `folder` on first use."""
    made = folder / f"tpcds-{count}.parquet"
    if not made.exists():
        try:
            import duckdb
            import duckdb_extensions

            duckdb_extensions.import_extension("tpcds")
        except ImportError as error:
            packages = "--with duckdb --with duckdb-extensions --with duckdb-extension-tpcds"
            raise SystemExit(
                f"DuckDB's tpcds extension is not installed; run: uv run {packages} examples/benchmarks/decisions.py"
            ) from error
        folder.mkdir(parents=True, exist_ok=True)
        connection = duckdb.connect()
        connection.execute("LOAD tpcds")
        connection.execute(f"CALL dsdgen(sf={SCALE_FACTOR})")
        pq.write_table(connection.execute(_SQL).to_arrow_table().slice(0, count), made)
    return pq.read_table(made)


def _number(column: str, op: Op, value: float) -> Compare:
    return Compare(column, op, Kind.INTEGER if isinstance(value, int) else Kind.FLOAT, value)


def _between(column: str, low: float, high: float) -> tuple[Predicate, Predicate]:
    return _number(column, Op.GE, low), _number(column, Op.LE, high)


class Templates:
    """Draws queries; categories are drawn from the values that the table has."""

    def __init__(self, table: pa.Table) -> None:
        self._values: dict[str, list[Any]] = {
            name: sorted(v for v in table[name].unique().to_pylist() if v is not None) for name in table.column_names
        }
        self.all: dict[str, Callable[[Random], Predicate]] = {
            name.removeprefix("_"): getattr(self, name) for name in dir(self) if name.startswith("_q")
        }

    def _is(self, random: Random, *columns: str) -> list[Predicate]:
        """Equality with one of the column's values, for each column."""
        out: list[Predicate] = []
        for column in columns:
            value = self._values[column][int(random.integers(len(self._values[column])))]
            kind = Kind.INTEGER if isinstance(value, int) else Kind.STRING
            out.append(Compare(column, Op.EQ, kind, value))
        return out

    def _in(self, random: Random, column: str, count: int) -> Predicate:
        found = self._values[column]
        chosen = sorted(found[i] for i in random.choice(len(found), min(count, len(found)), replace=False))
        return In(column, Kind.INTEGER if isinstance(chosen[0], int) else Kind.STRING, tuple(chosen))

    def _q3(self, random: Random) -> Predicate:
        return And((*self._is(random, "i_manufact_id"), _number("d_moy", Op.EQ, 11)))

    def _q7(self, random: Random) -> Predicate:
        return And(tuple(self._is(random, "cd_gender", "cd_marital_status", "cd_education_status", "d_year")))

    def _q13(self, random: Random) -> Predicate:
        parts = [
            And(
                (
                    *self._is(random, "cd_marital_status", "cd_education_status"),
                    *_between("ss_sales_price", low, low + 50.0),
                )
            )
            for low in (100.0, 50.0, 150.0)
        ]
        return And((_number("d_year", Op.EQ, 2001), Or(tuple(parts)), self._in(random, "ca_state", 9)))

    def _q19(self, random: Random) -> Predicate:
        return And(tuple(self._is(random, "i_manager_id", "d_moy", "d_year")))

    def _q27(self, random: Random) -> Predicate:
        demographics = self._is(random, "cd_gender", "cd_marital_status", "cd_education_status")
        return And((*demographics, *self._is(random, "d_year"), self._in(random, "s_state", 6)))

    def _q28(self, random: Random) -> Predicate:
        low = int(random.integers(0, 20)) * 5
        price, coupon, cost = random.uniform(0, 190), random.uniform(0, 18000), random.uniform(0, 80)
        any_of = (
            And(_between("ss_list_price", price, price + 10)),
            And(_between("ss_coupon_amt", coupon, coupon + 1000)),
            And(_between("ss_wholesale_cost", cost, cost + 20)),
        )
        return And((*_between("ss_quantity", low, low + 5), Or(any_of)))

    def _q34(self, random: Random) -> Predicate:
        days = Or((And(_between("d_dom", 1, 3)), And(_between("d_dom", 25, 28))))
        household = (*self._is(random, "hd_buy_potential"), _number("hd_vehicle_count", Op.GT, 0))
        return And((days, *household, self._in(random, "d_year", 3), self._in(random, "s_county", 4)))

    def _q36(self, random: Random) -> Predicate:
        return And((*self._is(random, "d_year"), self._in(random, "s_state", 4)))

    def _q46(self, random: Random) -> Predicate:
        household = Or(tuple(self._is(random, "hd_dep_count", "hd_vehicle_count")))
        weekend = In("d_dow", Kind.INTEGER, (0, 6))
        return And((household, weekend, self._in(random, "d_year", 3), self._in(random, "s_city", 3)))

    def _q48(self, random: Random) -> Predicate:
        people = [And(tuple(self._is(random, "cd_marital_status", "cd_education_status"))) for _ in range(3)]
        return And((*self._is(random, "d_year"), Or(tuple(people)), self._in(random, "ca_state", 9)))

    def _q53(self, random: Random) -> Predicate:
        return And(
            (*self._is(random, "d_year", "d_qoy"), self._in(random, "i_category", 3), self._in(random, "i_class", 6))
        )

    def _q68(self, random: Random) -> Predicate:
        household = Or(tuple(self._is(random, "hd_dep_count", "hd_vehicle_count")))
        return And((*_between("d_dom", 1, 2), household, self._in(random, "d_year", 3), self._in(random, "s_city", 2)))

    def _q79(self, random: Random) -> Predicate:
        household = Or(
            (*self._is(random, "hd_dep_count"), _number("hd_vehicle_count", Op.GT, int(random.integers(0, 5))))
        )
        staff = _between("s_number_employees", 200, 295)
        return And((household, _number("d_dow", Op.EQ, 1), self._in(random, "d_year", 3), *staff))

    def _q88(self, random: Random) -> Predicate:
        hour, half = int(random.integers(8, 13)), bool(random.integers(2))
        minute = _number("t_minute", Op.GE if half else Op.LT, 30)
        return And((_number("t_hour", Op.EQ, hour), minute, *self._is(random, "hd_dep_count", "s_store_name")))

    def _q89(self, random: Random) -> Predicate:
        goods = [And((self._in(random, "i_category", 3), self._in(random, "i_class", 3))) for _ in range(2)]
        return And((*self._is(random, "d_year"), Or(tuple(goods))))

    def _q96(self, random: Random) -> Predicate:
        hour = int(random.integers(8, 21))
        return And((_number("t_hour", Op.EQ, hour), _number("t_minute", Op.GE, 30), *self._is(random, "hd_dep_count")))

    def _q98(self, random: Random) -> Predicate:
        day = int(random.integers(10227, 12023))
        month = (Compare("d_date", Op.GE, Kind.DATE, day), Compare("d_date", Op.LE, Kind.DATE, day + 30))
        return And((*month, self._in(random, "i_category", 3)))
