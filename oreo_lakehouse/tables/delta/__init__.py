"""Delta Lake tables: statistics in, layouts out as commits that change no data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oreo_lakehouse.tables.delta.table import DeltaTable

__all__ = ["DeltaTable"]


def __getattr__(name: str) -> Any:
    """Loaded when first used: reading a table's files without a JVM must not import Spark."""
    if name == "DeltaTable":
        from oreo_lakehouse.tables.delta.table import DeltaTable

        return DeltaTable
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
