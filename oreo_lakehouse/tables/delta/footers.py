"""Statistics of new files from their Parquet footers, for a fraction of what collecting them costs.

Delta collects statistics row by row outside of the code that Spark generates, and copies every string that it compares:
of a rewrite of 31 columns that was almost a third of the processor's time. Parquet's writer keeps the same bounds
anyway. So while a large rewrite is written, Delta is asked only for what footers do not tell (decimals and timestamps,
which its reader of footers leaves out, and floats, where NaN hides the bounds); the rest is read from the footers
afterwards, by Delta's own reader. NULL counts of arrays and maps are told by neither: it takes empty maps for NULL.
"""

from __future__ import annotations

import json
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from oreo_lakehouse.jvm import java_session, scala_object
from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.tables.delta.actions import actions
from oreo_lakehouse.tables.delta.fileblocks import physical_name
from oreo_lakehouse.tables.delta.indexed import STATISTICS_COLUMNS, leaves
from oreo_lakehouse.tables.delta.log import schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.tables.delta.log import Log

ROWS = 100_000
"""Rows of a rewrite from which a job that reads footers costs less than it spares."""
_UNTOLD = (DecimalType, TimestampType, TimestampNTZType, FloatType, DoubleType)


def collect_only_untold(session: SparkSession, transaction: Any, snapshot: Any) -> None:
    """Let a transaction that only stages files, and is never committed, collect what footers will not tell."""
    schema = StructType.fromJson(json.loads(str(snapshot.statCollectionLogicalSchema().json())))
    untold = [".".join(map(quoted, path)) for path, dtype in leaves(schema) if isinstance(dtype, _UNTOLD)]
    if not untold:
        session.conf.set("spark.databricks.delta.stats.collect", "false")
        return
    metadata = json.loads(str(snapshot.metadata().json()))
    metadata["metaData"].setdefault("configuration", {})[STATISTICS_COLUMNS] = ",".join(untold)
    action = scala_object(session, "org.apache.spark.sql.delta.actions.Action")
    transaction.updateMetadata(action.fromJson(json.dumps(metadata)), False)


def completed(log: Log, snapshot: Any, files: Any, added: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """New files that have rows, with all their statistics; `files` in Java, `added` the same as JSON values."""
    with log.session() as session:  # a new one: Delta sends it along to tasks, where one that observed rows cannot go
        text = str(actions(log.spark).footers(java_session(session), log.java, snapshot, files))
    lines = text.removesuffix("\n").split("\n")
    told = dict(zip(lines[::2], lines[1::2], strict=True))
    vectors = bool(snapshot.deletionVectorsSupported())
    typed = leaves(schema_of(snapshot), physical_name)
    wrong = [path for path, dtype in typed if isinstance(dtype, ArrayType | MapType)]
    full: list[dict[str, Any]] = []
    for add in added:
        statistics = _values(told[str(add["path"])])
        if statistics["numRecords"] == "0":
            continue
        full.append(add)
        for *above, name in wrong:
            reduce(lambda inner, step: inner.get(step, {}), above, statistics.get("nullCount", {})).pop(name, None)
        if not vectors:
            statistics.pop("tightBounds", None)  # only tables with deletion vectors say so
        add["stats"] = _text(_merged(statistics, _values(str(add.get("stats") or "{}"))))
    return full


class _Number(str):
    """A number as it was written: a double would round decimals, a decimal has no negative zero."""

    __slots__ = ()


def _values(text: str) -> dict[str, Any]:
    return json.loads(text, parse_float=_Number, parse_int=_Number)


def _text(value: object) -> str:
    if isinstance(value, _Number):
        return value
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_text(item)}" for name, item in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _merged(base: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Both, where both know something what `more` knows."""
    for name, value in more.items():
        inner = base.get(name)
        base[name] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return base
