"""One record per table scan: what a query asked of one table, when, and how well we understood it.

A record is one line of JSON in the store. Fields that a newer version adds are ignored by an older reader; a field that
is missing or of the wrong type makes the line malformed, which is an error with its place, never a guess. What the scan
asks is JSON inside texts, so that all lines have the same few columns and Arrow reads them (`querycolumns.py`): a
`template` and its `literals` or, from live capture, `planned`, the filters as Spark's planner had them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, cast

from oreo_lakehouse.errors import HistoryError, StoreError
from oreo_lakehouse.history.catalyst import read_filters
from oreo_lakehouse.history.exactness import Exactness, stored
from oreo_lakehouse.history.templates import Template, split
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
    files_pruned: int | None = None
    """Files that our own pruning left out beyond those that the engine skipped; None where pruning was not on."""
    rows_pruned: int | None = None
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
        document["template"], document["literals"] = split(self.predicate)
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
            raise HistoryError(f"{place} is not JSON") from error
        return cls.from_document(document, place)

    @classmethod
    def from_document(cls, document: object, place: str = "record") -> QueryRecord:
        """The record in a JSON object; `from_line` describes the rest."""
        if not isinstance(document, dict):
            raise HistoryError(f"{place} is not a JSON object")
        known: dict[str, Any] = {}
        fields_ = cast("dict[str, Any]", document)
        for name, value in fields_.items():
            if name in _TYPES and value is not None:
                known[name] = _checked(name, value, place)
        template, literals, planned = (fields_.get(name) for name in ("template", "literals", "planned"))
        if isinstance(template, str) and isinstance(literals, str):
            try:
                known["predicate"] = Template(template).predicate(literals)
            except StoreError as error:
                raise HistoryError(f"{place}: {error}") from error
        elif isinstance(planned, str):
            known |= planned_fields(planned, place)
        missing = _REQUIRED - known.keys()
        if missing:
            raise HistoryError(f"{place} lacks {', '.join(sorted(missing))}")
        return cls(**known)


def planned_fields(text: str, place: str = "record") -> dict[str, Any]:
    """The fields of a record that follow from what Spark planned.

    Raises:
        HistoryError: the text is malformed; the message names `place`.
    """
    try:
        document = json.loads(text)
        if not isinstance(document, dict):
            raise ValueError("what was planned is not a JSON object")
        predicate, exactness, reasons = stored(read_filters(cast("dict[str, Any]", document)))
    except (ValueError, RecursionError) as error:
        raise HistoryError(f"{place}: {error}") from error
    return {"predicate": predicate, "exactness": exactness, "reasons": reasons}


TIMES = range(-62_000_000_000_000_000, 253_000_000_000_000_000)
"""Microseconds since 1970 for which calendars have a date."""
_LONGS = range(-(1 << 63), 1 << 63)
_TYPES: dict[str, type] = {
    f.name: tuple if "tuple" in str(f.type) else int if str(f.type).startswith("int") else str
    for f in fields(QueryRecord)
    if f.name != "predicate"
}
_REQUIRED = {f.name for f in fields(QueryRecord)[:8]}


def _checked(name: str, value: Any, place: str) -> Any:
    wanted = _TYPES[name]
    if wanted is tuple and isinstance(value, list):
        items = tuple(cast("list[Any]", value))
        if all(isinstance(item, str) for item in items):
            return items
    elif name == "exactness":
        if isinstance(value, str) and value in _EXACTNESSES:
            return _EXACTNESSES[value]
    elif type(value) is wanted and (wanted is not int or value in (TIMES if name == "time_us" else _LONGS)):
        return value
    raise HistoryError(f"{place}: {name} cannot be a {type(value).__name__} like this")


_EXACTNESSES = {exactness.value: exactness for exactness in Exactness}
