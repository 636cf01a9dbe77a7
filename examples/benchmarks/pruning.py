"""What pruning saves, and what it costs to plan.

    uv run --group bench python examples/benchmarks/pruning.py
    uv run --group bench python examples/benchmarks/pruning.py --formats delta --rows 100000 --queries 2

Part one: the paper's TPC-H templates on one qd-tree layout, each query with pruning and without, in turn. `rows` are
those in files that were read: what the engine's own min/max leaves, and what the rule leaves of that.
Part two: tables of many files, and how long the rule takes to plan one query. Iceberg's own listing of files, which
happens once either way, is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import tpch

from oreo_lakehouse.config import load_config
from oreo_lakehouse.layouts.blocks import Distinct
from oreo_lakehouse.layouts.qdtree import qdtree_layout
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.sqltext import predicate_sql
from oreo_lakehouse.maintenance.dossier import open_dossier
from oreo_lakehouse.maintenance.progress import silent
from oreo_lakehouse.maintenance.rewrite import rewrite
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.pruning.attach import attach, control
from oreo_lakehouse.session import spark_session
from oreo_lakehouse.tables.filefacts import FileFacts

SCHEMAS = {"delta": "bench", "iceberg": "iceberg.bench"}


def templates(spark: Any, config: Any, name: str, data: Path, given: argparse.Namespace) -> None:
    """Rows read and seconds, by template."""
    rows = tpch.rows(data, tpch_rows(given.rows)).slice(0, given.rows)
    drawn = tpch.Templates(rows).all
    random = np.random.default_rng(given.seed)
    workload = [draw(random) for _ in range(20) for draw in drawn.values()]
    table = f"{SCHEMAS[name]}.lineitem"
    source = str(data / f"tpch-{tpch_rows(given.rows)}.parquet")
    spark.read.parquet(source).limit(given.rows).writeTo(table).using(name).create()
    dossier = open_dossier(spark, table, config)
    layout = qdtree_layout(Sample(rows), Workload.of(workload), given.blocks, "bid")
    started = time.perf_counter()
    rewrite(dossier, dossier.table.plan(layout, "_oreo_bid"), dossier.table.blocks(), silent, workload)
    print(f"\n{name}: {layout.describe()}, {len(rows):,} rows, written in {time.perf_counter() - started:.0f} s")
    print(f"{'template':10s} {'min/max':>10s} {'pruned':>10s} {'ratio':>6s} {'seconds':>8s} {'pruned':>8s}")
    rule, total = control(spark), np.zeros(4)
    for template, draw in drawn.items():
        sums = np.zeros(4)
        for _ in range(given.queries):
            where = predicate_sql(draw(random))
            query = f"select count(*), sum(l_extendedprice), max(l_comment) from {table} where {where}"
            before = np.array([rule.rowsOffered(), rule.rowsDropped()])
            timed(spark, query, "true")  # code is compiled, files are in the system's cache
            offered, dropped = np.array([rule.rowsOffered(), rule.rowsDropped()]) - before
            sums += [offered, offered - dropped, timed(spark, query, "false"), timed(spark, query, "true")]
        show(template, sums)
        total += sums
    show("all", total)


def timed(spark: Any, query: str, pruning: str) -> float:
    spark.conf.set("spark.oreo.pruning", pruning)
    started = time.perf_counter()
    spark.sql(query).collect()
    return time.perf_counter() - started


def show(name: str, sums: Any) -> None:
    offered, kept, plain, pruned = sums
    print(
        f"{name:10s} {offered:10,.0f} {kept:10,.0f} {kept / max(1, offered):6.2f} {plain:8.2f} {pruned:8.2f}",
        flush=True,
    )


def planning(spark: Any, config: Any, name: str, files: int, repeat: int) -> None:
    """Milliseconds that the rule takes, on a maintained table of many files and on one that nobody maintains."""
    tables = [f"{SCHEMAS[name]}.{kind}" for kind in ("maintained", "plain")]
    for table in tables:
        made = spark.range(0, files * 10, 1, files).selectExpr(
            "id", "cast(id % 100 as int) few", "cast(id div 10 as int) k"
        )
        made.writeTo(table).using(name).create()
    dossier = open_dossier(spark, tables[0], config)
    blocks, keys = dossier.table.blocks(), dossier.table.column_keys()
    few = blocks.columns["few"]
    present = np.zeros((len(blocks), 100), np.bool_)
    for at, low in enumerate(few.lower.astype(int)):
        present[at, low : low + 10] = True
    sets = Distinct(np.arange(100), present, np.ones(len(blocks), np.bool_))
    columns = {
        keys["few"]: type(few)(few.kind, few.lower, few.upper, few.lower_known, few.upper_known, few.nulls, sets),
        keys["id"]: blocks.columns["id"],
        keys["k"]: blocks.columns["k"],
    }
    dossier.facts.record("bench", FileFacts(blocks.names, blocks.rows, np.arange(len(blocks)), columns))
    conditions = {
        "a set and a range": "few in (3, 57) and (id < 4000 or k > 900)",
        "a list of 50": f"k in ({', '.join(str(x) for x in range(20, 1000, 20))})",
        "LIKE on a function": "cast(few as string) like '%7' and id >= 0",
    }
    rule = control(spark)
    spark.conf.set("spark.oreo.pruning", "true")
    for table in tables:
        for title, condition in conditions.items():
            taken: list[float] = []
            for _ in range(repeat):
                before = rule.nanos()
                spark.sql(f"select * from {table} where {condition}")._jdf.queryExecution().executedPlan()
                taken.append((rule.nanos() - before) / 1e6)
            kind = table.rpartition(".")[2]
            text = f"{name}, {files} files, {kind}: {title}"
            print(
                f"{text:60s} median {statistics.median(taken):6.2f} ms, first {taken[0]:7.2f}, least {min(taken):6.2f}"
            )


def tpch_rows(rows: int) -> int:
    """The generated file that is cut to size."""
    return max(rows, 400_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formats", nargs="*", default=list(SCHEMAS))
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--queries", type=int, default=5, help="of each template")
    parser.add_argument("--files", type=int, default=1000, help="in part two")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("oreo-benchmarks"), help="where generated rows are kept")
    parser.add_argument("--part", choices=["templates", "planning", "both"], default="both")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        conf = {"spark.sql.catalogImplementation": "in-memory", "spark.sql.shuffle.partitions": "4"}
        flags = {"spark.warehouse": folder, "spark.driver_memory": "3g", "spark.conf": conf, "store": f"{folder}/store"}
        config = load_config(flags=flags, environ={})
        spark = spark_session(config)
        attach(spark, config, capture=False)
        for name in given.formats:
            spark.sql(f"create {'database' if name == 'delta' else 'namespace'} {SCHEMAS[name]}")
            if given.part != "planning":
                templates(spark, config, name, given.folder, given)
            if given.part != "templates":
                planning(spark, config, name, given.files, given.repeat)
        print("warnings:", control(spark).warnings() or "none")
        spark.stop()


if __name__ == "__main__":
    main()
