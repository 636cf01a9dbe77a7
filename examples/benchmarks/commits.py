"""What a layout costs beside the engine's own rewrite: `uv run python examples/benchmarks/commits.py [rows] [times]`.

For Delta against OPTIMIZE ZORDER BY, for Iceberg against rewrite_data_files with a sort: the same bytes, by the same
two columns, to about the same number of files, in turn and in one run; the first round only warms up. Prints medians of
the others, and before that what planning and committing many files takes, and reading the statistics of 100,000.
"""

from __future__ import annotations

import json
import resource
import statistics
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
from oreo_lakehouse.jvm import jvm
from oreo_lakehouse.layouts.curve import ZOrderLayout
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.sort import sort_layout
from oreo_lakehouse.session import spark_session
from oreo_lakehouse.tables.contract import Committed, RowCertificate, Staged, Table
from oreo_lakehouse.tables.delta import DeltaTable
from oreo_lakehouse.tables.delta.fileblocks import to_blocks
from oreo_lakehouse.tables.delta.statistics import rust_listing
from oreo_lakehouse.tables.iceberg import IcebergTable

BLOCKS = 16
COLUMNS = ["a", "b"]


def said(what: str, value: float, unit: str) -> None:
    print(f"{what:70s} {value:8.2f} {unit}", flush=True)


