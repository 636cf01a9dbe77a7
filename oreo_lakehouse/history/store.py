"""Where a table's history is kept: append-only batches under the table's folder, read exactly once through a cursor.

A batch is a file of JSON lines that nobody changes afterwards. Its name says when it was written, by whom, and its
number among that writer's batches: `<microseconds>-<writer>-<number>.jsonl`. A writer makes its batches one after the
other, so a cursor needs only the next number of each writer: a batch that a slow writer publishes late, under a name
that sorts before ones already read, is still recognised as new, whatever the clocks say.

Compaction moves batches into day files (`compaction.py`), whose records still carry their batch's writer and number;
the cursor knows which day files it has read, too. Writers whose batches are gone leave the cursor after a week.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from oreo_lakehouse.errors import HistoryError, StoreError
from oreo_lakehouse.history.dayfiles import Owners, owners, unpack
from oreo_lakehouse.history.querybatch import QueryBatch
from oreo_lakehouse.history.querycolumns import Rows, Templates, records_of_lines, table_of_lines
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.store import Store

Cursor: TypeAlias = dict[str, Any]
"""How far somebody has read; plain JSON. `{}` is the beginning."""

DAY_NS = 86_400_000_000_000
TOGETHER = 8 << 20
"""Bytes of batches that are parsed at a time."""
KEPT_DAYS = 7
"""For so long a cursor remembers a writer whose batches are gone: no compaction is that slow."""

_log = logging.getLogger(__name__)
_NAME = re.compile(r"(\d{16})-([0-9a-zA-Z_]{1,64})-(\d{6,})\.jsonl")


class Batch(NamedTuple):
    """A batch's file, taken apart."""

    time_us: int
    writer: str
    number: int
    file: str


class Content(NamedTuple):
    """What some batches hold."""

    batches: list[Batch]
    rows: Rows


