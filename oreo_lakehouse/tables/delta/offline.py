"""A Delta table in a folder of this machine, looked at through delta-rs: no JVM, nothing changed.

Whatever delta-rs cannot tell for sure (a reader feature that it lacks) is left to Spark, by answering None.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.history.sparktypes import kind_of_type
from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.tables.commits import LayoutCommit
from oreo_lakehouse.tables.contract import TableIdentity
from oreo_lakehouse.tables.delta.commitnotes import LAYOUT, layout_commit, note_of
from oreo_lakehouse.tables.delta.fileblocks import FileColumn, blocks_of
from oreo_lakehouse.tables.delta.listing import rust_listing

if TYPE_CHECKING:
    from oreo_lakehouse.layouts.blocks import Blocks

_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
"""Types that the log calls otherwise than SQL."""
_KNOWN_FEATURES = {"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}


@dataclass(frozen=True)
class OfflineDelta:
    """One version of a Delta table."""

    identity: TableIdentity
    _folder: Path
    _version: int
    _columns: tuple[FileColumn, ...]
    _partitions: tuple[str, ...]
    _commits: tuple[LayoutCommit, ...]

    def named(self, name: str) -> OfflineDelta:
        """The same, by the name that a catalog has for it."""
        return replace(self, identity=replace(self.identity, name=name))

    def version(self) -> int:
        return self._version

    def schema(self) -> dict[str, Kind]:
        return {column.name: column.kind for column in self._columns}

    def column_keys(self) -> dict[str, str]:
        return {column.name: column.physical for column in self._columns}

    def layout_commits(self) -> list[LayoutCommit]:
        return list(self._commits)

    def blocks(self, version: int | None = None) -> Blocks | None:
        """The live files' statistics; None where only Spark can tell."""
        files = rust_listing(str(self._folder), self._version if version is None else version)
        return None if files is None else blocks_of(files, self._columns, self._partitions)


def open_offline(folder: Path) -> OfflineDelta | None:
    """The table in a folder, or None if it takes Spark to read it."""
    from deltalake import DeltaTable

    try:
        table = DeltaTable(str(folder))
        features = set(table.protocol().reader_features or ())
        if not features <= _KNOWN_FEATURES:
            return None
        metadata, version, schema = table.metadata(), table.version(), json.loads(table.schema().to_json())
        history = table.history()
    except Exception:  # whatever delta-rs stumbles over, Spark reads, or says what is wrong
        return None
    place = f"file:{folder}"
    return OfflineDelta(
        identity=TableIdentity(str(metadata.id), f"delta.{quoted(place)}", "delta", place),
        _folder=folder,
        _version=int(version),
        _columns=tuple(_column(field) for field in schema["fields"]),
        _partitions=tuple(metadata.partition_columns),
        _commits=tuple(_commits(history)),
    )


def _column(field: dict[str, Any]) -> FileColumn:
    name, metadata, type_name = str(field["name"]), field.get("metadata") or {}, field["type"]
    kind = Kind.OTHER
    is_char = str(metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")).lower().startswith("char")  # padded when compared
    if isinstance(type_name, str) and "__COLLATIONS" not in metadata and not is_char:
        kind = kind_of_type(_NAMES.get(type_name, type_name))
    return FileColumn(name, str(metadata.get("delta.columnMapping.physicalName", name)), kind)


def _commits(history: list[dict[str, Any]]) -> list[LayoutCommit]:
    """Our commits, newest first."""
    found: list[LayoutCommit] = []
    for entry in history:
        text = entry.get("userMetadata")
        note = note_of(text) if isinstance(text, str) and LAYOUT in text else None
        if note is not None:
            time = datetime.fromtimestamp(int(entry["timestamp"]) / 1000, UTC)
            found.append(layout_commit(int(entry["version"]), time, note))
    return sorted(found, key=lambda commit: -commit.version)
