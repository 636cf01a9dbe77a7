"""What a rewrite costs: ours, the formats' own, and the floors below which nobody can go.

    uv run --group bench python examples/benchmarks/rewrite.py
    uv run --group bench python examples/benchmarks/rewrite.py --rows 200000 --rounds 1 --format delta

Everybody rewrites a copy of the same table (TPC-H denormalised, 31 columns) into the same number of files, by the same
three columns. A first round warms up and does not count; the order rotates from round to round; medians are shown with
the lowest and the highest. "ours" is stage + commit; beside it stands reading the new files back for counts and
checksum ("verify"), and the same with the facts that pruning goes by, as a run does it. The plain copy reads and writes
without a shuffle: Spark's floor. The shuffled copy sends each row to another task, and the sorted copy puts the rows in
order there: the floors of whoever regroups rows. "plain copy of it" copies what we wrote, as rows in another order do
not compress alike. DuckDB sorts and writes our blocks: the machine's floor. Alpha is a whole rewrite of ours,
verification and facts included, over a scan; the paper measures 60 to 100.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import contenders
import duckwrite
import numpy as np
import tpch
from contenders import Copy, Ours
from measuring import GB, Measured, Meter, require, session, told, workshop
from rewritetable import record, show

from oreo_lakehouse.layouts.curve import ZOrderLayout
from oreo_lakehouse.layouts.layout import Layout
from oreo_lakehouse.layouts.qdtree import qdtree_layout
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.sort import sort_layout
from oreo_lakehouse.predicates.tree import Predicate
from oreo_lakehouse.predicates.workload import Workload

COLUMNS = ("l_shipdate", "o_custkey", "p_brand")
NARROW = 3
"""Columns of a narrow scan: as many as a query's filters usually name."""
_BYTES_A_ROW = 70
"""Of one copy, at most; to tell the need of disk by."""


