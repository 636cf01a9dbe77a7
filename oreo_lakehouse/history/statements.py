"""Files of SQL statements, read one by one in bounded memory, for `oreo history import` and `oreo backtest`.

JSON lines, CSV with a header, or Parquet, each also in gzip; told apart by their first bytes. `statement_text` and
`start_time` are required. Imported files are data from strangers: a line that is too long, not UTF-8, or lacks a field
is rejected with its number, and the rest is read.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import pyarrow as pa
import pyarrow.parquet as pq

from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.formats import FIELDS, STATUSES, normalised

MAX_LINE = 4_000_000
"""Bytes in one line."""
MAX_EXPANSION = 500
"""How many times its size a gzip file may grow; beyond is a bomb."""

Rejected: TypeAlias = Callable[[int, str], None]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a file."""

    line: int
    text: str
    time_us: int
    """When it started, UTC."""
    query_id: str = ""
    status: str = "finished"
    duration_ms: int | None = None
    namespace: tuple[str, ...] = ()
    """Catalog and schema that unqualified names are relative to."""
    time_zone: str | None = None
    dialect: str | None = None
    progress: float = 0.0
    """How much of the file has been read by now, from 0 to 1."""


def read_statements(path: str | Path, fmt: str = "auto", rejected: Rejected | None = None) -> Iterator[Statement]:
    """The statements of a file, in its order.

    Args:
        path: the file.
        fmt: whose names its fields have: `oreo`, `databricks`, `trino`, `snowflake`; `auto` finds out.
        rejected: told the number and the fault of a line that is not a statement; without it, such a line is an error.

    Raises:
        HistoryError: the file cannot be read, or (without `rejected`) one of its lines cannot.
    """

    def fault(line: int, reason: str) -> None:
        if rejected is None:
            raise HistoryError(f"line {line} of {path}: {reason}")
        rejected(line, reason)

    try:
        with open(path, "rb") as file:
            for line, fields, progress in _rows(file, Path(path), fault):
                try:
                    yield _statement(line, normalised(fields, fmt), progress)
                except ValueError as error:
                    fault(line, str(error))
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error) or "it is damaged"
        raise HistoryError(f"cannot read {path}: {str(reason).splitlines()[0]}") from error


_JSON_SUFFIXES = {".json", ".jsonl", ".ndjson"}
_Rows: TypeAlias = Iterator[tuple[int, Mapping[str, Any], float]]


def _rows(file: BinaryIO, path: Path, fault: Rejected) -> _Rows:
    """Told apart by the first bytes; a broken first line does not make a file that is named JSON into CSV."""
    start = file.read(4)
    file.seek(0)
    if start == b"PAR1":
        return _parquet(file)
    lines = _lines(file, path.stat().st_size, fault)
    first = next(lines, None)
    while first is not None and not first[1].strip():
        first = next(lines, None)
    if first is None:
        return iter(())
    everything = _chain(first, lines)
    named_json = not _JSON_SUFFIXES.isdisjoint(path.suffixes)
    if named_json or first[1].lstrip("\ufeff \t").startswith(("{", "[")):
        return _json(everything, fault)
    return _csv(everything, fault)


def _chain(first: tuple[int, str, float], rest: Iterator[tuple[int, str, float]]) -> Iterator[tuple[int, str, float]]:
    yield first
    yield from rest


