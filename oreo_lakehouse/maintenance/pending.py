"""Intents: what a run is about to do, written before it tries, so that the next run can finish the story.

A run that dies between staging and recording leaves its intent behind, and so does a rollback or a return that dies
between its commit and its record. The next run looks for the run id in the
table's own history: found means committed, and only the record is missing; not found means that it never landed, and
only then are its files deleted. They are known by the run's id in their names, and by nothing that stands in an intent:
whoever could write one could otherwise have us delete what he likes.
"""

from __future__ import annotations

import json
import re
from typing import Any

from oreo_lakehouse.store import Store
from oreo_lakehouse.tables.commits import RETURN, ROLLBACK
from oreo_lakehouse.tables.contract import LayoutCommit, Table

FORMAT_VERSION = 2
_BEGUN = "-begun"
_RUN = re.compile(r"[0-9a-f]{32}")
"""A run's id, as we make them."""


_DOCUMENT = json.dumps({"version": FORMAT_VERSION}).encode()


class Pending:
    """The intents of one table."""

    def __init__(self, store: Store, table_uuid: str) -> None:
        self._store = store
        self._folder = f"{table_uuid}/pending"

    def begin(self, run_id: str) -> None:
        """A run is about to write files; should it die while it does, they are found by its id."""
        self._store.create(self._name(f"{run_id}{_BEGUN}"), _DOCUMENT)

    def add(self, run_id: str) -> None:
        """The run's files are written, and are about to be committed."""
        self._store.create(self._name(run_id), _DOCUMENT)

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
        names = [entry.name for entry in entries if not entry.name.endswith(f"{_BEGUN}.json")]
        facts = [self._settle(table, name.removesuffix(".json"), landed) for name in names]
        for entry in self._store.entries(self._folder):  # what is left began to write and did not finish
            run_id = entry.name.removesuffix(f"{_BEGUN}.json")
            count = _sweep(table, run_id)
            rest = "" if count else "; what else it wrote is left to VACUUM or remove_orphan_files"
            facts.append({"what": f"run {run_id} died while writing: {count} files deleted{rest}"})
            self.remove(run_id)
        return facts

    def _settle(self, table: Table, run_id: str, landed: dict[str, LayoutCommit]) -> dict[str, Any]:
        fact: dict[str, Any]
        if run_id in landed:
            commit = landed[run_id]
            what = f"run {run_id} had committed version {commit.version} but not recorded it"
            fact = {"what": what, "layout_id": commit.layout_id, "version": commit.version}
            if commit.action in (ROLLBACK, RETURN):
                fact["alpha"] = 0.0
            if commit.action == ROLLBACK:
                undone = landed.get(commit.layout_run_id)
                fact["undone_version"] = undone.version if undone else commit.base_version
        else:
            fact = {"what": f"run {run_id} never committed: {_sweep(table, run_id)} staged files deleted"}
        self.remove(run_id)
        return fact

    def _name(self, run_id: str) -> str:
        return f"{self._folder}/{run_id}.json"


def _sweep(table: Table, run_id: str) -> int:
    return table.sweep(run_id) if _RUN.fullmatch(run_id) else 0