class HistoryStore:
    """The query history of one table.

    >>> import tempfile
    >>> from oreo_lakehouse.history.exactness import Exactness
    >>> from oreo_lakehouse.predicates.tree import TRUE
    >>> from oreo_lakehouse.store import LocalStore
    >>> history = HistoryStore(LocalStore(tempfile.mkdtemp()), "f0e1")
    >>> history.append([QueryRecord("q1", 0, "import", 1_700_000_000_000_000, "ok", "f0e1", TRUE, Exactness.EXACT)])
    >>> records, cursor = history.read_since({})
    >>> len(records), len(history.read_since(cursor)[0])
    (1, 0)
    """

    def __init__(self, store: Store, table_uuid: str) -> None:
        self.store = store
        self.table_uuid = table_uuid
        self.folder = f"{table_uuid}/history"
        self._writer = uuid.uuid4().hex
        self._next = 0
        self._lock = threading.Lock()

    def append(self, records: Iterable[QueryRecord]) -> None:
        """Write the records as one new batch; nothing is written for none.

        Raises:
            StoreError: the store cannot be written; nothing was added.
        """
        content = _lines(records)
        if not content:
            return
        with self._lock:  # numbers become visible in order: the cursor relies on it
            name = f"{time.time_ns() // 1000:016d}-{self._writer}-{self._next:06d}.jsonl"
            self._next += 1
            if not self.store.create(f"{self.folder}/{name}", content):
                raise StoreError(f"{name} already exists in {self.folder} of the store {self.store.root}")

    def append_once(self, writer: str, records: Sequence[QueryRecord]) -> bool:
        """Write a batch whose content determines the writer's name; False if the same batch is there already."""
        start = min(max(min(r.time_us for r in records), 0), 10**16 - 1)
        return self.store.create(f"{self.folder}/{start:016d}-{writer}-000000.jsonl", _lines(records))

    def read_since(self, cursor: Mapping[str, Any]) -> tuple[QueryBatch, Cursor]:
        """The records not yet read under this cursor, by time, and the cursor that follows them.

        A batch that cannot be read is set aside, named in the log and by `set_aside`, and counts as read.

        Raises:
            HistoryError: the cursor is not one of ours.
            StoreError: the store cannot be read.
        """
        while True:
            try:
                return self._read_since(*_parts(cursor))
            except Moved:  # compaction took a batch from under us: look again
                continue

    def _read_since(self, read: dict[str, list[int]], days: set[str]) -> tuple[QueryBatch, Cursor]:
        # batches before day files: what compaction moves in between is then seen twice, not missed
        found = self._batches(read)
        today = time.time_ns() // DAY_NS
        following = {writer: [number, seen] for writer, (number, seen) in read.items() if seen > today - KEPT_DAYS}
        templates = Templates()
        for batch in found:
            start = read.get(batch.writer, [0])[0]
            following[batch.writer] = [max(start, following.get(batch.writer, [0])[0], batch.number + 1), today]
        fresh = [batch for batch in found if batch.number >= read.get(batch.writer, [0])[0]]
        newest = [content.rows for content in self.contents(fresh, templates)]
        parts: list[Rows] = []
        own = {(batch.writer, batch.number) for batch in fresh}
        listed = [entry.name for entry in self.store.entries(f"{self.folder}/days")]
        for name in listed:
            day = None if name in days else self._day(name, templates)
            if day is not None:
                (batches, codes), rows = day
                new = [number >= read.get(writer, [0])[0] and (writer, number) not in own for writer, number in batches]
                parts.append(rows.where(np.array(new, bool)[codes]))
                for writer, number in batches:
                    known = following.get(writer, [0, today])
                    following[writer] = [max(known[0], number + 1), today]
        parts += newest  # days first: that is nearly their order in time
        del newest
        return QueryBatch.joined(parts, templates), {"writers": following, "days": sorted({*listed})}

    def record_keys(self) -> set[str]:
        """The keys of all records."""
        return set(self.read_since({})[0].keys())

    def set_aside(self) -> list[str]:
        """Paths, within the store, of batches that could not be read and were moved out of the way."""
        return [f"{self.folder}/unreadable/{entry.name}" for entry in self.store.entries(f"{self.folder}/unreadable")]

    def batches(self) -> list[Batch]:
        """The batches that compaction has not moved yet, by name."""
        names = (_NAME.fullmatch(entry.name) for entry in self.store.entries(self.folder))
        return [Batch(int(name[1]), name[2], int(name[3]), name[0]) for name in names if name]

    def contents(self, batches: Iterable[Batch], templates: Templates, together: int = TOGETHER) -> Iterator[Content]:
        """What batches hold, those of about `together` bytes at a time; one that cannot be read is set aside.

        Raises:
            Moved: a batch is gone.
        """
        given: list[tuple[Batch, bytes]] = []
        for batch in batches:
            content = self.store.read(f"{self.folder}/{batch.file}")
            if content is None:
                raise Moved
            given.append((batch, content))
            if sum(len(item[1]) for item in given) >= together:
                yield from self._content(given, templates)
                given = []
        if given:
            yield from self._content(given, templates)

    def _content(self, given: list[tuple[Batch, bytes]], templates: Templates) -> Iterator[Content]:
        path = f"{self.folder}/{given[0][0].file}"
        try:
            try:
                table = table_of_lines(b"\n".join([content for _, content in given]), path)
                yield Content([batch for batch, _ in given], templates.rows(table, path))
            except HistoryError:
                if len(given) == 1:
                    records_of_lines(given[0][1], path)  # names the line
                    raise
                for item in given:  # one of them is at fault
                    yield from self._content([item], templates)
        except HistoryError as error:
            self._set_aside(path, given[0][0].file, given[0][1], error)

    def _day(self, name: str, templates: Templates) -> tuple[Owners, Rows] | None:
        path = f"{self.folder}/days/{name}"
        content = self.store.read(path)
        if content is None:  # retention was faster than we
            return None
        try:
            table = unpack(content, path)
            return owners(table), templates.rows(table.drop_columns(["writer", "number"]), path)
        except HistoryError as error:
            self._set_aside(path, name, content, error)
            return None

    def _set_aside(self, path: str, name: str, content: bytes, error: HistoryError) -> None:
        aside = f"{self.folder}/unreadable/{name}"
        _log.warning("%s; the file was moved to %s in the store %s", error, aside, self.store.root)
        self.store.create(aside, content)  # a copy first: a crash in between leaves the file twice, never lost
        self.store.delete(path)

    def _batches(self, read: Mapping[str, list[int]]) -> list[Batch]:
        """All batches by name. A listing may show a batch and miss an earlier one published while it ran; that one was
        there before the listing ended, so a second look finds it."""
        found = self.batches()
        if _gaps(found, read):
            found = sorted({*found, *self.batches()})
        return found


def _lines(records: Iterable[QueryRecord]) -> bytes:
    return "".join([record.to_line() + "\n" for record in records]).encode("utf-8", "backslashreplace")


def _gaps(found: Iterable[Batch], read: Mapping[str, list[int]]) -> bool:
    """Whether some writer's batches jump over a number that was not read yet."""
    numbers: dict[str, list[int]] = {}
    for batch in found:
        numbers.setdefault(batch.writer, []).append(batch.number)
    for writer, own in numbers.items():
        first = min(min(own), read.get(writer, [0])[0])
        if max(own) - first >= len(own):
            return True
    return False


def _parts(cursor: Mapping[str, Any]) -> tuple[dict[str, list[int]], set[str]]:
    """A cursor's next number by writer, with the day it was last seen, and the day files that it has read."""
    try:
        writers = {
            str(writer): [int(number) for number in cast("list[Any]", entry)]
            for writer, entry in cursor.get("writers", {}).items()
        }
        if all(len(entry) == 2 for entry in writers.values()):
            return writers, {str(name) for name in cursor.get("days", [])}
    except (AttributeError, TypeError, ValueError):
        pass
    raise HistoryError(f"not a history cursor: {str(dict(cursor))[:80]}")


class Moved(Exception):  # noqa: N818 - a signal, no error
    """A batch that was listed is gone."""
