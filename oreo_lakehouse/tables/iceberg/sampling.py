"""Some rows of an Iceberg table, drawn by a hash of each row's place.

Not by Spark's own sampling, which depends on the order of tasks. In format version 3, rows that are read by their files
have no place, but ids of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from oreo_lakehouse.errors import ConflictError
from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.tables.iceberg.engine import version_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from oreo_lakehouse.tables.iceberg.engine import Engine

_KEY = "__oreo_sample_key"
_ROW_ID = "_row_id"
_MARGIN = 1.2
"""How many more rows a sample draws than asked for, so that it rarely has too few."""


def engine_tasks(engine: Engine, table: Any, only: Collection[str]) -> Any:
    """The tasks that read these files of the present snapshot.

    Raises:
        ConflictError: one of them is not in the table any more.
    """
    tasks = engine.files.only(engine.files.plan(table, version_of(table), False), engine.texts(only))
    if len(tasks) != len(set(only)):
        raise ConflictError(f"files of {table.name()} were replaced while they were to be read; run again.")
    return tasks


def draw(frame: DataFrame, rows: int, total: int, seed: int, columns: Sequence[str]) -> pa.Table:
    """About `rows` of the frame's `total` rows, the same ones for the same seed."""
    share = min(1.0, (_MARGIN * rows + 100) / max(1, total))
    key = sf.xxhash64(sf.lit(seed), *_place(frame))
    drawn = frame.select(*[sf.col(quoted(name)) for name in columns], key.alias(_KEY))
    if share < 1:
        drawn = drawn.where(sf.col(_KEY) < sf.lit(int((share - 0.5) * 2**64)))
    return drawn.toArrow().sort_by(_KEY).drop_columns([_KEY]).slice(0, rows)


def _place(frame: DataFrame) -> list[Column]:
    if _ROW_ID not in frame.columns:
        return [sf.col("_file"), sf.col("_pos")]
    # A table that was upgraded and not written to since has no ids yet.
    return [sf.input_file_name(), sf.coalesce(sf.col(_ROW_ID), sf.monotonically_increasing_id())]
