"""The demo's shop: orders that arrive in time order, and queries whose interest shifts three times."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FIRST_DAY = datetime(2025, 1, 1, tzinfo=UTC)
DAYS = 365
CUSTOMERS = 200_000
COUNTRIES = ("AT", "BE", "BR", "CA", "CH", "CZ", "DE", "DK", "ES", "FI", "FR", "GB", "IT", "JP", "NL", "NO", "PL", "PT")
CATEGORIES = (
    *("audio", "beauty", "books", "camping", "cycling", "garden", "grocery", "kitchen", "music", "office"),
    *("outdoor", "pets", "photo", "running", "shoes", "skiing", "tools", "toys", "travel", "video"),
)
QUERIES_PER_FOCUS = 240


@dataclass(frozen=True)
class Focus:
    """What the shop's people look at for a while."""

    title: str
    queries: list[str]
    """WHERE conditions, in the order they were asked."""


def orders(spark: SparkSession, rows: int, files: int) -> DataFrame:
    """`rows` orders over a year, in time order, spread over `files` files; the same rows on every call."""

    def pick(values: tuple[str, ...], salt: int) -> str:
        array = ", ".join(f"'{value}'" for value in values)
        return f"element_at(array({array}), cast(1 + pmod(xxhash64(id, {salt}), {len(values)}) as int))"

    seconds = DAYS * 86_400
    return spark.range(0, rows, 1, files).selectExpr(
        "id AS order_id",
        f"timestamp_seconds({int(FIRST_DAY.timestamp())} + cast(id * {seconds / rows} AS bigint)) AS order_time",
        # Few customers order often: a square bends the uniform numbers towards small ids.
        f"cast(pow(pmod(xxhash64(id, 1), 1000000) / 1e6, 2) * {CUSTOMERS} AS int) AS customer_id",
        f"{pick(COUNTRIES, 2)} AS country",
        f"{pick(CATEGORIES, 3)} AS category",
        "cast(1 + pmod(xxhash64(id, 4), 50000) / 100 AS decimal(10, 2)) AS price",
    )


def foci(seed: int = 7) -> list[Focus]:
    """Four foci, so the interest shifts three times; the first one suits the order in which orders arrive."""
    draw = random.Random(seed)  # noqa: S311 - a demo's queries are no secret

    def days(width: int) -> str:
        start = FIRST_DAY + timedelta(days=draw.randrange(DAYS - width))
        return f"order_time >= '{start:%Y-%m-%d}' AND order_time < '{start + timedelta(days=width):%Y-%m-%d}'"

    def customers() -> str:
        low = int(draw.random() ** 2 * CUSTOMERS)
        return f"customer_id BETWEEN {low} AND {low + draw.randrange(50, 500)}"

    def category() -> str:
        return f"category = '{draw.choice(CATEGORIES)}' AND price > {draw.randrange(300, 480)}"

    def country() -> str:
        return f"country IN ('{draw.choice(COUNTRIES)}') AND {days(30)}"

    makers = [
        ("recent orders, by day", lambda: days(draw.randrange(2, 10))),
        ("support looks up customers", customers),
        ("buyers compare dear goods of a category", category),
        ("country managers close their month", country),
    ]
    return [Focus(title, [make() for _ in range(QUERIES_PER_FOCUS)]) for title, make in makers]


def query(table: str, condition: str) -> str:
    """What the shop's people ask, over the rows that they are interested in."""
    return f"SELECT count(*), sum(price) FROM {table} WHERE {condition}"  # noqa: S608 - both are ours


def write_history(file: Path, focus: Focus, table: str, start: datetime) -> None:
    """The focus as a query log, a query every minute, in the form that `oreo history import` reads."""
    with file.open("w") as log:
        for minute, condition in enumerate(focus.queries):
            entry = {
                "statement_text": query(table, condition),
                "start_time": (start + timedelta(minutes=minute)).isoformat(),
                "time_zone": "UTC",
            }
            log.write(json.dumps(entry) + "\n")
