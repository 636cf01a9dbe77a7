"""The ledger: append-only, one line per decision and per commit; everything people are shown later is read from it.

Each run adds one file of JSON lines with a name that sorts by time. Nothing in it is ever changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from oreo_lakehouse.store import Store

_STAMP = "%Y%m%dT%H%M%S%f"


@dataclass(frozen=True)
class LedgerLine:
    """What happened, when, in which run, and the numbers that belong to it."""

    kind: str
    """`decision` (of a run), `event` (within one: a move, phase, admission), `commit`, `rollback` or `repair`."""
    time: datetime
    run: str
    facts: dict[str, Any]


class Ledger:
    """The ledger of one table."""

    def __init__(self, store: Store, table_uuid: str) -> None:
        self._store = store
        self._folder = f"{table_uuid}/ledger"

    def append(self, run: str, lines: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Add the lines of one run, in order; all of them or none."""
        if not lines:
            return
        now = datetime.now(UTC)
        text = "".join(
            json.dumps({"kind": kind, "time": now.isoformat(), "run": run, "facts": facts}, separators=(",", ":"))
            + "\n"
            for kind, facts in lines
        )
        base = f"{self._folder}/{now.strftime(_STAMP)}-{run}"
        for attempt in range(100):  # the same run may write twice within the clock's tick
            if self._store.create(f"{base}-{attempt:02d}.jsonl", text.encode()):
                return

    def last_time(self) -> datetime:
        """When the last line was written, by the clock of its writer; long ago if there is none."""
        entries = self._store.entries(self._folder)
        try:
            return datetime.strptime(entries[-1].name.split("-")[0], _STAMP).replace(tzinfo=UTC)
        except (IndexError, ValueError):
            return datetime.min.replace(tzinfo=UTC)

    def lines(self, kinds: Iterable[str] | None = None) -> list[LedgerLine]:
        """All lines, oldest first, or those of these kinds. A damaged line is passed over and hides no other."""
        wanted = None if kinds is None else set(kinds)
        found: list[LedgerLine] = []
        for entry in self._store.entries(self._folder):
            content = self._store.read(f"{self._folder}/{entry.name}") or b""
            for text in content.decode(errors="replace").splitlines():
                line = _parse(text)
                if line is not None and (wanted is None or line.kind in wanted):
                    found.append(line)
        return found


def _parse(text: str) -> LedgerLine | None:
    try:
        line = json.loads(text)
        return LedgerLine(
            kind=str(line["kind"]),
            time=datetime.fromisoformat(line["time"]),
            run=str(line["run"]),
            facts=dict(line["facts"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
