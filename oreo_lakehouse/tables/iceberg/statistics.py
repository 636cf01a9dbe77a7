"""A snapshot's files as `Blocks`: typed bounds by field id, and nothing claimed that a file does not prove."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Decimal
from typing import Any

import numpy as np

from oreo_lakehouse.layouts.blocks import Blocks, ColumnStats
from oreo_lakehouse.predicates.values import Kind, Value
from oreo_lakehouse.tables.iceberg.manifests import ManifestEntry
from oreo_lakehouse.tables.iceberg.partitions import partition_texts
from oreo_lakehouse.tables.iceberg.schema import IcebergColumn, columns_of

_DATA = 0
_WIDE = Context(prec=80)
"""Decimals have up to 38 digits, more than Python's default context keeps."""


def blocks_of(metadata: Mapping[str, Any], entries: Iterable[ManifestEntry]) -> Blocks:
    """The live data files of one snapshot, described under the table's current schema.

    `rows` are exact without deletes and with deletion vectors; position and equality delete files leave it an upper
    bound, because positions may repeat and keys may match nothing.
    """
    files: list[ManifestEntry] = []
    deleted: dict[str, int] = {}
    for entry in entries:
        if entry.content == _DATA:
            files.append(entry)
        elif entry.is_vector and entry.referenced is not None:
            deleted[entry.referenced] = entry.rows
    live = [file.rows - deleted.get(file.path, 0) for file in files]
    partitions = _identity_fields(metadata)
    columns = {
        column.name: _column(column, files, live, partitions)
        for column in columns_of(current_schema(metadata))
        if column.kind is not Kind.OTHER
    }
    return Blocks(
        rows=np.array(live, dtype=np.int64),
        columns=columns,
        sizes=np.array([file.bytes for file in files], dtype=np.int64),
        names=tuple(file.path for file in files),
        partitions=partition_texts(metadata, files),
    )


def current_schema(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that the table has now, in the JSON form of any format version."""
    if "schemas" not in metadata:
        return metadata["schema"]
    return next(s for s in metadata["schemas"] if s["schema-id"] == metadata["current-schema-id"])


def _identity_fields(metadata: Mapping[str, Any]) -> dict[int, dict[int, int]]:
    """By spec id: source field id -> position in the partition tuple, for fields that keep the value itself."""
    first: dict[str, Any] = {"spec-id": 0, "fields": metadata.get("partition-spec", [])}
    specs: list[dict[str, Any]] = metadata.get("partition-specs") or [first]
    return {
        spec["spec-id"]: {
            field["source-id"]: position
            for position, field in enumerate(spec["fields"])
            if field["transform"] == "identity" and "source-id" in field
        }
        for spec in specs
    }


def _column(
    column: IcebergColumn, files: list[ManifestEntry], live: list[int], partitions: dict[int, dict[int, int]]
) -> ColumnStats:
    decode = _decoder(column)
    lower: list[Value | None] = []
    upper: list[Value | None] = []
    nulls: list[int | None] = []
    for file, rows in zip(files, live, strict=True):
        position = partitions.get(file.spec_id, {}).get(column.id)
        if position is not None and _is_value(file.partition[position], column.kind):
            value = file.partition[position]
            lower.append(value)
            upper.append(value)
            nulls.append(rows if value is None else 0)
            continue
        low, high = decode(file.lower.get(column.id)), decode(file.upper.get(column.id))
        if column.kind is Kind.FLOAT:
            low, high = _with_nans(low, high, file.nans.get(column.id))
        lower.append(low)
        upper.append(high)
        nulls.append(_live_nulls(file.nulls.get(column.id), file.rows, rows))
    return ColumnStats.of(column.kind, lower, upper, nulls)


def _live_nulls(counted: int | None, written: int, live: int) -> int | None:
    """NULLs among the live rows: a count over the written ones says nothing between none and all."""
    if counted is None or written == live:
        return counted
    if counted == 0:
        return 0
    return live if counted == written else None


def _with_nans(low: Value | None, high: Value | None, nans: int | None) -> tuple[Value | None, Value | None]:
    """Iceberg keeps NaN out of the bounds and counts it; here it is the largest value."""
    if isinstance(low, float) and math.isnan(low):
        low = None  # a writer older than the NaN counts
    return low, (high if nans == 0 else math.nan)


def _is_value(value: Any, kind: Kind) -> bool:
    """Whether a partition tuple's entry is in the form that `kind` fixes (NULL always is)."""
    if value is None:
        return True
    forms: dict[Kind, type] = {
        Kind.BOOLEAN: bool,
        Kind.FLOAT: float,
        Kind.DECIMAL: Decimal,
        Kind.STRING: str,
        Kind.BINARY: bytes,
    }
    return type(value) is forms.get(kind, int)


def _decoder(column: IcebergColumn) -> Callable[[bytes | None], Value | None]:
    """From a bound's bytes to a value. Their number tells the type that a file was written with before a widening."""
    kind, scale = column.kind, column.scale

    def decode(raw: bytes | None) -> Value | None:
        if raw is None:
            return None
        if kind is Kind.STRING:
            return _text(raw)
        if kind is Kind.BINARY:
            return bytes(raw)
        if kind is Kind.DECIMAL:
            return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-scale, _WIDE)
        if kind is Kind.FLOAT:
            return struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0] if len(raw) in (4, 8) else None
        if kind is Kind.BOOLEAN:
            return raw != b"\x00"
        if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ) and len(raw) != 8:
            return None  # written as a date, before the column was widened
        return int.from_bytes(raw, "little", signed=True)

    return decode


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
