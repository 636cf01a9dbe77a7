"""Keeping a history small: batches become day files, and the oldest days go.

A crash at any point loses nothing: a day file is whole before its batches are deleted, records in both places count
once, and a batch that some day file holds already is deleted without being packed again.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from oreo_lakehouse.history.dayfiles import Line, batches_in, pack
from oreo_lakehouse.history.store import Batch, HistoryStore

BUSY_DAY = 200
"""So many batches of a day that is not over yet are packed all the same."""
MAX_LINES = 200_000
"""Records in one day file."""


@dataclass(frozen=True)
class Compacted:
    """What a compaction did."""

    batches: int = 0
    records: int = 0
    files: int = 0


def compact(history: HistoryStore, now_us: int | None = None) -> Compacted:
    """Pack the batches of past days, and of a busy present one, into day files.

    Raises:
        StoreError: the store cannot be read or written; nothing is lost, run it again.
    """
    now = _day(time.time_ns() // 1000 if now_us is None else now_us)
    days: dict[str, list[Batch]] = {}
    for batch in history.batches():
        days.setdefault(_day(batch.time_us), []).append(batch)
    chosen = {day: found for day, found in days.items() if day < now or len(found) >= BUSY_DAY}
    if not chosen:
        return Compacted()
    packed = _packed(history)
    done = Compacted()
    for day, found in sorted(chosen.items()):
        for batch in found:
            if (batch.writer, batch.number) in packed:  # a compaction that crashed before it deleted
                history.store.delete(f"{history.folder}/{batch.file}")
        fresh = [batch for batch in found if (batch.writer, batch.number) not in packed]
        for part in _parts(history, fresh):
            done = _write(history, day, part, done)
    return done


def _packed(history: HistoryStore) -> set[tuple[str, int]]:
    out: set[tuple[str, int]] = set()
    for entry in history.store.entries(f"{history.folder}/days"):
        path = f"{history.folder}/days/{entry.name}"
        content = history.store.read(path)
        if content is not None:
            out |= batches_in(content, path)
    return out


def _parts(history: HistoryStore, batches: list[Batch]) -> list[tuple[list[Batch], list[Line]]]:
    """The batches with their lines, in parts of bounded size."""
    parts: list[tuple[list[Batch], list[Line]]] = []
    for batch in batches:
        if not parts or len(parts[-1][1]) >= MAX_LINES:
            parts.append(([], []))
        records = history.batch_records(batch)
        if records:
            parts[-1][0].append(batch)
            parts[-1][1].extend(Line(batch.writer, batch.number, record.to_line()) for record in records)
    return [part for part in parts if part[0]]


def _write(history: HistoryStore, day: str, part: tuple[list[Batch], list[Line]], done: Compacted) -> Compacted:
    batches, lines = part
    # the name follows from the content: two compactions at once write the same file
    digest = hashlib.sha256("\n".join(sorted(batch.file for batch in batches)).encode()).hexdigest()[:24]
    history.store.create(f"{history.folder}/days/{day}-{digest}.parquet", pack(lines))
    for batch in batches:
        history.store.delete(f"{history.folder}/{batch.file}")
    return Compacted(done.batches + len(batches), done.records + len(lines), done.files + 1)


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
