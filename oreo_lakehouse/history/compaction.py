"""Keeping a history small: batches become day files, and the oldest days go.

A crash at any point loses nothing: a day file is whole before its batches are deleted, records in both places count
once, and a batch that some day file holds already is deleted without being packed again. What must not be stored by the
settings of today (`redact`, `store_sql`) is left out on the way, whoever wrote it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from oreo_lakehouse.config import HistorySettings, parse_size
from oreo_lakehouse.history.dayfiles import batches_in, pack
from oreo_lakehouse.history.querycolumns import Rows, Templates
from oreo_lakehouse.history.redaction import redact_rows
from oreo_lakehouse.history.store import Batch, HistoryStore, Moved

BUSY_DAY = 200
"""So many batches of a day that is not over yet are packed all the same."""
MAX_RECORDS = 200_000
"""In one day file."""


@dataclass(frozen=True)
class Compacted:
    """What a compaction did."""

    batches: int = 0
    records: int = 0
    files: int = 0


@dataclass(frozen=True)
class Tended:
    """What became of a history that was tended."""

    packed: Compacted
    dropped: int
    """Day files that were too old or too many."""


def tend(history: HistoryStore, settings: HistorySettings, now_us: int | None = None) -> Tended:
    """Compact and retain as the settings say: two listings where there is nothing to do.

    Raises:
        StoreError: the store cannot be read or written; nothing is lost, run it again.
    """
    packed = compact(history, now_us, settings.redact, settings.store_sql)
    size = parse_size(settings.keep_bytes, "history.keep_bytes") if settings.keep_bytes else 0
    return Tended(packed, retain(history, settings.keep_days, size, now_us))


def compact(
    history: HistoryStore, now_us: int | None = None, redacted: Collection[str] = (), keep_sql: bool = True
) -> Compacted:
    """Pack the batches of past days, and of a busy present one, into day files.

    Args:
        history: whose.
        now_us: the present, UTC microseconds since 1970.
        redacted: columns whose literals must not be kept.
        keep_sql: whether statements may be kept.

    Raises:
        StoreError: the store cannot be read or written; nothing is lost, run it again.
    """
    now = _day(time.time_ns() // 1000 if now_us is None else now_us)
    days: dict[str, list[Batch]] = {}
    for batch in history.batches():
        days.setdefault(_day(batch.time_us), []).append(batch)
    done = Compacted()
    for day, found in sorted(days.items()):
        if day < now or len(found) >= BUSY_DAY:
            packed = _packed(history, day)
            for batch in found:
                if (batch.writer, batch.number) in packed:  # a compaction that crashed before it deleted
                    history.store.delete(f"{history.folder}/{batch.file}")
            fresh = [batch for batch in found if (batch.writer, batch.number) not in packed]
            for batches, rows, templates in _parts(history, fresh):
                clean, known = redact_rows(rows, templates, redacted, keep_sql)
                done = _write(history, day, batches, clean, known, done)
    return done


def _packed(history: HistoryStore, day: str) -> set[tuple[str, int]]:
    """The batches that day files of that day hold already."""
    out: set[tuple[str, int]] = set()
    for entry in history.store.entries(f"{history.folder}/days"):
        if entry.name.startswith(day):
            path = f"{history.folder}/days/{entry.name}"
            content = history.store.read(path)
            if content is not None:
                out |= batches_in(content, path)
    return out


def _parts(history: HistoryStore, batches: list[Batch]) -> Iterator[tuple[list[Batch], Rows, Templates]]:
    """The batches with their records, in parts of bounded size; one that somebody else has moved is left to him."""
    own: list[Batch] = []
    rows: list[Rows] = []
    templates = Templates()
    for batch in batches:
        try:
            found = [content.rows for content in history.contents([batch], templates)]
        except Moved:
            continue
        for part in found:
            owner = pa.DictionaryArray.from_arrays(np.zeros(len(part.codes), np.int32), [batch.writer])
            number = pa.array(np.full(len(part.codes), batch.number))
            own.append(batch)
            rows.append(Rows(part.table.append_column("writer", owner).append_column("number", number), part.codes))
        if sum(len(part.codes) for part in rows) >= MAX_RECORDS:
            yield own, Rows.joined(rows), templates
            own, rows, templates = [], [], Templates()
    if own:
        yield own, Rows.joined(rows), templates


def _write(
    history: HistoryStore, day: str, batches: list[Batch], rows: Rows, templates: Templates, done: Compacted
) -> Compacted:
    # the name follows from the content: two compactions at once write the same file
    digest = hashlib.sha256("\n".join(sorted(batch.file for batch in batches)).encode()).hexdigest()[:24]
    content = pack(rows, templates.all)
    history.store.create(f"{history.folder}/days/{day}-{digest}.parquet", content)
    for batch in batches:
        history.store.delete(f"{history.folder}/{batch.file}")
    return Compacted(done.batches + len(batches), done.records + len(rows.codes), done.files + 1)


def retain(history: HistoryStore, days: int = 0, size: int = 0, now_us: int | None = None) -> int:
    """Drop the oldest day files: those older than `days`, then the oldest until all take at most `size` bytes.

    0 means no limit. Returns how many files went. Batches that are not packed yet stay; run `compact` first.
    """
    now = datetime.fromtimestamp((time.time_ns() // 1000 if now_us is None else now_us) / 1e6, UTC)
    oldest = (now - timedelta(days=days)).strftime("%Y-%m-%d") if days else ""
    entries = history.store.entries(f"{history.folder}/days")
    total = sum(entry.size for entry in entries)
    dropped = 0
    for entry in entries:  # by name, so by day
        if entry.name[:10] < oldest or (size and total > size):
            history.store.delete(f"{history.folder}/days/{entry.name}")
            total -= entry.size
            dropped += 1
    return dropped


def _day(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1e6, UTC).strftime("%Y-%m-%d")
