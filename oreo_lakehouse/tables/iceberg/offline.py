"""An Iceberg table of the embedded catalog, looked at through its own files: no JVM, nothing changed."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.errors import TableError
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.tables.commits import LayoutCommit
from oreo_lakehouse.tables.contract import TableIdentity
from oreo_lakehouse.tables.iceberg.history import Snapshot, commits_among
from oreo_lakehouse.tables.iceberg.manifests import is_local, read_entries, read_local, read_metadata
from oreo_lakehouse.tables.iceberg.schema import columns_of
from oreo_lakehouse.tables.iceberg.statistics import blocks_of, current_schema

if TYPE_CHECKING:
    from oreo_lakehouse.layouts.blocks import Blocks

_NONE = -1
"""The version of a table before its first snapshot."""


@dataclass(frozen=True)
class OfflineIceberg:
    """One version of an Iceberg table: all that its metadata file tells."""

    identity: TableIdentity
    _metadata: dict[str, Any]

    def version(self) -> int:
        found = self._metadata.get("current-snapshot-id")
        return _NONE if found is None else int(found)

    def schema(self) -> dict[str, Kind]:
        return {column.name: column.kind for column in columns_of(current_schema(self._metadata))}

    def column_keys(self) -> dict[str, str]:
        return {column.name: str(column.id) for column in columns_of(current_schema(self._metadata))}

    def layout_commits(self) -> list[LayoutCommit]:
        snapshots: list[dict[str, Any]] = self._metadata.get("snapshots") or []
        parents = {s["snapshot-id"]: s.get("parent-snapshot-id") for s in snapshots}
        main: set[int] = set()
        at: int | None = self.version()
        while at is not None and at in parents and at not in main:
            main.add(at)
            at = parents[at]
        return commits_among(
            [
                Snapshot(
                    s["snapshot-id"],
                    s["timestamp-ms"],
                    s["snapshot-id"] in main,
                    {k: v for k, v in (s.get("summary") or {}).items() if k.startswith("oreo.")},
                )
                for s in sorted(snapshots, key=lambda s: (s.get("sequence-number", 0), s["timestamp-ms"]))
            ]
        )

    def blocks(self, version: int | None = None) -> Blocks | None:
        """The live files' statistics."""
        wanted = self.version() if version is None else version
        if wanted == _NONE:
            return blocks_of(self._metadata, [])
        snapshot = next((s for s in self._metadata.get("snapshots", []) if s["snapshot-id"] == wanted), None)
        if snapshot is None:
            raise TableError(f"{self.identity.name} has no snapshot {wanted}: it has expired, or never was there.")
        return blocks_of(self._metadata, read_entries(snapshot, read_local))


def open_offline(database: Path, catalog: str, namespace: str, table: str) -> OfflineIceberg | None:
    """The table in an SQLite catalog, or None if it is not there or takes Spark to read it."""
    location = _location(database, catalog, namespace, table)
    if location is None or not is_local(location):
        return None
    metadata = read_metadata(location, read_local)
    place = str(metadata["location"])
    if not is_local(place):
        return None
    name = f"{catalog}.{namespace}.{table}"
    return OfflineIceberg(TableIdentity(str(metadata["table-uuid"]), name, "iceberg", place), metadata)


def _location(database: Path, catalog: str, namespace: str, table: str) -> str | None:
    """Where the newest metadata is. The file is opened for reading only; Spark may write to it meanwhile."""
    query = (
        "SELECT metadata_location FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND "
        "table_name = ? AND (iceberg_type IS NULL OR iceberg_type = 'TABLE')"
    )
    try:
        connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, timeout=10)
        try:
            found = connection.execute(query, (catalog, namespace, table)).fetchone()
        finally:
            connection.close()
    except sqlite3.Error:  # not there yet, locked, or of another schema: Spark knows better
        return None
    return str(found[0]) if found and found[0] else None
