"""What a layout costs on Delta: `uv run python examples/benchmarks/delta_commits.py [rows] [files]`.

Prints, all in one run on one machine: staging, verifying and committing a layout against OPTIMIZE ZORDER BY of the same
bytes to about the same number of files; planning and committing a table of many files; reading statistics of 100,000.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from oreo_lakehouse.config import load_config
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.sort import sort_layout
from oreo_lakehouse.session import spark_session
from oreo_lakehouse.tables.contract import RowCertificate, Staged
from oreo_lakehouse.tables.delta import DeltaTable
from oreo_lakehouse.tables.delta.fileblocks import to_blocks
from oreo_lakehouse.tables.delta.statistics import rust_listing

BLOCKS = 16


class Timer:
    """Prints how long its block took."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> Timer:
        self.start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self.start
        print(f"{self.what:60s} {self.seconds:8.2f} s", flush=True)


def empty_table(folder: Path, files: int) -> pa.Schema:
    """A log that lists `files` files which nobody reads."""
    rows = pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.int32()), "s": pa.array([], pa.string())})
    deltalake.write_deltalake(str(folder), rows)
    with (folder / "_delta_log" / f"{1:020d}.json").open("w") as out:
        out.write(json.dumps({"commitInfo": {"timestamp": 1, "operation": "WRITE", "operationParameters": {}}}) + "\n")
        for i in range(files):
            out.write(json.dumps({"add": fake(f"part-{i:05d}-{uuid.uuid4()}.c000.snappy.parquet", i)}) + "\n")
    return rows.schema


def fake(path: str, i: int) -> dict[str, Any]:
    bounds = {"minValues": {"id": i, "v": 0, "s": "a"}, "maxValues": {"id": i + 9, "v": 6, "s": "z"}}
    stats = {"numRecords": 10, **bounds, "nullCount": {"id": 0, "v": 0, "s": 0}}
    about = {"path": path, "partitionValues": {}, "size": 1000, "modificationTime": 1, "dataChange": True}
    return {**about, "stats": json.dumps(stats)}


def many_files(spark: SparkSession, root: Path, files: int) -> None:
    empty_table(root / "many", files)
    table = DeltaTable.for_path(spark, str(root / "many"))
    layout = sort_layout(Sample(pa.table({"id": list(range(1000))})), ["id"], 200)
    with Timer(f"plan over {files} files"):
        plan = table.plan(layout, "")
    with Timer(f"statistics of {files} files"):
        table.blocks()
    listed = (root / "many" / "_delta_log" / f"{1:020d}.json").read_text().splitlines()
    keys = tuple({"key": json.loads(line)["add"]["path"]} for line in listed[1:])
    added = tuple(fake(f"oreo-run-{i}.parquet", i) for i in range(files))
    staged = Staged(
        layout.id, "run", plan.base_version, RowCertificate(10 * files, "0"), (), 10 * files, 0, files, "", added, keys
    )
    with Timer(f"commit of {files} files for {files}"):
        print(table.commit(staged, {}))


def against_zorder(spark: SparkSession, root: Path, rows: int) -> None:
    made = spark.range(0, rows, 1, 8).selectExpr(
        "id", "cast(hash(id) % 100000 as int) a", "cast(hash(id, 7) % 100000 as int) b", "rand(1) c", "uuid() s"
    )
    for name in ("warm", "ours", "theirs"):
        made.write.format("delta").save(str(root / name))
    size = sum(f.stat().st_size for f in (root / "ours").glob("*.parquet")) // BLOCKS
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(size))
    spark.conf.set("spark.databricks.delta.optimize.minFileSize", str(1 << 40))
    for name in ("warm", "ours"):
        table = DeltaTable.for_path(spark, str(root / name))
        layout = sort_layout(Sample(table.sample(20_000, 1, ["a", "b"])), ["a", "b"], BLOCKS)
        if name == "warm":
            table.commit(table.stage(table.plan(layout, "_oreo_bid"), "warm"), {})
            continue
        plan = table.plan(layout, "_oreo_bid")
        with Timer("layout: stage") as stage:
            staged = table.stage(plan, "run")
        with Timer("layout: verify") as verify:
            table.verify(staged)
        with Timer("layout: commit") as commit:
            table.commit(staged, {})
        print(f"{'files':60s} {len(staged.paths):8d}")
    with Timer("OPTIMIZE ZORDER BY (a, b)") as zorder:
        spark.sql(f"OPTIMIZE delta.`{root / 'theirs'}` ZORDER BY (a, b)")
    files = len(deltalake.DeltaTable(str(root / "theirs")).file_uris())
    print(f"{'files':60s} {files:8d}")
    quick = stage.seconds + commit.seconds
    print(f"{'stage + commit / ZORDER':60s} {quick / zorder.seconds:8.2f}")
    print(f"{'with verification / ZORDER':60s} {(quick + verify.seconds) / zorder.seconds:8.2f}")


def statistics(root: Path, files: int = 100_000) -> None:
    schema = empty_table(root / "wide", files)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Timer(f"statistics of {files} files without Spark"):
        listing = rust_listing(str(root / "wide"), 1)
        assert listing is not None
        to_blocks(listing, from_arrow_schema(schema), ())
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{'memory that it needed':60s} {grown / 1024:8.0f} MB")


def main() -> None:
    rows, files = ([int(word) for word in sys.argv[1:]] + [2_000_000, 20_000][len(sys.argv) - 1 :])[:2]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        statistics(root)
        conf = {"spark.sql.catalogImplementation": "in-memory"}
        flags = {"spark.warehouse": str(root / "warehouse"), "spark.driver_memory": "3g", "spark.conf": conf}
        spark = spark_session(load_config(flags=flags, environ={}))
        many_files(spark, root, files)
        against_zorder(spark, root, rows)
        spark.stop()


if __name__ == "__main__":
    main()
