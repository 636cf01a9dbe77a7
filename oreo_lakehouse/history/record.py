"""One record per table scan: what a query asked of one table, when, and how well we understood it.

A record is one line of JSON in the store. Fields that a newer version adds are ignored by an older reader; a field that
is missing or of the wrong type makes the line malformed, which is an error with its place, never a guess. Live capture
writes a scan's filters as Spark's planner had them; they become a stored predicate when they are read.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, cast

from oreo_lakehouse.errors import HistoryError, StoreError
from oreo_lakehouse.history.catalyst import read_filters
from oreo_lakehouse.history.exactness import Exactness, stored
from oreo_lakehouse.predicates.jsonform import from_json, to_json
from oreo_lakehouse.predicates.tree import Predicate


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """One scan of one table by one query.

    >>> from oreo_lakehouse.predicates.tree import TRUE
    >>> record = QueryRecord("q1", 0, "import", 1_700_000_000_000_000, "finished", "f0e1", TRUE, Exactness.EXACT)
    >>> QueryRecord.from_line(record.to_line()) == record
    True
    """

    query_id: str
    scan: int
    """Number of this scan within the query: a self-join scans a table twice."""
    source: str
    """Where it was learned: `capture`, `import`, `eventlog`, …"""
    time_us: int
    """Start of the query, UTC microseconds since 1970."""
    status: str
    """`finished`, `failed` or what the source calls it."""
    table_uuid: str
    predicate: Predicate
    """In stored form: implied by the real predicate."""
    exactness: Exactness
    reasons: tuple[str, ...] = ()
    table_name: str = ""
    table_version: int | None = None
    time_zone: str | None = None
    duration_ms: int | None = None
    columns: tuple[str, ...] = ()
    """The table's columns that the query reads."""
    files_read: int | None = None
    files_total: int | None = None
    bytes_read: int | None = None
    sql_hash: str | None = None
    sql: str | None = None
    """The statement itself, only where the user asked to keep it: literals are personal data."""

    @property
    def key(self) -> str:
        """What makes two records the same."""
        return f"{self.query_id}#{self.scan}"

    def to_line(self) -> str:
        """The record as one line of JSON, without what is not known."""
        document = {name: value for name in _TYPES if (value := getattr(self, name)) not in (None, (), "")}
        document["predicate"] = to_json(self.predicate)
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_line(cls, line: str | bytes, place: str = "record") -> QueryRecord:
        """The record that `to_line` wrote.

        Raises:
            HistoryError: the line is malformed; the message names `place`.
        """
        try:
            document = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise HistoryError(f"{place} is not JSON: {error}") from error
        return cls.from_document(document, place)

    @classmethod
    def from_document(cls, document: object, place: str = "record") -> QueryRecord:
        """The record in a JSON object; `from_line` describes the rest."""
        if not isinstance(document, dict):
            raise HistoryError(f"{place} is not a JSON object")
        known: dict[str, Any] = {}
        for name, value in cast("dict[str, Any]", document).items():
            if name == "predicate":
                try:
                    known[name] = from_json(value)
                except (StoreError, RecursionError) as error:
                    raise HistoryError(f"{place}: {error}") from error
            elif name in _TYPES and value is not None:
                known[name] = _checked(name, value, place)
        if "filters" in document and "predicate" not in known:  # as live capture writes it
            try:
                predicate, exactness, reasons = stored(read_filters(cast("dict[str, Any]", document)))
            except (ValueError, RecursionError) as error:
                raise HistoryError(f"{place}: {error}") from error
            known |= {"predicate": predicate, "exactness": exactness, "reasons": reasons}
        missing = _REQUIRED - known.keys()
        if missing:
            raise HistoryError(f"{place} lacks {', '.join(sorted(missing))}")
        return cls(**known)


_TYPES: dict[str, type] = {
    f.name: tuple if "tuple" in str(f.type) else int if str(f.type).startswith("int") else str
    for f in fields(QueryRecord)
    if f.name != "predicate"
}
_REQUIRED = {f.name for f in fields(QueryRecord)[:8]}
_REPEATED = {"source", "status", "table_uuid", "table_name", "time_zone"}
"""Texts that most records of a table share: kept once, a million records take half the memory."""


def _checked(name: str, value: Any, place: str) -> Any:
    wanted = _TYPES[name]
    if type(value) is wanted:
        if name == "exactness":
            if value in _EXACTNESSES:
                return _EXACTNESSES[value]
        else:
            return sys.intern(value) if name in _REPEATED else value
    elif wanted is tuple and isinstance(value, list):
        items = tuple(cast("list[Any]", value))
        if all(isinstance(item, str) for item in items):
            return _shared(items)
    raise HistoryError(f"{place}: {name} cannot be {value!r}")


_EXACTNESSES = {exactness.value: exactness for exactness in Exactness}


@lru_cache(maxsize=10_000)
def _shared(items: tuple[str, ...]) -> tuple[str, ...]:
    return items