class Bench:
    """One format and one number of rows."""

    def __init__(self, meter: Meter, spark: Any, fmt: str, source: Path, given: argparse.Namespace) -> None:
        self._meter, self._spark, self._format, self._source, self._given = meter, spark, fmt, source, given
        self._found: dict[str, list[tuple[Measured, list[int]]]] = {}
        self._copies: dict[str, Copy] = {}
        self._queries: list[Predicate] = []
        self._sorted: Layout | None = None

    def run(self) -> dict[str, list[tuple[Measured, list[int]]]]:
        jobs = self._jobs()
        names = list(jobs)
        for number in range(self._given.rounds + 1):
            at = number % len(names)
            for name in names[at:] + names[:at]:
                for part, measured, sizes in jobs[name]():
                    if number:
                        self._found.setdefault(part, []).append((measured, sizes))
                told(f"  {self._format} round {number}: {name}")
        for copy in self._copies.values():
            copy.drop()
        return self._found

    def _jobs(self) -> dict[str, Callable[[], Any]]:
        blocks, columns = self._given.blocks, COLUMNS
        base = self._copy("scanned")
        rows = base.table.sample(50_000, 1)
        sample = Sample(rows, base.table.blocks().total_rows)
        random, drawn = np.random.default_rng(1), tpch.Templates(rows).all
        self._queries = [draw(random) for _ in range(10) for draw in drawn.values()]
        tree = qdtree_layout(sample, Workload.of(self._queries), blocks)  # what OReO mostly writes
        self._sorted = sort_layout(sample, columns, blocks)
        alike = ZOrderLayout.of(sample, columns, blocks) if self._format == "delta" else self._sorted
        assert alike is not None
        jobs: dict[str, Callable[[], Any]] = {
            "ours": lambda: self._ours("ours", alike),
            "ours, qd-tree": lambda: self._ours("ours, qd-tree", tree),
            "plain copy": lambda: self._copied("plain copy", lambda: contenders.plain_copy(base)),
            "shuffled copy": lambda: self._copied("shuffled copy", lambda: contenders.shuffled_copy(base, blocks)),
            "sorted copy": lambda: self._copied("sorted copy", lambda: contenders.shuffled_copy(base, blocks, columns)),
            "full scan": lambda: self._scan("full scan", base, None),
            "narrow scan": lambda: self._scan("narrow scan", base, COLUMNS[:NARROW]),
            "DuckDB": self._duckdb,
        }
        if self._format == "delta":
            jobs |= {
                "ZORDER BY": lambda: self._peer("ZORDER BY", lambda c: contenders.zorder(c, columns, blocks)),
                "liquid": lambda: self._peer("liquid", lambda c: contenders.liquid(c, blocks), columns),
            }
        else:
            jobs |= {
                "sort": lambda: self._peer("sort", lambda c: contenders.sort(c, columns, blocks)),
                "zorder": lambda: self._peer("zorder", lambda c: contenders.zorder(c, columns, blocks)),
            }
        return jobs

    def _copy(self, name: str, clustered: tuple[str, ...] = ()) -> Copy:
        if name not in self._copies:
            plain = f"{self._source.stem}_{name}".replace(" ", "_").replace(",", "").replace("-", "_").lower()
            self._copies[name] = Copy.make(
                self._spark, self._format, plain, self._source, self._given.blocks, clustered
            )
        return self._copies[name]

    def _ours(self, name: str, layout: Layout) -> Any:
        copy = self._copy(name)
        ours = Ours(copy, layout, self._queries)
        steps = [self._meter.measure(ours.stage)[1]]
        copy.mark()  # only a table's first layout adds the BID column: the round that warms up
        steps += [self._meter.measure(step)[1] for step in (ours.prove, ours.verify, ours.commit)]
        sizes = _sizes(copy)
        again, copied = self._meter.measure(lambda: contenders.plain_copy(copy))
        again.drop()
        copy.restore()
        staged, proved, verified, committed = steps
        both = Measured(
            staged.seconds + committed.seconds,
            staged.cpu_seconds + committed.cpu_seconds,
            max(staged.heap_mb, committed.heap_mb),
            staged.execution_mb,
            staged.read_mb,
            staged.written_mb,
            staged.shuffled_mb,
            staged.spilled_mb,
            staged.tasks,
        )
        parts = [(name, both), (f"{name}: verify", proved), (f"{name}: verify, facts", verified)]
        return [(part, measured, sizes) for part, measured in [*parts, (f"{name}: plain copy of it", copied)]]

    def _peer(self, name: str, work: Callable[[Copy], None], clustered: tuple[str, ...] = ()) -> Any:
        copy = self._copy(name, clustered)
        _, measured = self._meter.measure(lambda: work(copy))
        sizes = _sizes(copy)
        copy.restore()
        return [(name, measured, sizes)]

    def _copied(self, name: str, work: Callable[[], Copy]) -> Any:
        made, measured = self._meter.measure(work)
        sizes = _sizes(made)
        made.drop()
        return [(name, measured, sizes)]

    def _scan(self, name: str, base: Copy, columns: tuple[str, ...] | None) -> Any:
        rows = self._spark.table(base.name)
        rows = rows.select(*columns) if columns else rows
        _, measured = self._meter.measure(lambda: rows.write.format("noop").mode("overwrite").save())
        return [(name, measured, [])]

    def _duckdb(self) -> Any:
        """Block by block the rows that our layout gives, as DuckDB alone writes them."""
        assert self._sorted is not None
        source = self._given.folder_now / f"{self._source.stem}-{self._format}.parquet"
        if not source.exists():
            duckwrite.with_blocks(self._source, self._sorted, source)
        folder = self._given.folder_now / "duckdb"
        command = [sys.executable, duckwrite.__file__, str(source), str(folder), self._given.memory, *COLUMNS]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        shutil.rmtree(folder, ignore_errors=True)
        answer = json.loads(done.stdout)
        measured = Measured(
            answer["seconds"], answer["cpu_seconds"], answer["memory_mb"], written_mb=sum(answer["sizes"]) / 1e6
        )
        return [("DuckDB", measured, answer["sizes"])]


def _sizes(copy: Copy) -> list[int]:
    return [int(size) for size in copy.table.blocks().sizes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 2_000_000, 4_000_000])
    parser.add_argument("--format", choices=["delta", "iceberg", "both"], default="both")
    parser.add_argument("--blocks", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3, help="that count, after one that does not")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="4g", help="of Spark's driver, and of DuckDB")
    parser.add_argument("--folder", type=Path, default=Path("oreo-benchmarks"), help="where generated rows are kept")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    most = max(given.rows) * _BYTES_A_ROW / GB
    with workshop() as given.folder_now:
        require(10 * most, float(given.memory.rstrip("gG")) + most + 1, given.folder_now)
        require(3 * most, 0, given.folder)
        sources = {count: tpch.file(given.folder, count) for count in given.rows}
        records: list[dict[str, Any]] = []
        with session(given.folder_now, given.master, given.memory) as (spark, _):
            meter = Meter(spark)
            for count, source in sources.items():
                for fmt in ("delta", "iceberg") if given.format == "both" else (given.format,):
                    found = Bench(meter, spark, fmt, source, given).run()
                    records.append(record(fmt, count, given.blocks, given.rounds, found))
                    if not given.json:
                        show(records[-1])
    if given.json:
        print(json.dumps(records))


if __name__ == "__main__":
    main()
