"""DuckDB writes a Parquet file's rows into one file a block: what this machine can do without Spark.

    python duckwrite.py SOURCE FOLDER MEMORY COLUMN…

The source has each row's block in the column `bid`; inside a block, rows are sorted by the columns. A process of its
own, so that its CPU seconds and memory are nobody else's. Prints one JSON object.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from oreo_lakehouse.layouts.layout import Layout

_PART = 200_000


def with_blocks(source: Path, layout: Layout, made: Path) -> None:
    """The rows of `source` with their blocks in a column `bid`."""
    writer = None
    for batch in pq.ParquetFile(source).iter_batches(_PART):
        rows = pa.Table.from_batches([batch])
        rows = rows.append_column("bid", pa.array(layout.assign(rows)))
        writer = writer or pq.ParquetWriter(made, rows.schema)
        writer.write_table(rows)
    if writer is not None:
        writer.close()


def write(source: str, folder: str, memory: str, columns: list[str], threads: int = 2) -> dict[str, Any]:
    """Write and tell what it took."""
    engine = duckdb.connect(config={"threads": threads, "memory_limit": f"{memory.upper()}B"})
    engine.execute("SET temp_directory = ?", [f"{folder}-spill"])
    order = ", ".join(f'"{name}"' for name in ["bid", *columns])
    started = time.perf_counter()
    engine.execute(
        f"COPY (SELECT * FROM read_parquet(?) ORDER BY {order}) TO '{folder}' "
        "(FORMAT parquet, COMPRESSION snappy, PARTITION_BY (bid), WRITE_PARTITION_COLUMNS true)",
        [source],
    )
    seconds = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_SELF)
    sizes = [file.stat().st_size for file in Path(folder).rglob("*.parquet")]
    return {
        "seconds": seconds,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "memory_mb": used.ru_maxrss / 1024,
        "sizes": sizes,
    }


if __name__ == "__main__":
    print(json.dumps(write(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])))
