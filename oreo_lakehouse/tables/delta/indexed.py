"""Which columns Delta keeps file statistics of, and how to make it keep those that a layout needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyspark.sql.types import (
    DataType,
    DateType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.tables.delta.log import configuration, partition_columns, schema_of

STATISTICS_COLUMNS = "delta.dataSkippingStatsColumns"
"""The table property that lists the columns with file statistics."""


def statistics_columns(snapshot: Any, needed: Sequence[str]) -> str | None:
    """The value of `delta.dataSkippingStatsColumns` that gives the needed columns statistics, None if they have them.

    By default Delta keeps statistics of the first 32 leaf columns; a column behind them never skips a file. Columns
    that have statistics keep them. A needed column that the schema lacks is one that will be added at its end.
    """
    properties, schema = configuration(snapshot), schema_of(snapshot)
    stored = StructType([field for field in schema.fields if field.name not in partition_columns(snapshot)])
    barred = {field.name for field in schema.fields} - {f.name for f in stored.fields if _eligible(f.dataType)}
    wanted = [name for name in needed if name not in barred]
    listed = properties.get(STATISTICS_COLUMNS)
    if listed is not None:
        present = {part.strip().strip("`").lower() for part in listed.split(",")}
        extra = [quoted(name) for name in wanted if name.lower() not in present]
        return ",".join([*filter(None, [listed]), *extra]) if extra else None
    limit = int(properties.get("delta.dataSkippingNumIndexedCols", "32"))
    every = list(leaves(stored))
    indexed = every if limit < 0 else every[:limit]
    have = {path[0] for path, _ in indexed if len(path) == 1}
    room = limit < 0 or len(every) < limit
    if all(name in have or (name not in stored.names and room) for name in wanted):
        return None
    kept = [".".join(map(quoted, path)) for path, dtype in indexed if len(path) > 1 or _eligible(dtype)]
    return ",".join(dict.fromkeys([*kept, *map(quoted, wanted)]))


def leaves(
    schema: StructType, name: Callable[[StructField], str] = lambda field: field.name
) -> Iterable[tuple[tuple[str, ...], DataType]]:
    """The columns that hold values, those inside structs by their path."""
    for field in schema.fields:
        if isinstance(field.dataType, StructType):
            for path, dtype in leaves(field.dataType, name):
                yield (name(field), *path), dtype
        else:
            yield (name(field),), field.dataType


def _eligible(dtype: DataType) -> bool:
    """Whether Delta accepts a column of this type in the list."""
    if isinstance(dtype, StringType):
        return dtype.simpleString() == "string"  # a collated string has no bounds
    return isinstance(dtype, NumericType | DateType | TimestampType | TimestampNTZType)
