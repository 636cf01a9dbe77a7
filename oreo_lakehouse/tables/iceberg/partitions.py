"""The partition of each file as text, as people know it from folder names: `region=EU/day=2026-03-01`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from oreo_lakehouse.tables.iceberg.manifests import ManifestEntry

_EPOCH = date(1970, 1, 1)


def partition_texts(metadata: Mapping[str, Any], files: Sequence[ManifestEntry]) -> tuple[str, ...]:
    """One text a file; none at all while files of an earlier partitioning are left, which a rewrite would move."""
    current = metadata.get("default-spec-id", 0)
    first: dict[str, Any] = {"spec-id": 0, "fields": metadata.get("partition-spec", [])}
    specs: list[dict[str, Any]] = metadata.get("partition-specs") or [first]
    fields = next((spec["fields"] for spec in specs if spec["spec-id"] == current), [])
    kept = [(at, field) for at, field in enumerate(fields) if field["transform"] != "void"]
    if not kept or any(file.spec_id != current for file in files):
        return ()
    dates = _date_columns(metadata)
    words = [(at, field["name"], _words(field, field.get("source-id") in dates)) for at, field in kept]

    def text(file: ManifestEntry) -> str:
        values = ((name, file.partition[at], say) for at, name, say in words)
        return "/".join(f"{name}={'null' if value is None else say(value)}" for name, value, say in values)

    return tuple(text(file) for file in files)


def _words(field: Mapping[str, Any], is_date: bool) -> Callable[[Any], str]:
    """How a value of a partition field is written: Iceberg counts days, months and years from 1970."""
    transform = field["transform"]
    if transform == "day" or (transform == "identity" and is_date):
        return _day
    if transform == "month":
        return lambda months: f"{1970 + months // 12}-{months % 12 + 1:02d}"
    if transform == "year":
        return lambda years: str(1970 + years)
    return lambda value: value.hex() if isinstance(value, bytes) else str(value)


def _day(days: Any) -> str:
    if not isinstance(days, int):
        return str(days)
    try:
        return str(_EPOCH + timedelta(days=days))
    except OverflowError:
        return str(days)


def _date_columns(metadata: Mapping[str, Any]) -> set[int]:
    schemas: list[dict[str, Any]] = metadata.get("schemas") or [metadata.get("schema") or {}]
    return {field["id"] for schema in schemas for field in schema.get("fields", []) if field["type"] == "date"}
