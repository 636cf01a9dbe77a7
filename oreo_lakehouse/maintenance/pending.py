"""Intents: what a run is about to commit, written before it tries, so that the next run can finish the story.

A run that dies between staging and recording leaves its intent behind. The next run looks for the run id in the
table's own history: found means committed, and only the record is missing; not found means that it never landed, and
only then are its staged files deleted.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from oreo_lakehouse.store import Store
from oreo_lakehouse.tables.contract import RowCertificate, Staged, Table

FORMAT_VERSION = 1


class Pending:
    """The intents of one table."""

    def __init__(self, store: Store, table_uuid: str) -> None:
        self._store = store
        self._folder = f"{table_uuid}/pending"

    def add(self, staged: Staged) -> None:
        document = {"version": FORMAT_VERSION, "staged": asdict(staged)}
        self._store.create(self._name(staged.run_id), json.dumps(document).encode())

    def remove(self, run_id: str) -> None:
        self._store.delete(self._name(run_id))

    def repair(self, table: Table) -> list[dict[str, Any]]:
        """Settle what earlier runs left open; one ledger fact for each."""
        entries = self._store.entries(self._folder)
        if not entries:
            return []
        landed = {commit.run_id: commit for commit in table.layout_commits()}
        facts: list[dict[str, Any]] = []
        for entry in entries:
            path = f"{self._folder}/{entry.name}"
            staged = _decode(self._store.read(path))
            if staged is None:
                facts.append({"what": f"unreadable intent {entry.name} removed; its files, if any, are left to VACUUM"})
            elif staged.run_id in landed:
                commit = landed[staged.run_id]
                facts.append(
                    {
                        "what": f"run {staged.run_id} had committed version {commit.version} but not recorded it",
                        "layout_id": commit.layout_id,
                        "version": commit.version,
                    }
                )
            else:
                count = table.discard(staged)
                facts.append({"what": f"run {staged.run_id} never committed: {count} staged files deleted"})
            self._store.delete(path)
        return facts

    def _name(self, run_id: str) -> str:
        return f"{self._folder}/{run_id}.json"


def _decode(content: bytes | None) -> Staged | None:
    try:
        document = json.loads(content or b"")
        if document["version"] != FORMAT_VERSION:
            return None
        fields = dict(document["staged"])
        fields["certificate"] = RowCertificate(**fields["certificate"])
        for name in ("paths", "added", "removed"):
            fields[name] = tuple(fields[name])
        return Staged(**fields)
    except (ValueError, KeyError, TypeError):
        return None
