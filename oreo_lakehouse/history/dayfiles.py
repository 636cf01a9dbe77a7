"""Day files: finished batches of one day in one Parquet file, each record with the batch that it came from."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.querycolumns import REPEATED, SCHEMA, Rows, have_dates
from oreo_lakehouse.history.templates import Template

_BATCH = [("writer", pa.string()), ("number", pa.int64())]
_COLUMNS = pa.schema([*SCHEMA, ("template", pa.string()), ("literals", pa.string()), *_BATCH])
_NEEDED = (
    *("query_id", "scan", "source", "time_us", "status", "table_uuid", "exactness", "template", "literals"),
    *("writer", "number"),
)
_DICTIONARIES: Any = [*REPEATED, "template", "writer"]


def pack(rows: Rows, templates: Sequence[Template]) -> bytes:
    """A day file's content.

    Args:
        rows: records, each with its batch's `writer` and `number`.
        templates: by number.
    """
    texts = pa.array([template.text for template in templates], pa.string())
    column = pa.DictionaryArray.from_arrays(pa.array(rows.codes), texts)
    whole = rows.table.append_column("template", column).select(_COLUMNS.names).cast(_COLUMNS)
    sink = io.BytesIO()
    pq.write_table(whole, sink, compression="zstd", use_dictionary=_DICTIONARIES)
    return sink.getvalue()


def unpack(content: bytes, place: str) -> pa.Table:
    """A day file's records: the columns of `querycolumns.LINES`, `writer` and `number`.

    Raises:
        HistoryError: it is not a day file; the message names `place`.
    """
    table = _read(content, place, _COLUMNS.names)
    return table.append_column("planned", pa.nulls(len(table), pa.string()))


Owners: TypeAlias = tuple[list[tuple[str, int]], npt.NDArray[np.int64]]
"""The batches of a day file by writer and number, and which of them each record came from."""


def owners(table: pa.Table) -> Owners:
    """Whose the records of an unpacked day file are."""
    writer = table.column("writer").combine_chunks()
    names = writer.dictionary.to_pylist()
    numbers, at = np.unique(table.column("number").to_numpy(), return_inverse=True)
    pairs, codes = np.unique(writer.indices.to_numpy() * np.int64(len(numbers)) + at, return_inverse=True)
    return [(names[pair // len(numbers)], int(numbers[pair % len(numbers)])) for pair in pairs], codes


def batches_in(content: bytes, place: str) -> set[tuple[str, int]]:
    """Which batches a day file holds, by writer and number."""
    return set(owners(_read(content, place, ["writer", "number"]))[0])


def _read(content: bytes, place: str, names: list[str]) -> pa.Table:
    try:
        table = pq.read_table(io.BytesIO(content), columns=names, read_dictionary=_DICTIONARIES)
        wanted = {field.name: field.type for field in _COLUMNS}
        for field in table.schema:
            own, right = field.type, wanted[field.name]
            own = own.value_type if pa.types.is_dictionary(own) else own
            if pa.types.is_list(own) and pa.types.is_list(right):  # what a list's values are called may differ
                own, right = own.value_type, right.value_type
            if own != right:
                raise ValueError(f"{field.name} is {own}")
        if any(table.column(name).null_count for name in _NEEDED if name in names):
            raise ValueError("a record lacks what each has")
        if "time_us" in names and not have_dates(table):
            raise ValueError("a record is of a time that no calendar knows")
        return table.select(names)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise HistoryError(f"{place} is not a day file: {str(error).splitlines()[0]}") from error
