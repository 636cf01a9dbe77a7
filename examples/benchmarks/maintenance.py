"""What a maintenance run costs: deciding over a huge table and history, finding nothing to do, folding new rows in.

    uv run python examples/benchmarks/maintenance.py                # everything
    uv run python examples/benchmarks/maintenance.py --only decide  # synthetic statistics, no Spark
    uv run python examples/benchmarks/maintenance.py --only spark --rows 1000000

`decide` reads a million queries, prices them on the statistics of 100,000 files and asks the optimizer about them, as a
run does, for the table as a whole and for 16 shards of it. With Spark, on each format: `stay` is a run that decides
about 100 new queries and changes nothing, `nothing` one without new queries, both in a session that is there; `command`
is the latter by `oreo-maintain`, and `start` what starting Spark and looking into its catalog takes by itself. A Delta
table's name takes Spark to find; `by_path` names it by its folder, under which the first of the runs gets to know it.
`fold` appends a fortieth of the rows and tells which share of the table's bytes folding them in rewrites.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from oreo_lakehouse.cli.demo_data import orders
from oreo_lakehouse.config import Config, DecideSettings, HistorySettings, LayoutSettings, load_config
from oreo_lakehouse.history.compaction import tend
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.layouts.blocks import Blocks, ColumnStats
from oreo_lakehouse.layouts.skipping import might_match
from oreo_lakehouse.maintenance.deciding import hot_queries, thinned
from oreo_lakehouse.maintenance.evidence import Evidence, wanted_blocks
from oreo_lakehouse.maintenance.intake import import_queries
from oreo_lakehouse.maintenance.maintain import maintain
from oreo_lakehouse.maintenance.served import served_line
from oreo_lakehouse.maintenance.shards import hull
from oreo_lakehouse.predicates.tree import And, Compare, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.reorganizer.online import OnlineOptimizer
from oreo_lakehouse.session import spark_session
from oreo_lakehouse.store import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, QUERIES, SAMPLED, COLUMNS = 100_000, 1_000_000, 100_000, 8
_DAY_US = 86_400_000_000
_RUNS = 5
_SPREAD = 1_000_000
"""Values that a column has."""


def decide(shards: int) -> dict[str, Any]:
    """Deciding, in a process whose memory is nobody else's."""
    with tempfile.TemporaryDirectory() as folder:
        fill(HistoryStore(LocalStore(folder), "u"))
        command = [sys.executable, __file__, "--child", folder, "--shards", str(shards)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def fill(history: HistoryStore) -> None:
    """A million queries in a month, whose column shifts ten times; all days but the last are packed."""
    random = np.random.default_rng(1)
    step = 31 * _DAY_US // QUERIES
    for first in range(0, QUERIES, 10_000):
        starts = random.integers(0, _SPREAD - 10_000, 10_000).tolist()
        records = [
            QueryRecord(str(number), 0, "import", number * step, "ok", "u", _question(number, start), Exactness.EXACT)
            for number, start in enumerate(starts, first)
        ]
        history.append_once(f"bench{first}", records)
    tend(history, HistorySettings(), now_us=30 * _DAY_US)


def _question(number: int, start: int) -> And:
    name = f"c{(number * 10 // QUERIES) % COLUMNS}"
    return And((Compare(name, Op.GE, Kind.INTEGER, start), Compare(name, Op.LT, Kind.INTEGER, start + 5_000)))


def child(folder: str, shards: int) -> dict[str, Any]:
    """All that a run does between the table's statistics and its rows, which Spark has to bring."""
    random = np.random.default_rng(2)
    files = FILES // shards
    names = [f"c{number}" for number in range(COLUMNS)]
    stats = {name: _bounds(random.integers(0, _SPREAD * 9 // 10, files)) for name in names}
    table = Blocks(np.full(files, 1_000_000), stats, np.full(files, 128 << 20))
    sample = pa.table({name: random.integers(0, _SPREAD, SAMPLED) for name in names})
    before, started, cpu = _peak(), time.perf_counter(), time.process_time()
    queries, _ = HistoryStore(LocalStore(folder), "u").read_since({})
    read = time.perf_counter() - started
    decided, blocks = 0, wanted_blocks(table, 1, LayoutSettings())
    everything = queries.workload() if shards > 1 else None
    for _ in range(shards):
        if everything is not None:
            might_match(everything, hull(table), "native")
        chosen = queries.take(thinned(len(queries), shards * blocks)).predicates()
        optimizer = OnlineOptimizer(DecideSettings(alpha=80.0), LayoutSettings(), 1)
        advice = optimizer.advise(chosen, sample, table, blocks, "initial")
        served_line(
            queries, "", "native", now=table, before=table, untouched=table, states=advice.sums, share=1 / shards
        )
        hot_queries(Evidence(1, None, table, {}, queries, blocks), None, "native")
        decided += len(chosen)
    return {
        "files": FILES,
        "queries": len(queries),
        "shards": shards,
        "blocks": shards * blocks,
        "decided_by": decided,
        "read_seconds": round(read, 1),
        "seconds": round(time.perf_counter() - started, 1),
        "processor_seconds": round(time.process_time() - cpu, 1),
        "peak_mb": round(_peak()),
        "peak_mb_before": round(before),
    }


def _bounds(low: np.ndarray) -> ColumnStats:
    known, none = np.ones(len(low), bool), np.zeros(len(low), int)
    return ColumnStats(Kind.INTEGER, low, low + _SPREAD // 10, known, known, none)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def with_spark(rows: int) -> list[dict[str, Any]]:
    """A Delta and an Iceberg table: first in one session, in a process of its own, then by commands."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "oreo.toml")
        config.write_text(f'[spark]\nwarehouse = "{folder}/warehouse"\n[layout]\nblocks = 24\n[decide]\nalpha = 10.0\n')
        command = [sys.executable, __file__, "--child", folder, "--rows", str(rows)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        maintain_command = str(Path(sys.executable).with_name("oreo-maintain"))
        start = (
            "from oreo_lakehouse.config import load_config; from oreo_lakehouse.session import spark_session; "
            f"spark_session(load_config({str(config)!r})).catalog.tableExists({{!r}})"
        )
        for one in found:
            commands = {
                "start_seconds": [sys.executable, "-c", start.format(one["table"])],
                "command_seconds": [maintain_command, one["table"], "--config", str(config)],
            }
            if one["format"] == "delta":
                folder_of = f"{folder}/warehouse/{one['table']}"
                commands["by_path_seconds"] = [maintain_command, folder_of, "--config", str(config)]
            for _ in range(_RUNS):
                for name, words in commands.items():
                    started = time.perf_counter()
                    subprocess.run(words, check=True, capture_output=True)
                    one.setdefault(name, []).append(round(time.perf_counter() - started, 2))
    return found


def session(folder: str, rows: int) -> list[dict[str, Any]]:
    """A first layout, runs with nothing to do, an append folded in."""
    config = load_config(f"{folder}/oreo.toml", {}, {})
    spark = spark_session(config)
    spark.sql("CREATE NAMESPACE iceberg.b")
    out: list[dict[str, Any]] = []
    for fmt, name in (("delta", "orders"), ("iceberg", "iceberg.b.orders")):
        orders(spark, rows, 24).writeTo(name).using(fmt).create()
        import_queries(spark, name, [_log(Path(folder), name, 0, 240)], config)
        moved = maintain(spark, name, config)
        stay, nothing = (_runs(spark, name, config, folder, queries) for queries in (100, 0))
        orders(spark, rows, 40).where("order_id % 40 = 7").writeTo(name).append()
        import_queries(spark, name, [_log(Path(folder), name, 28, 240)], config)
        folded = maintain(spark, name, config)
        out.append(
            {
                "format": fmt,
                "table": name,
                "rows": rows,
                "layout_seconds": round(moved.seconds, 1),
                "fold_seconds": round(folded.seconds, 1),
                "decision": folded.decision,
                "appended_share": 1 / 40,
                "rewritten_share": round(folded.bytes_rewritten / max(1, moved.bytes_rewritten), 4),
                "stay_seconds": stay,
                "nothing_seconds": nothing,
            }
        )
    return out


def _runs(spark: SparkSession, name: str, config: Config, folder: str, queries: int) -> list[float]:
    """Seconds of some runs that change nothing, each with so many new queries."""
    out: list[float] = []
    for day in range(1, 1 + _RUNS):
        if queries:
            import_queries(spark, name, [_log(Path(folder), name, day, queries)], config)
        started = time.perf_counter()
        done = maintain(spark, name, config)
        out.append(round(time.perf_counter() - started, 2))
        if done.decision != "stay":
            raise SystemExit(f"{name} was to be left as it is: {done.reason}")
    return out


def _log(folder: Path, table: str, day: int, queries: int) -> str:
    file, first = folder / f"{table}{day}.jsonl", datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day)
    with file.open("w") as out:
        for number in range(queries):
            low = number * 811 % 190_000
            text = f"SELECT sum(price) FROM {table} WHERE customer_id BETWEEN {low} AND {low + 300}"
            out.write(json.dumps({"statement_text": text, "start_time": str(first + timedelta(minutes=number))}) + "\n")
    return str(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["decide", "spark"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--shards", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        folder, shards = options.child, options.shards
        print(json.dumps(child(folder, shards) if shards else session(folder, options.rows)))
        return
    found: list[dict[str, Any]] = []
    if options.only != "spark":
        found += [decide(1), decide(16)]
    if options.only != "decide":
        found += with_spark(options.rows)
    for one in found:
        print(json.dumps(one) if options.json else "  ".join(f"{key} {value}" for key, value in one.items()))


if __name__ == "__main__":
    main()