class Watch:
    """Seconds by name, over several rounds."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def time(self, what: str, work: Any) -> Any:
        started = time.perf_counter()
        result = work()
        self.seconds.setdefault(what, []).append(time.perf_counter() - started)
        return result

    def median(self, *parts: str) -> float:
        """Of the sum of the parts in a round, the first round left out."""
        rounds = list(zip(*(self.seconds[part] for part in parts), strict=True))
        return statistics.median(sum(one) for one in rounds[1:])


def against_the_engine(spark: SparkSession, kind: str, rows: int, times: int) -> None:
    watch = Watch()
    for number in range(times + 1):
        ours, theirs = (f"{'' if kind == 'delta' else 'iceberg.'}bench.{kind}_{who}_{number}" for who in ("o", "t"))
        made = spark.range(0, rows, 1, 8).selectExpr(
            "id", "cast(hash(id) % 100000 as int) a", "cast(hash(id, 7) % 100000 as int) b", "rand(1) c", "uuid() s"
        )
        for name in (ours, theirs):
            made.writeTo(name).using(kind).create()
        table: Table = (DeltaTable if kind == "delta" else IcebergTable).for_name(spark, ours)
        size = table.blocks().total_bytes // BLOCKS
        for turn in (0, 1) if number % 2 else (1, 0):
            if turn:
                engine_rewrite(spark, watch, kind, theirs, size)
            else:
                lay_out(watch, table)
        for name in (ours, theirs):
            spark.sql(f"DROP TABLE {name}{' PURGE' if kind == 'iceberg' else ''}")
    engine = watch.median("engine")
    said(f"{kind}: the engine's rewrite of {rows} rows", engine, "s")
    for part in ("stage", "verify", "verify, facts", "commit"):
        said(f"{kind}: {part}", watch.median(part), "s")
    said(f"{kind}: stage + commit / engine", watch.median("stage", "commit") / engine, "x")
    said(f"{kind}: stage + verify + commit / engine", watch.median("stage", "verify", "commit") / engine, "x")
    for part in ("verify", "verify, facts"):
        said(f"{kind}: {part} / (stage + commit)", watch.median(part) / watch.median("stage", "commit"), "x")


def lay_out(watch: Watch, table: Table) -> None:
    sample = Sample(table.sample(20_000, 1, COLUMNS))
    curve = ZOrderLayout.of(sample, COLUMNS, BLOCKS) if table.format == "delta" else None
    plan = table.plan(curve or sort_layout(sample, COLUMNS, BLOCKS), "_oreo_bid")
    staged = watch.time("stage", lambda: table.stage(plan, uuid.uuid4().hex))
    watch.time("verify", lambda: table.verify(staged, ()))
    watch.time("verify, facts", lambda: table.verify(staged, COLUMNS))  # as a run does it, for pruning
    assert isinstance(watch.time("commit", lambda: table.commit(staged, {})), Committed)
    print(f"  {table.format}: {len(staged.paths)} files by us", flush=True)


def engine_rewrite(spark: SparkSession, watch: Watch, kind: str, name: str, size: int) -> None:
    if kind == "delta":
        spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(size))
        spark.conf.set("spark.databricks.delta.optimize.minFileSize", str(1 << 40))
        watch.time("engine", lambda: spark.sql(f"OPTIMIZE {name} ZORDER BY ({', '.join(COLUMNS)})"))
    else:
        plain, order = name.removeprefix("iceberg."), ", ".join(f"{column} ASC" for column in COLUMNS)
        options = f"map('rewrite-all', 'true', 'target-file-size-bytes', '{size}')"
        call = f"CALL iceberg.system.rewrite_data_files(table => '{plain}', strategy => 'sort', "
        watch.time("engine", lambda: spark.sql(f"{call} sort_order => '{order}', options => {options})"))
    files = len((DeltaTable if kind == "delta" else IcebergTable).for_name(spark, name).blocks())
    print(f"  {kind}: {files} files by the engine, {watch.seconds['engine'][-1]:.1f} s", flush=True)


def empty_delta(folder: Path, files: int) -> pa.Schema:
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


def swap_of_many(table: Table, removed: Any, added: Any, files: int) -> None:
    """Plan over many files, and commit as many new ones in their place; nobody reads them."""
    watch = Watch()
    layout = sort_layout(Sample(pa.table({"id": list(range(1000))})), ["id"], 200)
    for what, work in (("plan over", lambda: table.plan(layout, "")), ("statistics of", table.blocks)):
        watch.time(what, work)
        said(f"{table.format}: {what} {files} files", watch.seconds[what][0], "s")
    staged = Staged(
        layout_id=layout.id,
        run_id="run",
        base_version=table.version(),
        certificate=RowCertificate(10 * files, "0"),
        paths=(),
        rows=10 * files,
        bytes=0,
        replaced_files=files,
        added=tuple(added),
        removed=tuple(removed),
    )
    assert isinstance(watch.time("commit", lambda: table.commit(staged, {})), Committed)
    said(f"{table.format}: commit of {files} files for {files}", watch.seconds["commit"][0], "s")


def many_on_delta(spark: SparkSession, folder: Path, files: int) -> None:
    empty_delta(folder, files)
    table = DeltaTable.for_path(spark, str(folder))
    keys = [{"key": name} for name in table.blocks().names]
    swap_of_many(table, keys, [fake(f"oreo-run-{i}.parquet", i) for i in range(files)], files)


def many_on_iceberg(spark: SparkSession, files: int) -> None:
    spark.sql("CREATE TABLE iceberg.bench.many (id BIGINT, v INT, s STRING) USING iceberg")
    table = IcebergTable.for_name(spark, "iceberg.bench.many")
    java, engine = table._load(), table._engine
    append = java.newAppend()
    for i in range(files):
        made = (
            jvm(spark).org.apache.iceberg.DataFiles.builder(java.spec()).withPath(f"{java.location()}/data/{i}.parquet")
        )
        append.appendFile(made.withFileSizeInBytes(1000).withRecordCount(10).build())
    append.commit()
    java = table._load()
    tasks = engine.files.plan(java, table.version(), False)
    removed = json.loads(engine.swaps.outgoing(java, java.currentSnapshot().sequenceNumber(), 2, tasks))
    added = json.loads(engine.swaps.incoming(java, engine.files.dataFiles(tasks)))
    added = [{**file, "file-path": file["file-path"].replace("/data/", "/data/oreo-run/")} for file in added]
    swap_of_many(table, removed, added, files)


def statistics_of_many(folder: Path, files: int = 100_000) -> None:
    schema = empty_delta(folder, files)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    listing = rust_listing(str(folder), 1)
    assert listing is not None
    to_blocks(listing, from_arrow_schema(schema), ())
    said(f"delta: statistics of {files} files without Spark", time.perf_counter() - started, "s")
    said("delta: memory that it needed", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, "MB")


def main() -> None:
    given = [int(word) for word in sys.argv[1:]]
    rows, times = (given + [2_000_000, 3][len(given) :])[:2]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        statistics_of_many(root / "wide")
        conf = {"spark.sql.catalogImplementation": "in-memory"}
        flags = {"spark.warehouse": str(root / "warehouse"), "spark.driver_memory": "3g", "spark.conf": conf}
        spark = spark_session(load_config(flags=flags, environ={}))
        spark.sql("CREATE DATABASE bench")
        spark.sql("CREATE NAMESPACE iceberg.bench")
        many_on_delta(spark, root / "many", 20_000)
        many_on_iceberg(spark, 2_000)
        for kind in ("delta", "iceberg"):
            against_the_engine(spark, kind, rows, times)
        spark.stop()


if __name__ == "__main__":
    main()
