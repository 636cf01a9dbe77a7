"""Delta Lake tables: statistics in, layouts out as commits that change no data."""

from oreo_lakehouse.tables.delta.table import DeltaTable

__all__ = ["DeltaTable"]
