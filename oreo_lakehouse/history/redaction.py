"""Leaving out what must not be stored: of a redacted column, only that it was filtered, and by what operator."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa

from oreo_lakehouse.history.exactness import stored
from oreo_lakehouse.history.querybatch import QueryBatch
from oreo_lakehouse.history.querycolumns import SCHEMA, Rows, Templates, table_of_records
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.predicates.tree import And, Compare, In, Like, Or, Predicate, Unknown


def redact(record: QueryRecord, columns: Collection[str]) -> QueryRecord:
    """The record without literals of these columns (in any case), and without its SQL, which has them too.

    >>> from oreo_lakehouse.history.exactness import Exactness
    >>> from oreo_lakehouse.predicates.tree import Op
    >>> from oreo_lakehouse.predicates.values import Kind
    >>> secret = Compare("email", Op.EQ, Kind.STRING, "a@b.c")
    >>> record = redact(QueryRecord("q", 0, "import", 0, "finished", "u", secret, Exactness.EXACT), ["Email"])
    >>> record.predicate, record.exactness.value, record.reasons
    (Constant(value=True), 'unknown', ('redacted: email =',))
    """
    hidden = {column.lower() for column in columns}
    if not hidden:
        return record
    predicate, exactness, reasons = stored(_without(record.predicate, hidden))
    if not reasons:
        exactness = record.exactness
    every = tuple(dict.fromkeys((*record.reasons, *reasons)))
    return replace(record, predicate=predicate, exactness=exactness, reasons=every, sql=None)


def redact_rows(rows: Rows, templates: Templates, columns: Collection[str], keep_sql: bool) -> tuple[Rows, Templates]:
    """The same for many records; `keep_sql` says whether statements may stay."""
    table = rows.table
    if not keep_sql:
        at = table.schema.get_field_index("sql")
        table = table.set_column(at, SCHEMA.field("sql"), pa.nulls(len(table), pa.string()))
    if not columns:
        return Rows(table, rows.codes), templates
    clean = [redact(record, columns) for record in QueryBatch(table, templates.all, rows.codes)]
    fresh = Templates()
    done = fresh.rows(table_of_records(clean), "a record")
    for name in table.column_names:
        if name not in done.table.column_names:
            done = Rows(done.table.append_column(name, table.column(name)), done.codes)
    return done, fresh


def _without(predicate: Predicate, hidden: Collection[str]) -> Predicate:
    match predicate:
        case And(children):
            return And(tuple(_without(child, hidden) for child in children))
        case Or(children):
            return Or(tuple(_without(child, hidden) for child in children))
        case Compare(column, op) if column.lower() in hidden:
            return Unknown(f"redacted: {column} {op.value}")
        case In(column) if column.lower() in hidden:
            return Unknown(f"redacted: {column} {'NOT ' * predicate.negated}IN")
        case Like(column) if column.lower() in hidden:
            return Unknown(f"redacted: {column} {'NOT ' * predicate.negated}LIKE")
        case _:
            return predicate
