"""The ledger: append-only, one line per decision and per commit; everything people are shown later is read from it.

Each run adds one file of JSON lines with a name that sorts by time. Nothing in it is ever changed; a hundred files of
single runs are packed into one, word for word, so that a table that is maintained every hour for years can be read in a
second on storage where every file takes its time. A file that is in a pack, too, counts once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.maintenance.ledgerfacts import moment
from oreo_lakehouse.store import Store, parsed

_STAMP = "%Y%m%dT%H%M%S%f"
_PACK = ".pack"
_TRIES = 10
_NAMES = 100
"""Names that one run may use within a tick of the clock."""
MANY = 200
"""So many files of single runs are left alone; then the older half of them is packed."""


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
        self._texts: dict[str, str] = {}
        """What was read of each run's file: it never changes, so once is enough."""
        self._packs: set[str] = set()
        """Those that were read."""

    def append(self, run: str, lines: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Add the lines of one run, in order; all of them or none.

        Raises:
            StoreError: they cannot be written.
        """
        if not lines:
            return
        now = datetime.now(UTC)
        text = "".join(
            json.dumps({"kind": kind, "time": now.isoformat(), "run": run, "facts": facts}, separators=(",", ":"))
            + "\n"
            for kind, facts in lines
        )
        base = f"{self._folder}/{now.strftime(_STAMP)}-{run}"
        names = (
            f"{base}-{attempt:02d}.jsonl" for attempt in range(_NAMES)
        )  # it may write twice within the clock's tick
        if not any(self._store.create(name, text.encode()) for name in names):
            raise StoreError(
                f"the ledger in {self._store.root} cannot be written: all {_NAMES} names {base}-… are taken. Is it a "
                "store on which new files never appear, or a clock that stands still? Run again"
            )
        self._pack()

    def last_time(self) -> datetime:
        """When the last line was written, by the clock of its writer; long ago if there is none."""
        entries = self._store.entries(self._folder)
        try:
            return datetime.strptime(entries[-1].name.split("-")[0], _STAMP).replace(tzinfo=UTC)
        except (IndexError, ValueError):
            return datetime.min.replace(tzinfo=UTC)

    def lines(self, kinds: Iterable[str] | None = None) -> list[LedgerLine]:
        """All lines, oldest first, or those of these kinds. A damaged line is passed over and hides no other."""
        any(self._refresh() for _ in range(_TRIES))
        # A line begins with its kind, so those of other kinds need not be taken apart.
        starts = "{" if kinds is None else tuple(f'{{"kind":{gap}"{kind}",' for kind in kinds for gap in ("", " "))
        texts = (text for _, text in sorted(self._texts.items()))
        parsed = (_parse(line) for text in texts for line in text.splitlines() if line.startswith(starts))
        return [line for line in parsed if line is not None]

    def _refresh(self) -> bool:
        """Read what is new; False if a file went into a pack meanwhile, and everything is to be looked for again."""
        names = [entry.name for entry in self._store.entries(self._folder)]
        for name in names:
            if name.endswith(_PACK) and name not in self._packs:
                for line in self._read(name).splitlines():
                    packed = _unpacked(line)
                    if packed is not None:
                        self._texts.setdefault(*packed)
                self._packs.add(name)
        for name in names:
            if not name.endswith(_PACK) and name not in self._texts:
                content = self._store.read(f"{self._folder}/{name}")
                if content is None:
                    return False
                self._texts[name] = content.decode(errors="replace")
        return True

    def _read(self, name: str) -> str:
        return (self._store.read(f"{self._folder}/{name}") or b"").decode(errors="replace")

    def _pack(self) -> None:
        """Put the older half of many files into one."""
        names = [name for entry in self._store.entries(self._folder) if not (name := entry.name).endswith(_PACK)]
        if len(names) < MANY:
            return
        older = names[: MANY // 2]
        texts = {name: self._texts.get(name) or self._read(name) for name in older}
        content = "".join(json.dumps({"file": name, "text": text}) + "\n" for name, text in texts.items() if text)
        pack = f"{older[-1].removesuffix('.jsonl')}{_PACK}"
        self._store.create(f"{self._folder}/{pack}", content.encode())
        # It may be there from a run that died before it had deleted what it packed: what counts is what is in it.
        there = {packed[0] for line in self._read(pack).splitlines() if (packed := _unpacked(line)) is not None}
        for name in there.intersection(older):
            self._store.delete(f"{self._folder}/{name}")


def _unpacked(text: str) -> tuple[str, str] | None:
    try:
        line = parsed(text)
        return str(line["file"]), str(line["text"])
    except (ValueError, KeyError, TypeError):
        return None


def _parse(text: str) -> LedgerLine | None:
    try:
        line = parsed(text)
        time = moment(line["time"])
        if time is None:
            return None
        return LedgerLine(
            kind=str(line["kind"]),
            time=time,
            run=str(line["run"]),
            facts=dict(line["facts"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
