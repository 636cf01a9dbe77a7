"""What a maintenance run costs: deciding over a huge table and history, finding nothing to do, folding new rows in.

    uv run python examples/benchmarks/maintenance.py                # all three
    uv run python examples/benchmarks/maintenance.py --only decide  # synthetic statistics, no Spark

`decide` prices a million queries on the statistics of 100,000 files and asks the optimizer about them, as a run does.
`nothing` is `oreo-maintain` on a table without new queries, beyond Spark's own start. `fold` appends a fortieth of a
table's rows and tells which share of its bytes folding them in rewrites.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from oreo_lakehouse.config import DecideSettings, LayoutSettings, load_config
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.layouts.blocks import Blocks, ColumnStats
from oreo_lakehouse.maintenance.deciding import thinned
from oreo_lakehouse.maintenance.served import served_line
from oreo_lakehouse.predicates.tree import And, Compare, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.reorganizer.online import OnlineOptimizer

FILES, QUERIES, SAMPLED, COLUMNS = 100_000, 1_000_000, 100_000, 8


def decide() -> dict[str, Any]:
    """Seconds and memory of deciding; Spark's own part (sample, statistics) is measured by the other two."""
    random = np.random.default_rng(1)
    names = [f"c{number}" for number in range(COLUMNS)]
    low = {name: random.integers(0, 900_000, FILES) for name in names}
    stats = {
        name: ColumnStats(
            Kind.INTEGER,
            low[name],
            low[name] + 100_000,
            np.ones(FILES, bool),
            np.ones(FILES, bool),
            np.zeros(FILES, int),
        )
        for name in names
    }
    table = Blocks(np.full(FILES, 1_000_000), stats, np.full(FILES, 128 << 20))
    sample = pa.table({name: random.integers(0, 1_000_000, SAMPLED) for name in names})
    queries = _queries(random, names)
    peak_before = _peak()
    started = time.perf_counter()
    chosen = [queries[number].predicate for number in thinned(len(queries))]
    optimizer = OnlineOptimizer(DecideSettings(alpha=80.0), LayoutSettings(generators=("qdtree",)), 1)
    advice = optimizer.advise(chosen, sample, table, 2_000, "initial")
    served_line(queries, "initial", "native", now=table, before=None, untouched=None, states=advice.sums)
    return {
        "files": FILES,
        "queries": QUERIES,
        "decided_by": len(chosen),
        "seconds": round(time.perf_counter() - started, 1),
        "peak_mb": round(_peak()),
        "peak_mb_before": round(peak_before),
    }


def _queries(random: np.random.Generator, names: list[str]) -> list[QueryRecord]:
    """A million records with the same few hundred thousand predicates behind them, whose column shifts ten times."""
    made: list[QueryRecord] = []
    for number in range(QUERIES):
        name = names[(number * 10 // QUERIES) % COLUMNS]
        start = int(random.integers(0, 990_000))
        bounds = (Compare(name, Op.GE, Kind.INTEGER, start), Compare(name, Op.LT, Kind.INTEGER, start + 5_000))
        made.append(QueryRecord(str(number), 0, "import", number, "ok", "u", And(bounds), Exactness.EXACT))
    return made


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def with_spark(rows: int) -> list[dict[str, Any]]:
    """A Delta and an Iceberg table: a first layout, a run with nothing to do, an append folded in."""
    from oreo_lakehouse.cli.demo_data import orders
    from oreo_lakehouse.maintenance.intake import import_queries
    from oreo_lakehouse.maintenance.maintain import maintain
    from oreo_lakehouse.session import spark_session

    out: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        flags = {"spark.warehouse": f"{folder}/warehouse", "layout.blocks": 24, "decide.alpha": 10.0}
        config = load_config(None, flags, {})
        spark = spark_session(config)
        spark.sql("CREATE NAMESPACE iceberg.b")
        for fmt, name in (("delta", "orders"), ("iceberg", "iceberg.b.orders")):
            orders(spark, rows, 24).writeTo(name).using(fmt).create()
            import_queries(spark, name, [_log(Path(folder), name, fmt, 0)], config)
            moved = maintain(spark, name, config)
            started = time.perf_counter()
            maintain(spark, name, config)
            nothing = time.perf_counter() - started
            orders(spark, rows, 40).where("order_id % 40 = 7").writeTo(name).append()
            import_queries(spark, name, [_log(Path(folder), name, fmt, 1)], config)
            folded = maintain(spark, name, config)
            out.append(
                {
                    "format": fmt,
                    "rows": rows,
                    "nothing_seconds": round(nothing, 2),
                    "decision": folded.decision,
                    "appended_share": 1 / 40,
                    "rewritten_share": round(folded.bytes_rewritten / max(1, moved.bytes_rewritten), 4),
                    "layout_seconds": round(moved.seconds, 1),
                    "fold_seconds": round(folded.seconds, 1),
                }
            )
        spark.stop()
    return out


def _log(folder: Path, table: str, fmt: str, day: int) -> str:
    file, first = folder / f"{fmt}{day}.jsonl", datetime(2026, 1, 1 + day, tzinfo=UTC)
    with file.open("w") as out:
        for number in range(240):
            low = number * 811 % 190_000
            text = f"SELECT sum(price) FROM {table} WHERE customer_id BETWEEN {low} AND {low + 300}"
            out.write(json.dumps({"statement_text": text, "start_time": str(first + timedelta(minutes=number))}) + "\n")
    return str(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["decide", "spark"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    if options.only != "spark":
        found["decide"] = decide()
    if options.only != "decide":
        found["tables"] = with_spark(options.rows)
    if options.json:
        print(json.dumps(found))
        return
    for one in [*([found["decide"]] if "decide" in found else []), *found.get("tables", [])]:
        print("  ".join(f"{key} {value}" for key, value in one.items()))


if __name__ == "__main__":
    main()
