"""Query history from files of SQL text: read, understood for one table, and added to its store once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.catalysttext import CatalystText, Question, better
from oreo_lakehouse.history.eventlogs import LoggedScan, read_event_log, record_of
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.importsummary import ImportSummary
from oreo_lakehouse.history.names import TableNames
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.history.redaction import redact
from oreo_lakehouse.history.sqltext import NotAQuery, Schema, SqlText, TableScan
from oreo_lakehouse.history.statements import Statement, proper, read_statements
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.predicates.tree import TRUE

BATCH = 10_000
"""Records in one batch of the store."""
PLANNED = 500
"""Statements that the planner is given at a time."""
DAY_US = 86_400_000_000

Progress = Callable[[float], None]


def import_history(
    history: HistoryStore,
    table_names: Iterable[str],
    schema: Schema,
    files: Iterable[str | Path],
    progress: Progress | None = None,
    fmt: str = "auto",
    dialect: str = "",
    time_zone: str | None = None,
    keep_sql: bool = False,
    redacted: Collection[str] = (),
    planner: CatalystText | None = None,
    planner_first: bool = False,
) -> ImportSummary:
    """Add what these files say about a table to its history. Doing it twice adds nothing twice.

    Args:
        history: where to.
        table_names: the names that the table goes by in the statements.
        schema: the table's columns.
        files: JSON lines, CSV or Parquet, also in gzip (see `read_statements`), or folders of Spark event logs.
        progress: told which part of the work is done, from 0 to 1.
        fmt: whose names the files' fields have; `eventlog` for an event log that is a single file.
        dialect: of the SQL; by default what the statement says, then what the format uses, then Spark's.
        time_zone: of the sessions, where a statement does not say; without it, times are known only roughly.
        keep_sql: store the statements themselves too. Their literals may be personal data.
        redacted: columns whose literals must not be stored: only that they were filtered, and by what operator.
        planner: asked about Spark SQL that was not understood exactly, and about what is read through views.
        planner_first: ask it about all Spark SQL.

    Raises:
        HistoryError: a file cannot be read.
        StoreError: the history cannot be written.
    """
    paths = [str(file) for file in files]
    run = _Import(history, list(table_names), schema, dialect, time_zone, keep_sql, redacted, planner, planner_first)
    for number, path in enumerate(paths):
        run.repeats.clear()
        if fmt == "eventlog" or Path(path).is_dir():
            for scan in read_event_log(path, lambda line, reason, path=path: run.reject(path, line, reason)):
                run.add_logged(scan)
            continue
        for statement in read_statements(path, fmt, lambda line, reason, path=path: run.reject(path, line, reason)):
            run.add(path, statement)
            if progress is not None and run.summary.read % 100 == 0:
                progress((number + statement.progress) / len(paths))
    run.flush()
    if progress is not None:
        progress(1.0)
    return run.summary


UNSEEN = TableScan(TRUE, Exactness.UNKNOWN, ("a view whose text is not understood",), ())
_SPARK = ("spark", "databricks")
"""Dialects that Spark's planner speaks."""


class _Unclear(NamedTuple):
    """A statement that the planner is to be asked about."""

    statement: Statement
    query_id: str
    zone: str | None
    scans: list[TableScan]
    through_view: bool


