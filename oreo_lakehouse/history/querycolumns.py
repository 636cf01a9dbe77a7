"""Records as Arrow columns, the form in which a million of them are read in seconds.

Lines of JSON become a table by Arrow's own reader; where it objects, the plain reader of `record.py` decides, and says
what is wrong with which line. A record holds the number of its predicate's template, and its literals as text.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json

from oreo_lakehouse.errors import HistoryError, StoreError
from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.record import TIMES, QueryRecord, planned_fields
from oreo_lakehouse.history.templates import Template, split

REPEATED = ("source", "status", "table_uuid", "exactness", "table_name", "time_zone")
"""Texts that most records of a table share: each is kept once."""
_TEXTS = ("query_id", "sql_hash", "sql")
_LISTS: dict[str, pa.DataType] = {"reasons": pa.list_(pa.string()), "columns": pa.list_(pa.string())}
_REQUIRED = ("query_id", "scan", "source", "time_us", "status", "table_uuid")
_BLOCK = 1 << 24
"""Bytes that Arrow's reader takes at a time; a longer line is left to the plain reader."""

SCHEMA = pa.schema(
    [
        (f.name, _LISTS.get(f.name) or (pa.string() if f.name in (*REPEATED, *_TEXTS) else pa.int64()))
        for f in fields(QueryRecord)
        if f.name != "predicate"
    ]
)
"""A record's fields but its predicate."""
ASKED = ("template", "literals", "planned")
LINES = pa.schema([*SCHEMA, *((name, pa.string()) for name in ASKED)])
"""As lines of JSON have them."""


def table_of_lines(content: bytes, place: str) -> pa.Table:
    """The records in lines of JSON, with the columns of `LINES`.

    Raises:
        HistoryError: a line is malformed; the message says which, of `place`.
    """
    options = pyarrow.json.ParseOptions(explicit_schema=LINES, unexpected_field_behavior="ignore")
    try:
        blocks = pyarrow.json.ReadOptions(block_size=min(len(content) + 1, _BLOCK))
        table = pyarrow.json.read_json(io.BytesIO(content), blocks, options)
        table.validate(full=True)  # also that texts are UTF-8
        if _is_complete(table):
            return table
    except (pa.ArrowException, ValueError, OverflowError):
        pass
    return table_of_records(records_of_lines(content, place))


def records_of_lines(content: bytes, place: str) -> list[QueryRecord]:
    """The same by the plain reader, which names the line that is at fault."""
    lines = enumerate(content.split(b"\n"), 1)
    return [QueryRecord.from_line(line, f"line {number} of {place}") for number, line in lines if line]


def _is_complete(table: pa.Table) -> bool:
    if any(table.column(name).null_count for name in _REQUIRED):
        return False
    valid = [table.column(name).is_valid().to_numpy() for name in (*ASKED, "exactness")]
    template, literals, planned, exactness = valid
    whole = (template & literals & exactness & ~planned) | (planned & ~template)
    known = {*table.column("exactness").unique().to_pylist()} <= {None, *(e.value for e in Exactness)}
    return bool(whole.all()) and known and have_dates(table)


def have_dates(table: pa.Table) -> bool:
    """Whether all records are of times for which there is a date."""
    times = table.column("time_us").to_numpy()
    return not len(times) or (int(times.min()) in TIMES and int(times.max()) in TIMES)


def table_of_records(records: Sequence[QueryRecord]) -> pa.Table:
    """Records with the columns of `LINES`."""
    columns = {field.name: _array([getattr(record, field.name) for record in records], field.type) for field in SCHEMA}
    texts = [split(record.predicate) for record in records]
    columns |= {name: pa.array([pair[at] for pair in texts], pa.string()) for at, name in enumerate(ASKED[:2])}
    columns["planned"] = pa.nulls(len(records), pa.string())
    return pa.table(columns, LINES)


def _array(values: list[Any], wanted: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, wanted)
    except UnicodeEncodeError:  # half of a surrogate pair, out of a foreign file
        return pa.array([_clean(value) for value in values], wanted)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return [_clean(item) for item in cast("tuple[str, ...]", value)] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Rows:
    """Records of some file: `SCHEMA`'s columns and `literals`, and the number of each record's template."""

    table: pa.Table
    codes: npt.NDArray[np.int32]

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """One after the other."""
        table = pa.concat_tables([part.table for part in parts]).unify_dictionaries().combine_chunks()
        return cls(table, np.concatenate([part.codes for part in parts]))

    def where(self, mask: npt.NDArray[np.bool_]) -> Rows:
        """Some of them."""
        return self if mask.all() else Rows(self.table.filter(pa.array(mask)), self.codes[mask])


class Templates:
    """Templates by number."""

    def __init__(self) -> None:
        self.all: list[Template] = []
        self._numbers: dict[str, int] = {}

    def rows(self, table: pa.Table, place: str) -> Rows:
        """A table with the columns of `LINES` (more are kept), its templates numbered.

        Raises:
            HistoryError: a template, or what was planned, is malformed; the message names `place`.
        """
        if table.column("planned").null_count < len(table):
            table = _understood(table, place)
        column = table.column("template").combine_chunks()
        column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        numbers = np.array([self._number(text, place) for text in column.dictionary.to_pylist()], np.int32)
        codes = numbers[column.indices.to_numpy()] if len(table) else np.zeros(0, np.int32)
        return Rows(_shared(table.drop_columns(["template", "planned"])), codes)

    def _number(self, text: str, place: str) -> int:
        if text not in self._numbers:
            try:
                self.all.append(Template(text))
            except StoreError as error:
                raise HistoryError(f"{place}: {error}") from error
            self._numbers[text] = len(self.all) - 1
        return self._numbers[text]


def _understood(table: pa.Table, place: str) -> pa.Table:
    """The table with everything that was planned read, once for each distinct text."""
    column = table.column("planned").combine_chunks().dictionary_encode()
    found = [planned_fields(text, place) for text in column.dictionary.to_pylist()]
    pairs = [split(fields_["predicate"]) for fields_ in found]
    here = column.is_valid().to_numpy(zero_copy_only=False)
    index = column.indices.fill_null(0).to_numpy()
    for name, values in (
        ("template", [pair[0] for pair in pairs]),
        ("literals", [pair[1] for pair in pairs]),
        ("exactness", [fields_["exactness"].value for fields_ in found]),
        ("reasons", [list(fields_["reasons"]) for fields_ in found]),
    ):
        field = LINES.field(name)
        given = pa.array(values, field.type).take(pa.array(index))
        both = pa.concat_arrays([given, table.column(name).combine_chunks()])
        chosen = both.take(pa.array(np.arange(len(here)) + np.where(here, 0, len(here))))
        table = table.set_column(table.schema.get_field_index(name), field, chosen)
    return table


def _shared(table: pa.Table) -> pa.Table:
    """Repeated texts as dictionaries."""
    for name in REPEATED:
        column = table.column(name).combine_chunks()
        if not pa.types.is_dictionary(column.type):
            at = table.schema.get_field_index(name)
            table = table.set_column(at, name, column.dictionary_encode())
    return table
