"""Spark event logs: what applications did before live capture was on.

A log is a file, or a folder `eventlog_v2_<application>` of numbered parts, plain or in zstd or gzip. Delta scans carry
their filters in the plan; Iceberg's are printed without escapes, so they count only where they hold no text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.exactness import stored
from oreo_lakehouse.history.icebergtext import read_iceberg_filters
from oreo_lakehouse.history.plantext import read_plan_filters
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.history.statements import MAX_EXPANSION, MAX_LINE, Rejected
from oreo_lakehouse.predicates.tree import And, Predicate, Unknown
from oreo_lakehouse.predicates.values import Kind

MAX_EVENT = 4 * MAX_LINE
"""Bytes in one event: a plan is long."""


@dataclass(frozen=True)
class LoggedScan:
    """One scan of some table, as an event log has it."""

    query_id: str
    scan: int
    time_us: int
    duration_ms: int | None
    status: str
    table: str
    path: str
    """Of a Delta table; "" for Iceberg's."""
    time_zone: str | None
    filters: tuple[str, ...]
    """As the plan prints them: Delta's data, partition and pushed filters, or the one list of Iceberg's."""
    files_read: int | None
    bytes_read: int | None


@dataclass
class _Execution:
    time_ms: int
    time_zone: str | None
    plan: dict[str, Any] = field(default_factory=lambda: dict[str, Any]())


def read_event_log(path: str | Path, rejected: Rejected) -> Iterator[LoggedScan]:
    """The scans in an event log, by the end of their queries.

    Raises:
        HistoryError: it is not there or cannot be read.
    """
    running: dict[int, _Execution] = {}
    values: dict[int, int] = {}
    application, zone = "", None
    for number, event in _events(Path(path), rejected):
        kind = str(event.get("Event", "")).rsplit(".", 1)[-1]
        try:
            if kind == "SparkListenerApplicationStart":
                application = str(event.get("App ID", ""))
            elif kind == "SparkListenerEnvironmentUpdate":
                spark = cast("dict[str, str]", event.get("Spark Properties", {}))
                system = cast("dict[str, str]", event.get("System Properties", {}))
                zone = spark.get("spark.sql.session.timeZone") or system.get("user.timezone")
            elif kind == "SparkListenerSQLExecutionStart":
                own = event.get("modifiedConfigs", {}).get("spark.sql.session.timeZone")
                running[event["executionId"]] = _Execution(int(event["time"]), own or zone, event["sparkPlanInfo"])
            elif kind == "SparkListenerSQLAdaptiveExecutionUpdate" and event["executionId"] in running:
                running[event["executionId"]].plan = event["sparkPlanInfo"]
            elif kind == "SparkListenerDriverAccumUpdates":
                values.update({int(key): int(value) for key, value in event["accumUpdates"]})
            elif kind == "SparkListenerSQLExecutionEnd" and event["executionId"] in running:
                execution = running.pop(event["executionId"])
                yield from _scans(event, execution, application, values)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            rejected(number, f"a malformed event: {error!r}"[:200])


def _scans(
    end: dict[str, Any], execution: _Execution, application: str, values: dict[int, int]
) -> Iterator[LoggedScan]:
    todo, number = [execution.plan], 0
    while todo:
        node = todo.pop()
        todo += reversed(node.get("children", []))
        printed = _printed(node)
        if printed is None:
            continue
        metrics = {m["name"]: values.get(m["accumulatorId"]) for m in node.get("metrics", [])}
        table, path, filters = printed
        yield LoggedScan(
            query_id=f"{application}-{end['executionId']}",
            scan=number,
            time_us=execution.time_ms * 1000,
            duration_ms=int(end["time"]) - execution.time_ms,
            status="failed" if end.get("errorMessage") else "finished",
            table=table,
            path=path,
            time_zone=execution.time_zone,
            filters=filters,
            files_read=metrics.get("number of files read", metrics.get("number of result data files")),
            bytes_read=metrics.get("size of files read", metrics.get("total data file size (bytes)")),
        )
        number += 1


