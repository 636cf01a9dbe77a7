"""Apache Iceberg behind the table contract: statistics from raw manifests, layouts as `replace` snapshots."""

from oreo_lakehouse.tables.iceberg.table import IcebergTable

__all__ = ["IcebergTable"]
