"""What pruning saves, and what it costs to plan.

    uv run --group bench python examples/benchmarks/pruning.py
    uv run --group bench python examples/benchmarks/pruning.py --formats delta --rows 100000 --queries 2 --json

Part one: the paper's TPC-H templates on one qd-tree layout, each query with pruning and without, in turn. `rows` are
those in files that were read: what the engine's own min/max leaves, and what the rule leaves of that.
Part two: tables of many files, and how long a query is planned, by turns with pruning and without: the rule's own time,
and the difference of the two medians (planning takes tens of milliseconds, so that this one is noisy).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import tpch
from measuring import session, told, workshop

from oreo_lakehouse.layouts.blocks import Distinct
from oreo_lakehouse.layouts.qdtree import qdtree_layout
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.sqltext import predicate_sql
from oreo_lakehouse.maintenance.dossier import open_dossier
from oreo_lakehouse.maintenance.progress import silent
from oreo_lakehouse.maintenance.rewrite import rewrite
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.pruning.attach import attach, control
from oreo_lakehouse.tables.filefacts import FileFacts

SCHEMAS = {"delta": "bench", "iceberg": "iceberg.bench"}


def templates(spark: Any, config: Any, name: str, data: Path, given: argparse.Namespace) -> list[dict[str, Any]]:
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
    told(f"{name}: writing {layout.describe()}")
    rewrite(dossier, dossier.table.plan(layout, "_oreo_bid"), dossier.table.blocks(), silent, workload)
    rule, total, found = control(spark), np.zeros(4), []
    for template, draw in drawn.items():
        told(f"{name}: {template}")
        sums = np.zeros(4)
        for _ in range(given.queries):
            where = predicate_sql(draw(random))
            query = f"select count(*), sum(l_extendedprice), max(l_comment) from {table} where {where}"
            before = np.array([rule.rowsOffered(), rule.rowsDropped()])
            timed(spark, query, "true")  # code is compiled, files are in the system's cache
            offered, dropped = np.array([rule.rowsOffered(), rule.rowsDropped()]) - before
            sums += [offered, offered - dropped, timed(spark, query, "false"), timed(spark, query, "true")]
        found.append(line(name, template, sums))
        total += sums
    return [*found, line(name, "all", total)]


def timed(spark: Any, query: str, pruning: str) -> float:
    spark.conf.set("spark.oreo.pruning", pruning)
    started = time.perf_counter()
    spark.sql(query).collect()
    return time.perf_counter() - started


def line(name: str, template: str, sums: Any) -> dict[str, Any]:
    offered, kept, plain, pruned = map(float, sums)
    return {
        "format": name,
        "template": template,
        "min_max_rows": offered,
        "pruned_rows": kept,
        "rows_ratio": kept / max(1.0, offered),
        "min_max_seconds": plain,
        "pruned_seconds": pruned,
        "seconds_ratio": pruned / plain,
    }


def planning(spark: Any, config: Any, name: str, files: int, repeat: int) -> list[dict[str, Any]]:
    """Milliseconds of planning, on a maintained table of many files and on one that nobody maintains."""
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
    found = []
    for table in tables:
        for title, condition in conditions.items():
            told(f"{name}: planning {title}")
            query = f"select * from {table} where {condition}"
            both = [(planned(spark, query, "false"), planned(spark, query, "true")) for _ in range(repeat)][2:]
            without, with_rule = (statistics.median(one[at][0] for one in both) for at in (0, 1))
            found.append(
                {
                    "format": name,
                    "files": files,
                    "table": table.rpartition(".")[2],
                    "condition": title,
                    "rule_ms": statistics.median(one[1][1] for one in both),
                    "planning_ms": without,
                    "added_ms": with_rule - without,
                }
            )
    return found


def planned(spark: Any, query: str, pruning: str) -> tuple[float, float]:
    """Milliseconds that planning takes, and the rule in it."""
    spark.conf.set("spark.oreo.pruning", pruning)
    before, started = control(spark).nanos(), time.perf_counter()
    spark.sql(query)._jdf.queryExecution().executedPlan()
    return (time.perf_counter() - started) * 1000, (control(spark).nanos() - before) / 1e6


def tpch_rows(rows: int) -> int:
    """The generated file that is cut to size."""
    return max(rows, 400_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formats", nargs="*", default=list(SCHEMAS))
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--queries", type=int, default=5, help="of each template")
    parser.add_argument("--files", type=int, default=1000, help="in part two")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("oreo-benchmarks"), help="where generated rows are kept")
    parser.add_argument("--part", choices=["templates", "planning", "both"], default="both")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    lines: dict[str, list[dict[str, Any]]] = {"templates": [], "planning": []}
    with workshop() as folder, session(folder, given.master, "3g") as (spark, config):
        spark.conf.set("spark.sql.shuffle.partitions", "4")
        attach(spark, config, capture=False)
        for name in given.formats:
            if given.part != "planning":
                lines["templates"] += templates(spark, config, name, given.folder, given)
            if given.part != "templates":
                lines["planning"] += planning(spark, config, name, given.files, given.repeat)
        warnings = str(control(spark).warnings() or "")
    told("")
    if given.json:
        print(json.dumps({"rows": given.rows, "blocks": given.blocks, **lines, "warnings": warnings}))
    else:
        show(given, lines)
        print("warnings:", warnings or "none")


def show(given: argparse.Namespace, lines: dict[str, list[dict[str, Any]]]) -> None:
    if lines["templates"]:
        print(f"{given.rows:,} rows in {given.blocks} blocks, {given.queries} queries of each template")
        print(f"{'':8s} {'template':9s} {'min/max':>11s} {'pruned':>11s} {'ratio':>6s} {'seconds':>8s} {'pruned':>7s}")
    for one in lines["templates"]:
        print(
            f"{one['format']:8s} {one['template']:9s} {one['min_max_rows']:11,.0f} {one['pruned_rows']:11,.0f} "
            f"{one['rows_ratio']:6.2f} {one['min_max_seconds']:8.2f} {one['pruned_seconds']:7.2f}"
        )
    for one in lines["planning"]:
        print(
            f"{one['format']:8s} {one['files']} files, {one['table']:10s} {one['condition']:18s} rule "
            f"{one['rule_ms']:5.2f} ms, planning {one['planning_ms']:6.1f} ms, added {one['added_ms']:5.2f} ms"
        )


if __name__ == "__main__":
    main()
