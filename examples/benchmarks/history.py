"""What query history costs: `uv run python examples/benchmarks/history.py [read] [import] [overhead]`.

`read`: a million records of 50 shapes, every literal different, read since the beginning, in a process of its own.
`import`: 10,000 statements of 50 shapes through sqlglot, through Spark's planner, and through both as `auto` does.
`overhead`: 1,000 small queries with live capture and 1,000 without, taking turns.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from oreo_lakehouse.config import Config, HistorySettings, load_config
from oreo_lakehouse.history.capture import capture
from oreo_lakehouse.history.catalysttext import CatalystText
from oreo_lakehouse.history.compaction import tend
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.importing import import_history
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.history.sparktypes import kind_of_type
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.predicates.tree import And, Compare, In, Op, Predicate
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.session import spark_session
from oreo_lakehouse.store import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS, SHAPES, STATEMENTS, QUERIES = 1_000_000, 50, 10_000, 1_000
START_US = 1_760_000_000_000_000
DAY_US = 86_400_000_000


class Timer:
    """How long its block took, on the clock and on the processor: the two differ on a busy machine."""

    wall = cpu = 0.0

    def __enter__(self) -> Timer:
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self._start[0], time.process_time() - self._start[1]

    def __str__(self) -> str:
        return f"{self.wall:.1f} s ({self.cpu:.1f} s of processor)"


def predicates(random: Random) -> Iterator[Predicate]:
    """Of 50 shapes, two or three conditions each, no two alike."""
    while True:
        number, low = random.randrange(SHAPES), random.randrange(10**9)
        last: Predicate = Compare(f"d{number % 7}", Op.EQ, Kind.STRING, f"value {random.randrange(10**6)}")
        if number % 3 == 0:
            last = In("region", Kind.INTEGER, tuple(sorted(random.sample(range(1000), 4))))
        bounds = (
            Compare(f"c{number}", Op.GE, Kind.TIMESTAMP, low),
            Compare(f"c{number}", Op.LT, Kind.TIMESTAMP, low + 3_600_000_000),
        )
        yield And((*bounds, last))


def fill(history: HistoryStore, count: int, days: int = 31) -> None:
    """A month of queries in batches of 500, all days but the last packed as `oreo-maintain` does in passing."""
    random = Random(1)
    asked = predicates(random)
    step = days * DAY_US // count
    for first in range(0, count, 500):
        records = [
            QueryRecord(
                query_id=f"{random.getrandbits(96):024x}",
                scan=0,
                source="capture",
                time_us=START_US + number * step,
                status="finished",
                table_uuid=history.table_uuid,
                predicate=next(asked),
                exactness=Exactness.EXACT,
                table_name="lake.sales.orders",
                table_version=number // 1000,
                time_zone="UTC",
                duration_ms=random.randrange(10_000),
                columns=("region", "amount", "customer"),
                files_read=random.randrange(1000),
                files_total=1000,
                bytes_read=random.randrange(10**9),
                sql_hash=f"{random.getrandbits(64):016x}",
            )
            for number in range(first, min(first + 500, count))
        ]
        history.append_once(f"bench{first}", records)
    done = tend(history, HistorySettings(), now_us=START_US + (days - 1) * DAY_US)
    print(f"  {done.packed.records:,} records packed into {done.packed.files} day files", flush=True)


def read(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with Timer() as filling:
            fill(HistoryStore(LocalStore(folder), "u"), count)
        print(f"  written and packed: {filling}", flush=True)
        subprocess.run([sys.executable, __file__, "child", folder], check=True)


def child(folder: str) -> None:
    """Read everything, in a process whose memory is nobody else's."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with Timer() as reading:
        batch, cursor = HistoryStore(LocalStore(folder), "u").read_since({})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"  {len(batch):,} records of {len(batch.templates)} templates read: {reading}; {before:.0f} -> {peak:.0f} MB"
    )
    with Timer() as compiling:
        workload = batch.workload()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  workload of {len(workload):,} queries compiled: {compiling}; {peak:.0f} MB")
    with Timer() as again:
        new, _ = HistoryStore(LocalStore(folder), "u").read_since(cursor)
    print(f"  {len(new)} new since that cursor: {again}")
    with Timer() as walking:
        walked = sum(record.scan == 0 for record in batch)
    print(f"  {walked:,} records with their predicates made one by one: {walking}")


