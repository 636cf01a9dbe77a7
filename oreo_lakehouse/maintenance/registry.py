"""Which tables the store knows, by name: for `--all`, and to notice another table under a name that we know.

A table's folder is named by its UUID, which a DROP and CREATE under the same name changes. So each name has a folder of
its own, with one small file for each UUID that was ever seen under it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oreo_lakehouse.store import parsed

if TYPE_CHECKING:
    from oreo_lakehouse.store import Store
    from oreo_lakehouse.tables.contract import TableIdentity

_FOLDER = "names"


@dataclass(frozen=True)
class KnownTable:
    """A table that was maintained, or whose queries were imported."""

    name: str
    uuid: str
    format: str


def register(store: Store, identity: TableIdentity) -> str | None:
    """Remember the table's name; the UUID of another table that had it before, if this one is new."""
    folder = f"{_FOLDER}/{_key(identity.name)}"
    document = {"name": identity.name, "uuid": identity.uuid, "format": identity.format}
    if not store.create(f"{folder}/{_key(identity.uuid)}.json", json.dumps(document).encode()):
        return None
    others = [table for table in _in(store, folder) if table.uuid != identity.uuid]
    return others[-1].uuid if others else None


def is_registered(store: Store, identity: TableIdentity) -> bool:
    """Whether the table is remembered under its name."""
    return store.read(f"{_FOLDER}/{_key(identity.name)}/{_key(identity.uuid)}.json") is not None


def known_tables(store: Store) -> list[KnownTable]:
    """The newest table under each name, by name."""
    newest: dict[str, KnownTable] = {}
    for folder in store.folders(_FOLDER):
        found = _in(store, f"{_FOLDER}/{folder}")
        if found:
            newest[found[-1].uuid] = found[-1]  # a renamed table is one table
    return sorted(newest.values(), key=lambda table: table.name)


def _in(store: Store, folder: str) -> list[KnownTable]:
    """The tables that had a name, the newest last."""
    out: list[KnownTable] = []
    for entry in sorted(store.entries(folder), key=lambda entry: entry.modified_ms):
        try:
            document = parsed(store.read(f"{folder}/{entry.name}"))
            out.append(KnownTable(str(document["name"]), str(document["uuid"]), str(document["format"])))
        except (ValueError, KeyError, TypeError):
            continue
    return out


def _key(text: str) -> str:
    """A file name for any text."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]