def _lines(file: BinaryIO, size: int, fault: Rejected) -> Iterator[tuple[int, str, float]]:
    """Lines as (number, text, progress)."""
    zipped = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    stream = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if zipped else file
    buffered = io.BufferedReader(cast("Any", stream), 1 << 20)
    number = done = 0
    while raw := buffered.readline(MAX_LINE + 1):
        number += 1
        done += len(raw)
        if zipped and number == 1 and raw.startswith(b"PAR1"):
            raise HistoryError("Parquet inside gzip; unpack it first")
        if zipped and done > MAX_EXPANSION * size + (1 << 20):
            raise HistoryError(f"the gzip file grows to more than {MAX_EXPANSION} times its size; unpack it first")
        if len(raw) > MAX_LINE and not raw.endswith(b"\n"):
            fault(number, f"the line is longer than {MAX_LINE:,} bytes")
            while (rest := buffered.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                done += len(rest)
                if zipped and done > MAX_EXPANSION * size + (1 << 20):
                    raise HistoryError(f"the gzip file grows to more than {MAX_EXPANSION} times its size")
            continue
        try:
            yield number, raw.decode("utf-8"), min(file.tell() / max(size, 1), 1.0)
        except UnicodeDecodeError:
            fault(number, "the line is not UTF-8")


def _json(lines: Iterator[tuple[int, str, float]], fault: Rejected) -> _Rows:
    for number, text, progress in lines:
        if not text.strip("\ufeff \t\r\n"):
            continue
        try:
            document = json.loads(text.lstrip("\ufeff"))
        except (ValueError, RecursionError) as error:
            fault(number, f"not JSON: {str(error)[:100]}")
            continue
        if isinstance(document, dict):
            yield number, cast("dict[str, Any]", document), progress
        else:
            fault(number, "not a JSON object; write one statement a line")


def _csv(lines: Iterator[tuple[int, str, float]], fault: Rejected) -> _Rows:
    at = [0, 0.0]

    def texts() -> Iterator[str]:
        for number, text, progress in lines:
            at[:] = number, progress
            yield text.lstrip("\ufeff") if number == 1 else text.replace("\0", "")

    reader = csv.reader(texts())
    try:
        header = next(reader, [])
    except csv.Error as error:
        raise HistoryError(f"the file is neither JSON lines nor CSV with a header: {error}") from error
    while True:
        start = int(at[0]) + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            fault(start, f"not CSV: {error}")
            continue
        if row is None:
            return
        if len(row) > len(header):
            fault(start, f"{len(row)} fields under a header of {len(header)}")
        elif row:
            yield start, {name.strip(): value for name, value in zip(header, row, strict=False) if value}, at[1]


def _parquet(file: BinaryIO) -> _Rows:
    known = {path[0] for fields in FIELDS.values() for path in fields.values()}
    names = [name for name in pq.ParquetFile(file).schema_arrow.names if name.lower() in known]
    plain = pq.ParquetFile(file).metadata
    grown = sum(plain.row_group(group).total_byte_size for group in range(plain.num_row_groups))
    size = file.seek(0, io.SEEK_END)
    if grown > MAX_EXPANSION * size + (1 << 20):
        raise HistoryError(f"the Parquet file grows to more than {MAX_EXPANSION} times its size")
    table = pq.ParquetFile(file, read_dictionary=names)  # one large text repeated a million times stays one text
    total = max(table.metadata.num_rows, 1)
    row = 0
    for batch in table.iter_batches(256, columns=names):
        for values in batch.to_pylist():
            row += 1
            yield row, values, row / total


def _statement(line: int, fields: Mapping[str, Any], progress: float) -> Statement:
    text = fields.get("statement_text")
    if not isinstance(text, str) or not text.strip():
        raise ValueError("no statement_text")
    if "start_time" not in fields:
        raise ValueError("no start_time")
    duration = fields.get("duration_ms")
    if duration is None and "end_time" in fields:
        duration = (parse_time(fields["end_time"]) - parse_time(fields["start_time"])) // 1000
    status = str(fields.get("status") or "finished").lower()
    return Statement(
        line,
        text,
        parse_time(fields["start_time"]),
        proper(str(fields.get("query_id") or "")),
        STATUSES.get(status, proper(status[:40])),
        _whole(duration),
        tuple(str(fields[name]) for name in ("catalog", "schema") if fields.get(name)),
        fields["time_zone"] if isinstance(fields.get("time_zone"), str) else None,
        fields["dialect"] if isinstance(fields.get("dialect"), str) else None,
        progress,
    )


def proper(text: str) -> str:
    """The text with halves of surrogate pairs, which JSON lets through, written out: no file can hold them."""
    return text.encode("utf-8", "backslashreplace").decode()


def _whole(value: object) -> int | None:
    try:
        return None if value is None else int(float(cast("Any", value)))
    except (TypeError, ValueError, OverflowError):
        return None


def parse_time(value: object) -> int:
    """UTC microseconds of an ISO time (without a zone: UTC) or of seconds, milli-, micro- or nanoseconds since 1970.

    >>> parse_time("2023-11-14T22:13:20Z") == parse_time(1_700_000_000) == parse_time("1700000000000")
    True
    """
    if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value):
        value = float(value) if "." in value else int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        for limit, factor in ((1e11, 1e6), (1e14, 1e3), (1e17, 1), (1e20, 1e-3)):
            if abs(value) < limit:
                return int(value * int(factor)) if factor >= 1 else int(value // 1000)
    try:
        text = re.sub(r"\s+(?=[+-]\d{2}:?\d{2}$)|\s+UTC$", "", value.strip()) if isinstance(value, str) else ""
        moment = datetime.fromisoformat(text) if text else value
        if isinstance(moment, datetime):
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // (datetime.resolution)
    except (ValueError, OverflowError):
        pass
    # What stands there is not repeated: in a torn line it may be part of a statement, and so somebody's data.
    raise ValueError("start_time is not a time; write it as 2024-05-01T12:00:00Z")