def statements(count: int) -> list[str]:
    """Of 50 shapes, every literal different: ranges, lists, joins, subqueries, aggregates."""
    random, columns = Random(2), ("quantity", "price", "discount", "tax", "line")
    out: list[str] = []
    for _ in range(count):
        number = random.randrange(SHAPES)
        column, other = columns[number % 5], columns[(number // 5) % 5]
        low, day = random.randrange(10**6), f"20{random.randrange(10, 30)}-{random.randrange(1, 13):02d}-01"
        where = f"{column} BETWEEN {low} AND {low + 500} AND shipped >= date '{day}'"
        if number % 2:
            where += f" AND mode IN ('{low}', 'AIR') AND {other} < {random.random():.6f}"
        out.append(
            (
                f"SELECT sum(price) FROM shop.lines WHERE {where}",
                f"SELECT mode, count(*) FROM shop.lines WHERE {where} GROUP BY mode ORDER BY 2 DESC LIMIT 10",
                f"WITH q AS (SELECT * FROM shop.lines WHERE {where}) SELECT max(price) FROM q WHERE tax > {low % 97}",
                f"SELECT * FROM shop.lines, (SELECT line k FROM shop.lines WHERE tax = {low}) WHERE k=line AND {where}",
                f"SELECT * FROM shop.lines WHERE {where} AND add_months(shipped, 0) < date '{day}' + interval 3 month",
            )[number // 10]
        )
    return out


COLUMNS = "quantity bigint, price decimal(12,2), discount double, tax double, line bigint, mode string, shipped date"


def read_logs(spark: SparkSession, count: int) -> None:
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(COLUMNS)
    kinds = {field.name: kind_of_type(field.dataType.simpleString()) for field in schema}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "log.jsonl")
        with file.open("w") as out:
            for number, text in enumerate(statements(count)):
                out.write(json.dumps({"statement_text": text, "start_time": 1_700_000_000 + number}) + "\n")
        for name, first in (("sqlglot", None), ("auto", False), ("catalyst", True)):
            history = HistoryStore(LocalStore(f"{folder}/{name}"), "u")
            with Timer() as reading:
                planner = None if first is None else CatalystText(spark, ["shop.lines"], schema)
                done = import_history(
                    history, ["shop.lines"], kinds, [file], time_zone="UTC", planner=planner, planner_first=bool(first)
                )
            print(
                f"  {name}: {done.imported:,} scans of {done.read:,} statements, {done.relaxed + done.unknown:,} not "
                f"exact: {reading}",
                flush=True,
            )


def overhead(spark: SparkSession, count: int) -> None:
    spark.range(1000).coalesce(1).write.format("delta").mode("overwrite").saveAsTable("bench_overhead")
    with tempfile.TemporaryDirectory() as folder:

        def run(queries: int) -> float:
            started = time.perf_counter()
            for number in range(queries):
                spark.sql(f"SELECT id FROM bench_overhead WHERE id = {number}").collect()
            return time.perf_counter() - started

        run(100)
        spent = {True: 0.0, False: 0.0}
        nanos = seen = dropped = 0
        for turn in range(10):  # in turns, so that both meet the same weather
            on = turn % 2 == 1
            live = capture(spark, Config(store=folder)) if on else None
            spent[on] += run(count // 5)
            if live is not None:
                live.stop()
                nanos, seen = nanos + int(live.milliseconds_per_query * live.seen * 1e6), seen + live.seen
                dropped += live.dropped
        uuid = next(path.name for path in Path(folder).iterdir())
        kept = len(HistoryStore(LocalStore(folder), uuid).read_since({})[0])
        print(
            f"  {count:,} queries without capture {spent[False]:.1f} s, with {spent[True]:.1f} s: "
            f"{(spent[True] - spent[False]) / count * 1000:+.2f} ms a query"
        )
        print(
            f"  on the listener's own thread {nanos / max(seen, 1) / 1e6:.2f} ms a query; "
            f"{kept:,} records, {dropped} dropped"
        )


def session() -> SparkSession:
    folder = tempfile.mkdtemp()
    conf = {"spark.sql.catalogImplementation": "in-memory"}
    return spark_session(load_config(flags={"spark.warehouse": folder, "spark.conf": conf}, environ={}))


if __name__ == "__main__":
    wanted = [word for word in sys.argv[1:] if not word.isdigit()] or ["read", "import", "overhead"]
    count = next((int(word) for word in sys.argv[1:] if word.isdigit()), 0)
    if wanted[0] == "child":
        child(wanted[1])
    if "read" in wanted:
        print(f"reading {count or RECORDS:,} records", flush=True)
        read(count or RECORDS)
    if "import" in wanted:
        print(f"importing {count or STATEMENTS:,} statements of {SHAPES} shapes", flush=True)
        read_logs(session(), count or STATEMENTS)
    if "overhead" in wanted:
        print("the cost of live capture", flush=True)
        overhead(session(), count or QUERIES)
