"""Raw metadata and manifests, read by pyiceberg's Avro decoder with no JVM and no catalog.

Where the bytes come from is the caller's business, so storage that only Spark can reach is read through Spark.
"""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyiceberg.avro.file import AvroFile
from pyiceberg.exceptions import ResolveError
from pyiceberg.manifest import DATA_FILE_TYPE, MANIFEST_ENTRY_SCHEMAS, ManifestFile, read_manifest_list

from oreo_lakehouse.errors import TableError

ReadBytes = Callable[[str], bytes]
"""The content of a file by its path as the metadata spells it."""

_DELETED = 2


_DAMAGE = (ResolveError, ValueError, EOFError, TypeError, KeyError, MemoryError)
"""What the decoder raises on bytes that are not what they should be."""
_FIELDS = {field.name: position for position, field in enumerate(DATA_FILE_TYPE[3].fields)}
"""Where a data file's fields are in a decoded entry; version 3 has all that earlier ones have."""


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One live file of a snapshot, data or deletes; the maps are keyed by field id."""

    content: int
    path: str
    spec_id: int
    partition: Any
    """The values of its partition fields, in the order of its spec."""
    rows: int
    bytes: int
    nulls: dict[int, int]
    nans: dict[int, int]
    lower: dict[int, bytes]
    upper: dict[int, bytes]
    referenced: str | None
    is_vector: bool
    """It is a deletion vector: its `rows` say exactly how many rows of `referenced` are gone."""


def is_local(location: str) -> bool:
    """Whether this process can open the path by itself."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", location)
    return scheme is None or scheme[1].lower() == "file"


def read_local(path: str) -> bytes:
    """The content of a file on this machine's disk."""
    return Path(local_path(path)).read_bytes()


def local_path(location: str) -> str:
    """A file location as this machine's own path.

    >>> local_path("file:///a/b c"), local_path("file:/a"), local_path("/a")
    ('/a/b c', '/a', '/a')
    """
    bare = location.removeprefix("file:")
    return bare.removeprefix("//") if bare.startswith("///") else bare


def read_metadata(location: str, read: ReadBytes) -> dict[str, Any]:
    """A table's metadata file.

    Raises:
        TableError: it is missing or damaged.
    """
    content = _content(location, read, "metadata file")
    try:
        return json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    except (ValueError, OSError, EOFError) as error:
        raise TableError(_damaged("metadata file", location)) from error


def read_entries(snapshot: dict[str, Any], read: ReadBytes) -> Iterator[ManifestEntry]:
    """The live files of a snapshot.

    Raises:
        TableError: a manifest is missing or damaged.
    """
    location = snapshot.get("manifest-list")
    if location is None:
        raise TableError(
            "a snapshot lists its manifests in the way of Iceberg releases before 0.8: append to the table once with "
            "a recent release, which rewrites the list."
        )
    try:
        manifests = list(read_manifest_list(_opened(_content(location, read, "manifest list"))))
    except _DAMAGE as error:
        raise TableError(_damaged("manifest list", location)) from error
    if not manifests and int(snapshot.get("summary", {}).get("total-data-files", 0)):
        raise TableError(_damaged("manifest list", location))
    for manifest in manifests:
        yield from _entries(manifest, read)


def _entries(manifest: ManifestFile, read: ReadBytes) -> list[ManifestEntry]:
    location = manifest.manifest_path
    content = _content(location, read, "manifest")
    spec_id = manifest.partition_spec_id
    try:
        with AvroFile[Any](_opened(content), MANIFEST_ENTRY_SCHEMAS[3]) as entries:
            found = [_entry(entry[4], spec_id) for entry in entries if entry[0] != _DELETED]
    except _DAMAGE as error:
        raise TableError(_damaged("manifest", location)) from error
    # The decoder takes a file that was cut between two blocks for a shorter one; the manifest list knows better.
    expected = (manifest.added_files_count, manifest.existing_files_count)
    if None not in expected and len(found) != sum(n or 0 for n in expected):
        raise TableError(_damaged("manifest", location))
    return found


def _entry(file: Any, spec_id: int) -> ManifestEntry:
    def value(name: str) -> Any:
        return file[_FIELDS[name]]

    return ManifestEntry(
        content=value("content"),
        path=value("file_path"),
        spec_id=spec_id,
        partition=value("partition"),
        rows=value("record_count"),
        bytes=value("file_size_in_bytes"),
        nulls=value("null_value_counts") or {},
        nans=value("nan_value_counts") or {},
        lower=value("lower_bounds") or {},
        upper=value("upper_bounds") or {},
        referenced=value("referenced_data_file"),
        is_vector=value("content_offset") is not None,
    )


def _content(location: str, read: ReadBytes, what: str) -> bytes:
    try:
        return read(location)
    except FileNotFoundError as error:
        raise TableError(
            f"the table's {what} {location} is missing: something other than Iceberg deleted it; restore it, or "
            "register the table again at an older metadata file."
        ) from error
    except OSError as error:
        raise TableError(f"cannot read the table's {what} {location}: {error.strerror or error}.") from error


def _damaged(what: str, location: str) -> str:
    return (
        f"the table's {what} {location} is damaged: restore it from a copy, or roll the table back to a snapshot "
        "that does not use it."
    )


def _opened(content: bytes) -> Any:
    return _InMemory(content)


class _InMemory:
    """What pyiceberg's decoder asks of an input file: one `open`."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def open(self, seekable: bool = True) -> io.BytesIO:  # noqa: ARG002 - the decoder's signature
        return io.BytesIO(self._content)
