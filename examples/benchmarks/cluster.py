"""The main job on a real Spark cluster gives the same layout and the same rows as on `local[2]`.

    uv run --group bench python examples/benchmarks/cluster.py
    uv run --group bench python examples/benchmarks/cluster.py --rows 50000 --format delta --json

Starts one master and two workers of Spark's standalone mode, each a process of its own on loopback, by the scripts in
the pyspark package, and stops them however the run ends. The job is `oreo history import` and `oreo-maintain` on a
table that both find in the same state; layout, files and the checksum of all rows must agree. Exit code 1 if they do
not.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from measuring import require, session, workshop
from pyspark.find_spark_home import _find_spark_home

FILES = 12
WORKERS, CORES, MEMORY = 2, 1, "1g"
_PATIENCE = 120
"""Seconds for a process to start or to end."""
_LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
    "spark.executor.memory": "768m",
    "spark.executor.cores": str(CORES),
}


@contextmanager
def process(command: list[str], log: Path, **env: str) -> Generator[subprocess.Popen[bytes]]:
    """A process with a group of its own, ended with all its children."""
    with log.open("wb") as out:
        made = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **env}, start_new_session=True
        )
    try:
        yield made
    finally:
        for how in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(made.pid, how)
            except ProcessLookupError:
                break
            try:
                made.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                continue


def awaited(log: Path, pattern: str, count: int, process: subprocess.Popen[bytes]) -> list[str]:
    """What a log says, once it has said it so often.

    Raises:
        SystemExit: the process ended, or said nothing in time.
    """
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        found = re.findall(pattern, log.read_text(errors="replace"))
        if len(found) >= count:
            return found
        time.sleep(0.2)
    raise SystemExit(f"the cluster did not start:\n{log.read_text(errors='replace')[-2000:]}")


@contextmanager
def cluster(folder: Path) -> Generator[str]:
    """A master and its workers; gives the master's address."""
    starter = str(Path(_find_spark_home(), "bin", "spark-class"))
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    env = {"SPARK_HOME": _find_spark_home(), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "512m"}
    env["SPARK_DAEMON_JAVA_OPTS"] = "-Dspark.master.rest.enabled=false"
    log = folder / "master.log"
    master = [starter, "org.apache.spark.deploy.master.Master", *here, "--port", "0"]
    with process(master, log, **env) as running:
        address = awaited(log, r"Starting Spark master at (spark://\S+)", 1, running)[0]
        with _workers(starter, here, address, folder, env):
            awaited(log, r"Registering worker", WORKERS, running)
            yield address


@contextmanager
def _workers(starter: str, here: list[str], address: str, folder: Path, env: dict[str, str]) -> Generator[None]:
    with ExitStack() as stack:
        for number in range(WORKERS):
            given = ["--cores", str(CORES), "--memory", MEMORY, "--work-dir", str(folder / f"worker-{number}")]
            worker = [starter, "org.apache.spark.deploy.worker.Worker", *here, *given, address]
            stack.enter_context(process(worker, folder / f"worker-{number}.log", **env))
        yield


def job(master: str, folder: Path, fmt: str, rows: int, store: str) -> dict[str, Any]:
    """The main job on one table, which is made on first use; afterwards it is as it was."""
    from oreo_lakehouse.cli.demo_data import foci, orders, write_history
    from oreo_lakehouse.maintenance.intake import import_queries
    from oreo_lakehouse.maintenance.maintain import maintain
    from oreo_lakehouse.tables.certificate import certify
    from oreo_lakehouse.tables.resolve import open_table

    flags: dict[str, Any] = {
        "store": str(folder / store),
        "layout.blocks": FILES,
        "decide.alpha": 10.0,
        "decide.window": 60,
    }
    conf = {"spark.sql.catalogImplementation": "in-memory"} | ({} if master.startswith("local") else _LOOPBACK)
    with session(folder, master, "1g", {**flags, "spark.conf": conf}) as (spark, config):
        path, name = str(folder / f"orders-{store}"), "iceberg.bench.orders"
        if fmt == "delta":
            first = folder / "orders"
            if not first.exists():
                orders(spark, rows, FILES).write.format("delta").save(str(first))
            shutil.copytree(first, path)  # the same files under the same names
            name = path
        elif not spark.catalog.tableExists(name):
            orders(spark, rows, FILES).writeTo(name).using("iceberg").create()
        text = f"delta.`{path}`" if fmt == "delta" else name
        log = folder / f"{fmt}.jsonl"
        write_history(log, foci()[1], text, datetime.now(UTC) - timedelta(days=1))
        import_queries(spark, name, [str(log)], config)
        before = open_table(spark, name).version()
        outcome = maintain(spark, name, config)
        rows_now = certify(spark.table(text), [config.bid_column])
        blocks = open_table(spark, name).blocks()
        bids = blocks.columns.get(config.bid_column)
        found = {
            "master": re.sub(r":\d+$", "", master),
            "executors": int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()),
            "decision": outcome.decision,
            "layout": outcome.layout_id,
            "described": outcome.plan.layout.describe() if outcome.plan else outcome.reason,
            "rows": rows_now.rows,
            "checksum": rows_now.checksum,
            "blocks": sorted(zip(bids.lower.tolist(), blocks.rows.tolist(), strict=True)) if bids else [],
        }
        if fmt == "iceberg":  # its metadata has absolute paths, so the same files cannot be copied
            spark.sql(f"CALL iceberg.system.rollback_to_snapshot('bench.orders', {before})")
    return found


def compared(folder: Path, master: str, fmt: str, rows: int, store: str) -> dict[str, Any]:
    """The job in a process of its own: two Spark applications do not fit into one."""
    log = folder / f"{fmt}-{store}.log"
    command = [sys.executable, __file__, "--job", master, str(folder), fmt, str(rows), store]
    with process(command, log) as running:
        running.wait()
    said = log.read_text(errors="replace")
    if running.returncode:
        raise SystemExit(f"the job on {master} failed:\n{said[-3000:]}")
    return json.loads(said.splitlines()[-1])


def main() -> None:
    if sys.argv[1:2] == ["--job"]:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        master, folder, fmt, rows, store = sys.argv[2:]
        print("\n" + json.dumps(job(master, Path(folder), fmt, int(rows), store)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--format", choices=["delta", "iceberg", "both"], default="both")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    same = True
    with workshop() as folder:
        require(1 + given.rows * 200 / 1e9, 4, folder)
        for fmt in ("delta", "iceberg") if given.format == "both" else (given.format,):
            here = compared(folder, "local[2]", fmt, given.rows, "local")
            with cluster(folder) as address:
                there = compared(folder, address, fmt, given.rows, "cluster")
            keys = ("decision", "layout", "rows", "checksum", "blocks")
            different = [key for key in keys if here[key] != there[key]]
            same = same and not different and here["decision"] == "move" and there["executors"] == WORKERS + 1
            if given.json:
                print(json.dumps({"format": fmt, "different": different, "local": here, "cluster": there}))
                continue
            print(
                f"{fmt}: local[2]: {here['decision']} to {here['described']}, {here['rows']:,} rows, {here['checksum']}"
            )
            print(f"{fmt}: a cluster of {there['executors'] - 1} workers: {', '.join(different) or 'the same'}")
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