class _Import:
    """One run of `import_history`, whose arguments these are."""

    def __init__(
        self,
        history: HistoryStore,
        names: list[str],
        schema: Schema,
        dialect: str,
        time_zone: str | None,
        keep_sql: bool,
        redacted: Collection[str],
        planner: CatalystText | None,
        planner_first: bool,
    ) -> None:
        self.summary = ImportSummary()
        self._history = history
        self._names = names
        self._table = TableNames(names)
        self._schema = schema
        self._dialect = dialect
        self._time_zone = time_zone
        self._keep_sql = keep_sql
        self._redacted = redacted
        self._planner = planner
        self._planner_first = planner_first
        self._unclear: list[_Unclear] = []
        self._readers: dict[str, SqlText] = {}
        self._seen = history.record_keys()
        if dialect:
            self._reader(dialect)  # a slip of the user's own is told at once
        self.repeats: Counter[str] = Counter()
        self._pending: list[QueryRecord] = []

    def reject(self, path: str, line: int, reason: str) -> None:
        self.summary.read += 1
        self.summary.reject(path, line, reason)

    def add(self, path: str, statement: Statement) -> None:
        summary = self.summary
        summary.read += 1
        query_id = statement.query_id or _content_id(statement, self.repeats)
        zone = statement.time_zone or self._time_zone
        try:
            reader = self._reader(self._dialect or statement.dialect or "spark")
            scans, others = reader.read(statement.text, zone, statement.time_us, statement.namespace)
        except NotAQuery:
            summary.not_queries += 1
            return
        except HistoryError as error:
            summary.reject(path, statement.line, str(error))
            return
        planner = self._planner if reader.dialect in _SPARK else None
        through_view = planner is not None and any(planner.reaches(name, statement.namespace) for name in others)
        unclear = self._planner_first or any(scan.exactness is not Exactness.EXACT for scan in scans)
        summary.other_tables += not scans and not through_view
        if planner is not None and (through_view or (scans and unclear)):
            self._unclear.append(_Unclear(statement, query_id, zone, scans, through_view))
            if len(self._unclear) >= PLANNED:
                self._plan()
        else:
            self._keep(statement, query_id, zone, scans)

    def add_logged(self, scan: LoggedScan) -> None:
        """Keep a scan from an event log."""
        self.summary.read += 1
        if not any(name and self._table.match_text(name) for name in (scan.path, scan.table)):
            self.summary.other_tables += 1
            return
        self._add_record(record_of(scan, self._history.table_uuid, self._schema))

    def _plan(self) -> None:
        """Ask the planner about what was not understood exactly."""
        if self._planner is not None and self._unclear:
            questions = [Question(item.statement.text, item.zone, item.statement.namespace) for item in self._unclear]
            for item, answer in zip(self._unclear, self._planner.read(questions), strict=True):
                found = better(item.scans, answer)
                if item.through_view:  # only the planner sees those scans
                    found = [*item.scans, UNSEEN] if answer is None else answer
                self._keep(item.statement, item.query_id, item.zone, found)
            self._unclear.clear()

    def _keep(self, statement: Statement, query_id: str, zone: str | None, scans: list[TableScan]) -> None:
        for number, scan in enumerate(scans):
            self._add_record(self._record(statement, query_id, number, scan, zone))

    def _add_record(self, found: QueryRecord) -> None:
        record, summary = redact(found, self._redacted), self.summary
        if record.key in self._seen:
            summary.known_before += 1
            return
        self._seen.add(record.key)
        self._pending.append(record)
        summary.imported += 1
        summary.relaxed += record.exactness is Exactness.RELAXED
        summary.unknown += record.exactness is Exactness.UNKNOWN
        summary.reasons.update(record.reasons)
        if len(self._pending) >= BATCH:
            self._write()

    def flush(self) -> None:
        self._plan()
        self._write()

    def _write(self) -> None:
        days: dict[int, list[QueryRecord]] = {}
        for record in self._pending:  # a batch a day: retention drops whole days
            days.setdefault(record.time_us // DAY_US, []).append(record)
        for records in days.values():
            content = "\n".join(record.key for record in records).encode()
            self._history.append_once(f"import_{hashlib.sha256(content).hexdigest()[:32]}", records)
        self._pending.clear()

    def _reader(self, dialect: str) -> SqlText:
        if dialect not in self._readers:
            self._readers[dialect] = SqlText(self._names, self._schema, dialect)
        return self._readers[dialect]

    def _record(
        self, statement: Statement, query_id: str, number: int, scan: TableScan, time_zone: str | None
    ) -> QueryRecord:
        return QueryRecord(
            query_id=query_id,
            scan=number,
            source="import",
            time_us=statement.time_us,
            status=statement.status,
            table_uuid=self._history.table_uuid,
            predicate=scan.predicate,
            exactness=scan.exactness,
            reasons=scan.reasons,
            table_name=self._names[0] if self._names else "",
            time_zone=time_zone,
            duration_ms=statement.duration_ms,
            columns=scan.columns,
            sql_hash=hashlib.sha256(statement.text.encode("utf-8", "surrogatepass")).hexdigest()[:16],
            sql=proper(statement.text) if self._keep_sql else None,
        )


def _content_id(statement: Statement, repeats: Counter[str]) -> str:
    """An id for a statement without one. The same statement at the same time gets numbers, the same ones every time."""
    content = f"{statement.time_us}\0{statement.text}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(content).hexdigest()[:24]
    repeats[digest] += 1
    return digest if repeats[digest] == 1 else f"{digest}-{repeats[digest]}"
