"""A day of maintenance every ten minutes, on a table that changes all the time: does anything grow without end?

    uv run python examples/benchmarks/day.py --format delta --plot day.svg

Nobody waits: 144 runs follow each other, and the queries' times are ten minutes apart. Before each run rows are
appended and 30 queries are recorded, whose focus moves to another column every three hours; some rows are updated every
hour, and what older versions need is cleaned up. After each run are noted: memory of this process and of its JVM (its
heap after a collection), live files of the table, files and bytes of the store, and of its parts. Exit code 1 if
something grew that should not.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "tests"))

from quickspark import QUICK

from oreo_lakehouse.config import load_config
from oreo_lakehouse.jvm import jvm
from oreo_lakehouse.maintenance.intake import import_queries
from oreo_lakehouse.maintenance.maintain import maintain
from oreo_lakehouse.report.plot import write_lines
from oreo_lakehouse.session import spark_session
from oreo_lakehouse.tables.resolve import open_table

RUNS, PER_HOUR, FOCUS = 144, 6, ("k", "id", "d")
COLUMNS = (
    "id",
    "cast(pmod(xxhash64(id), 1000) as int) k",
    "concat('name', id) s",
    "cast(pmod(id * 7919, 50000) as double) d",
)
BOUNDS = {
    "Python, MB": 1.25,
    "JVM heap, MB": 1.5,
    "state, KB": 2.0,
}
"""How many times its size after a quarter of the day each may have at the end."""
MOST = {"live files": 100, "state files": 3, "files of the store": 600}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=("delta", "iceberg"), default="delta")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="oreo-day-"))
    flags: dict[str, Any] = {"spark.warehouse": str(folder), "store": str(folder / "_oreo"), "spark.conf": QUICK}
    config = load_config(flags={**flags, "layout.blocks": 16, "decide.alpha": 4, "decide.window": 60}, environ={})
    spark = spark_session(config)
    try:
        noted, decisions = played(spark, config, folder, given.format, given.runs)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    grown = unbounded(noted)
    if given.plot:
        shares = {name: values / max(1.0, float(values.max())) * 100 for name, values in noted.items()}
        write_lines(given.plot, "A day of runs: per cent of each one's maximum", "runs, ten minutes apart", shares)
    if given.json:
        print(json.dumps({"decisions": decisions, "grown": grown, **{name: list(v) for name, v in noted.items()}}))
        return bool(grown)
    print(f"{given.runs} runs on {given.format}: {', '.join(f'{n} {what}' for what, n in decisions.items())}")
    print(f"{'':24s}{'after 1/4':>12s}{'at the end':>12s}{'most':>12s}")
    for name, values in noted.items():
        print(f"{name:24s}{values[len(values) // 4]:12,.0f}{values[-1]:12,.0f}{values.max():12,.0f}")
    print("\n".join(grown) or "nothing grew beyond its bounds")
    return bool(grown)


def played(spark: Any, config: Any, folder: Path, fmt: str, runs: int) -> tuple[dict[str, Any], dict[str, int]]:
    """All runs; what was noted after each, and how often what was decided."""
    name = "default.day" if fmt == "delta" else "iceberg.day.t"
    if fmt == "iceberg":
        spark.sql("create namespace iceberg.day")
    spark.range(0, 50_000, 1, 16).selectExpr(*COLUMNS).writeTo(name).using(fmt).create()
    noted, decisions, start = defaultdict[str, list[float]](list), defaultdict[str, int](int), datetime.now(UTC)
    for run in range(runs):
        first = 50_000 + 200 * run
        rows = spark.range(first, first + 200, 1, 1).selectExpr(*COLUMNS)
        rows.writeTo(name).append()
        if run % PER_HOUR == PER_HOUR - 1:
            spark.sql(f"update {name} set s = 'updated' where id % 5000 = {run}")
            _clean(spark, name, fmt)
        ask(spark, config, name, folder, run, start - timedelta(days=1) + timedelta(minutes=10 * run))
        outcome = maintain(spark, name, config)
        decisions[outcome.decision] += 1
        note(noted, spark, folder / "_oreo", len(open_table(spark, name).blocks()))
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[Krun {run + 1} of {runs}: {outcome.decision}")
    assert spark.table(name).count() == 50_000 + 200 * runs
    return {name: np.array(values) for name, values in noted.items()}, dict(decisions)


def _clean(spark: Any, name: str, fmt: str) -> None:
    if fmt == "delta":
        spark.sql(f"vacuum {name} retain 0 hours").collect()
        return
    now = datetime.now(UTC).replace(tzinfo=None) + timedelta(minutes=1)
    call = f"table => 'day.t', older_than => timestamp'{now}', retain_last => 1"
    spark.sql(f"call iceberg.system.expire_snapshots({call})").collect()


def ask(spark: Any, config: Any, name: str, folder: Path, run: int, at: datetime) -> None:
    """Thirty queries with the focus of the hour."""
    column, log = FOCUS[run // (3 * PER_HOUR) % len(FOCUS)], folder / "log.jsonl"
    width = {"k": 1000, "id": 50_000, "d": 50_000}[column]
    with log.open("w") as out:
        for number in range(30):
            low = (run * 7 + number) * 7919 % width
            text = f"select count(*) from {name} where {column} between {low} and {low + width // 50}"
            out.write(json.dumps({"statement_text": text, "start_time": str(at + timedelta(seconds=number))}) + "\n")
    import_queries(spark, name, [str(log)], config)


def note(noted: dict[str, list[float]], spark: Any, store: Path, live: int) -> None:
    """How large everything is now."""
    system = jvm(spark).java.lang.System
    system.gc()
    heap = jvm(spark).java.lang.Runtime.getRuntime()
    files = [path for path in store.rglob("*") if path.is_file()]
    sizes = defaultdict[str, list[int]](list)
    for path in files:
        sizes[path.relative_to(store).parts[1]].append(path.stat().st_size)
    (resident,) = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line]
    now = {
        "Python, MB": int(resident) / 1024,
        "JVM heap, MB": (heap.totalMemory() - heap.freeMemory()) / 1e6,
        "live files": live,
        "files of the store": len(files),
        "state files": len(sizes["state"]),
        **{f"{part}, KB": sum(sizes[part]) / 1024 for part in ("state", "ledger", "history", "files", "blocks")},
    }
    for name, value in now.items():
        noted[name].append(float(value))


def unbounded(noted: dict[str, Any]) -> list[str]:
    """What grew too much, in words."""
    found = [
        f"{name} grew from {values[len(values) // 4]:,.0f} to {values[-1]:,.0f}"
        for name, times in BOUNDS.items()
        if (values := noted[name])[-1] > times * values[len(values) // 4]
    ]
    return found + [f"{name}: {noted[name].max():,.0f}" for name, most in MOST.items() if noted[name].max() > most]


if __name__ == "__main__":
    begun = time.monotonic()
    code = main()
    sys.stderr.write(f"{(time.monotonic() - begun) / 60:.1f} minutes\n")
    raise SystemExit(code)
