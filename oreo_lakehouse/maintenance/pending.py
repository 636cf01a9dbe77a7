"""Intents: what a run is about to commit, written before it tries, so that the next run can finish the story.

A run that dies between staging and recording leaves its intent behind. The next run looks for the run id in the
table's own history: found means committed, and only the record is missing; not found means that it never landed, and
only then are its files deleted: those it named, or, if it died while writing, those that carry its run id.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from oreo_lakehouse.store import Store
from oreo_lakehouse.tables.contract import LayoutCommit, RowCertificate, Staged, Table

FORMAT_VERSION = 1
_BEGUN = "-begun"


class Pending:
    """The intents of one table."""

    def __init__(self, store: Store, table_uuid: str) -> None:
        self._store = store
        self._folder = f"{table_uuid}/pending"

    def begin(self, run_id: str) -> None:
        """A run is about to write files; should it die while it does, they are found by its id."""
        self._store.create(self._name(f"{run_id}{_BEGUN}"), json.dumps({"version": FORMAT_VERSION}).encode())

    def add(self, staged: Staged) -> None:
        """The run's files are written, and these are they."""
        document = {"version": FORMAT_VERSION, "staged": asdict(staged)}
        self._store.create(self._name(staged.run_id), json.dumps(document).encode())

    def remove(self, run_id: str) -> None:
        """The run's outcome is known and recorded."""
        self._store.delete(self._name(run_id))
        self._store.delete(self._name(f"{run_id}{_BEGUN}"))

    def repair(self, table: Table) -> list[dict[str, Any]]:
        """Settle what earlier runs left open; one ledger fact for each."""
        entries = self._store.entries(self._folder)
        if not entries:
            return []
        landed = {commit.run_id: commit for commit in table.layout_commits()}
        facts = [
            self._settle(table, name.removesuffix(".json"), landed)
            for name in (entry.name for entry in entries)
            if not name.endswith(f"{_BEGUN}.json")
        ]
        for entry in self._store.entries(self._folder):  # what is left began to write and did not finish
            run_id = entry.name.removesuffix(f"{_BEGUN}.json")
            count = table.sweep(run_id)
            rest = "" if count else "; what else it wrote is left to VACUUM or remove_orphan_files"
            facts.append({"what": f"run {run_id} died while writing: {count} files deleted{rest}"})
            self.remove(run_id)
        return facts

    def _settle(self, table: Table, run_id: str, landed: dict[str, LayoutCommit]) -> dict[str, Any]:
        staged = _decode(self._store.read(self._name(run_id)))
        fact: dict[str, Any]
        if run_id in landed:
            commit = landed[run_id]
            what = f"run {run_id} had committed version {commit.version} but not recorded it"
            fact = {"what": what, "layout_id": commit.layout_id, "version": commit.version}
        elif staged is None:
            fact = {"what": f"unreadable intent of run {run_id} removed; {table.sweep(run_id)} of its files deleted"}
        else:
            fact = {"what": f"run {run_id} never committed: {table.discard(staged)} staged files deleted"}
        self.remove(run_id)
        return fact

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
