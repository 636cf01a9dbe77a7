"""Apache Iceberg behind the table contract: statistics from raw manifests, layouts as `replace` snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oreo_lakehouse.tables.iceberg.table import IcebergTable

__all__ = ["IcebergTable"]


def __getattr__(name: str) -> Any:
    """Loaded when first used: reading a table's files without a JVM must not import Spark."""
    if name == "IcebergTable":
        from oreo_lakehouse.tables.iceberg.table import IcebergTable

        return IcebergTable
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
