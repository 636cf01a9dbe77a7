"""`oreo calibrate`: measure alpha now, by a scan of the table and a trial rewrite of some of its files.

The trial stages and verifies files as a real rewrite does, and then deletes them: nothing becomes visible and the table
is not touched. What it takes for some of the bytes is projected to all of them; a small table is rewritten whole.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as sf

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.errors import TableError
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.sort import sort_layout
from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.maintenance.alpha import Alpha, alpha_of
from oreo_lakehouse.maintenance.dossier import Dossier, open_dossier
from oreo_lakehouse.maintenance.lock import locked
from oreo_lakehouse.maintenance.progress import Progress, silent, spark_share
from oreo_lakehouse.maintenance.weighing import BYTES, share_of
from oreo_lakehouse.predicates.columns import columns_of
from oreo_lakehouse.predicates.values import Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from oreo_lakehouse.layouts.blocks import Blocks

SHARE, LEAST_BYTES, MOST_BYTES = 0.1, 32 << 20, 512 << 20
"""How much of a table a trial rewrites: a tenth of it, at least one file, half a gigabyte at most. And so much that
writing takes far longer than starting Spark's jobs, which a projection would multiply: all of a small table."""
_COLUMNS = 3
"""Columns that a scan reads: as many as a query's filters usually name."""
_SCANS, _WHILE = 8, 1.5
"""At most so many scans are timed, and a third only while those after the first took no longer than that."""
_LEAST_SAVED = 0.1
"""Of a scan's time: below that, two measurements of a small table differ by more than what is between them."""


@dataclass(frozen=True)
class Calibration:
    """What was measured, and the alpha that counts from now on."""

    table: str
    columns: tuple[str, ...]
    scan_seconds: float
    """Of these columns in the whole table, beyond what any query takes."""
    rewrite_seconds: float
    """Of the whole table, projected from the trial."""
    trial_bytes: int
    table_bytes: int
    alpha: Alpha

    def to_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "columns": list(self.columns),
            "scan_seconds": round(self.scan_seconds, 3),
            "rewrite_seconds": round(self.rewrite_seconds, 3),
            "trial_bytes": self.trial_bytes,
            "table_bytes": self.table_bytes,
            "alpha": round(self.alpha.value, 2),
            "source": self.alpha.source,
        }


def calibrate(
    spark: SparkSession, table: str, config: Config | None = None, *, progress: Progress = silent
) -> Calibration:
    """Measure what a rewrite of this table costs in scans of it, and remember it.

    Raises:
        TableError: the table is empty, or has no column that can be sorted.
    """
    config = load_config() if config is None else config
    dossier = open_dossier(spark, table, config)
    identity = dossier.table.identity
    with locked(dossier.store, identity.uuid, identity.name):
        blocks = dossier.table.blocks()
        if blocks.total_rows == 0:
            raise TableError(f"{identity.name} is empty: there is nothing to measure")
        columns = _asked_columns(dossier)
        scan = _scan_seconds(dossier, blocks, columns, progress)
        trial, seconds = _trial_seconds(dossier, blocks, columns[0], progress)
        rewrite = seconds * blocks.total_bytes / max(1, trial)
        facts: dict[str, Any] = {
            "scan_seconds": round(scan, 4),
            "rewrite_seconds": round(rewrite, 3),
            "alpha": round(rewrite / scan, 3),
            "bytes": trial,
            "columns": list(columns),
        }
        if config.decide.weigh == BYTES:
            facts["scan_share"] = share_of(columns, dossier.table.column_bytes())
            facts["alpha"] = round(rewrite / scan * facts["scan_share"], 3)
        dossier.ledger.append(uuid.uuid4().hex, [("calibration", facts)])
        alpha = alpha_of(config.decide.alpha, dossier.ledger.lines(["commit", "calibration"]), config.decide.weigh)
    return Calibration(identity.name, columns, scan, rewrite, trial, blocks.total_bytes, alpha)


def _asked_columns(dossier: Dossier) -> tuple[str, ...]:
    """The columns that queries filter by most, or the table's first ones while there is no history."""
    kinds = dossier.table.schema()
    able = [name for name, kind in kinds.items() if kind not in (Kind.OTHER, Kind.BINARY)]
    if not able:
        raise TableError(f"{dossier.table.identity.name} has no column that a layout could sort by")
    queries, _ = dossier.history.read_since({})
    uses = Counter(name for query in queries for name in columns_of(query.predicate) if name in able)
    return tuple(name for name, _ in uses.most_common(_COLUMNS)) or tuple(able[:_COLUMNS])


def _scan_seconds(dossier: Dossier, blocks: Blocks, columns: tuple[str, ...], progress: Progress) -> float:
    """What a scan of these columns takes beyond what a query takes that skips all it can: no layout saves the rest."""
    table = dossier.table
    with spark_share(table.spark, progress, "scanning the columns that queries filter by"):
        everything = _seconds(table.spark.table(table.identity.name), columns)
        if len(blocks) == 1:
            return everything
        smallest = int(np.argmin(blocks.sizes))
        with table.reading([blocks.names[smallest]]) as rows:
            saved = max(everything - _seconds(rows, columns), _LEAST_SAVED * everything)
    return saved / (1.0 - float(blocks.sizes[smallest]) / max(1, blocks.total_bytes))


def _seconds(rows: DataFrame, columns: tuple[str, ...]) -> float:
    """The best of two scans, or of more while they are short: code is compiled during the first ones."""
    took: list[float] = []
    while len(took) < 2 or (len(took) < _SCANS and sum(took[1:]) < _WHILE):
        started = time.monotonic()
        rows.select(*[sf.col(quoted(name)) for name in columns]).write.format("noop").mode("overwrite").save()
        took.append(time.monotonic() - started)
    return min(took)


def _trial_seconds(dossier: Dossier, blocks: Blocks, column: str, progress: Progress) -> tuple[int, float]:
    """Bytes of some files and the seconds that staging and verifying them takes."""
    table = dossier.table
    limit = min(MOST_BYTES, max(LEAST_BYTES, SHARE * blocks.total_bytes))
    count = max(1, int((np.cumsum(blocks.sizes) <= limit).sum()))
    chosen = blocks.names[:count]
    layout = sort_layout(Sample(table.sample(10_000, 1, [column]), blocks.total_rows), [column], max(2, count))
    plan = table.plan(layout, "", chosen)
    run_id, started = uuid.uuid4().hex, time.monotonic()
    dossier.pending.begin(run_id)
    with spark_share(table.spark, progress, f"rewriting {count} files on trial"):
        staged = table.stage(plan, run_id)
    dossier.pending.add(run_id)
    with spark_share(table.spark, progress, "verifying them"):
        table.verify(staged)
    seconds = time.monotonic() - started
    table.discard(staged)
    dossier.pending.remove(run_id)
    return plan.bytes, seconds