def _printed(node: dict[str, Any]) -> tuple[str, str, tuple[str, ...]] | None:
    """A scan's table, its path and its printed filters."""
    name, metadata = str(node.get("nodeName", "")), node.get("metadata", {})
    if name.startswith("Scan parquet") and "DeltaFileIndex" in str(metadata.get("Location", "")):
        path = re.search(r"\[(?:oreo skips [^:]*: )?(.+)\]$", str(metadata["Location"]))
        lists = tuple(str(metadata.get(key, "[]")) for key in ("DataFilters", "PartitionFilters", "PushedFilters"))
        return name.removeprefix("Scan parquet").strip(), path[1] if path else "", lists
    if name.startswith("BatchScan "):
        found = re.search(r"IcebergScan\(.*?filters=(.*), runtimeFilters=", str(node.get("simpleString", "")))
        if found:
            return name.removeprefix("BatchScan ").strip(), "", (found[1],)
    return None


UNSEEN = "an event log may not show every condition"
"""Conditions on partition and data columns together, and those of joins, are in no list of filters."""


def record_of(scan: LoggedScan, table_uuid: str, schema: Mapping[str, Kind]) -> QueryRecord:
    """The record of a scan of a table with these columns."""
    predicate, exactness, reasons = stored(_predicate(scan, schema))
    return QueryRecord(
        query_id=scan.query_id,
        scan=scan.scan,
        source="eventlog",
        time_us=scan.time_us,
        status=scan.status,
        table_uuid=table_uuid,
        predicate=predicate,
        exactness=exactness,
        reasons=reasons,
        table_name=scan.table or scan.path,
        time_zone=scan.time_zone,
        duration_ms=scan.duration_ms,
        files_read=scan.files_read,
        bytes_read=scan.bytes_read,
    )


def _predicate(scan: LoggedScan, schema: Mapping[str, Kind]) -> Predicate:
    if len(scan.filters) == 1:
        found = read_iceberg_filters(scan.filters[0], schema)
    else:
        data, partition, pushed = scan.filters
        found = read_plan_filters(data, partition, pushed, schema, scan.time_zone)
    return And((found, Unknown(UNSEEN)))


def _events(path: Path, rejected: Rejected) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    for part in _parts(path):
        for raw in _lines(part):
            number += 1
            if len(raw) > MAX_EVENT:
                rejected(number, f"an event longer than {MAX_EVENT:,} bytes")
                continue
            if b"SQL" not in raw and b"Start" not in raw and b"Update" not in raw:
                continue  # tasks and stages: most of a log
            try:
                event = json.loads(raw)
            except (ValueError, RecursionError):
                rejected(number, "not an event")
                continue
            if isinstance(event, dict):
                yield number, cast("dict[str, Any]", event)


def _parts(path: Path) -> list[Path]:
    if path.is_dir():
        parts = [part for part in path.rglob("events_*") if part.is_file()]
        if not parts:
            raise HistoryError(f"{path} holds no event log: there is no file events_* in it")
        return sorted(
            parts, key=lambda part: (part.parent, int((re.search(r"events_(\d+)_", part.name) or ["", "0"])[1]))
        )
    return [path]


def _lines(path: Path) -> Iterator[bytes]:
    """Lines in bounded memory."""
    kind = {".zstd": "zstd", ".zst": "zstd", ".gz": "gzip", ".lz4": "lz4"}.get(path.suffix)
    try:
        with pa.OSFile(str(path)) as file:
            stream = pa.CompressedInputStream(file, kind) if kind else file
            most = MAX_EXPANSION * file.size() + (1 << 20)
            done, rest = 0, b""
            while chunk := stream.read(1 << 20):
                done += len(chunk)
                if kind and done > most:
                    raise HistoryError(f"{path} grows to more than {MAX_EXPANSION} times its size; unpack it first")
                if b"\n" not in chunk and len(rest) > MAX_EVENT:
                    continue  # what is left of an event that is too long; it is rejected at its end
                *whole, rest = (rest + chunk).split(b"\n")
                yield from whole
            if rest.strip():
                yield rest
    except (OSError, pa.ArrowException) as error:
        raise HistoryError(f"cannot read {path}: {str(error).splitlines()[0]}") from error
