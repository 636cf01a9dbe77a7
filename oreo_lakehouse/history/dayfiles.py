"""Day files: finished batches of one day in one Parquet file, each record with the batch that it came from."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oreo_lakehouse.errors import HistoryError


class Line(NamedTuple):
    """One record, and the place of its batch among its writer's batches."""

    writer: str
    number: int
    line: str


def pack(lines: Iterable[Line]) -> bytes:
    """A day file's content."""
    rows = list(lines)
    table = pa.table(
        {
            "writer": pa.array([row.writer for row in rows], pa.string()).dictionary_encode(),
            "number": pa.array([row.number for row in rows], pa.int64()),
            "line": pa.array([row.line for row in rows], pa.string()),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def unpack(content: bytes, place: str) -> Iterator[Line]:
    """The lines of a day file.

    Raises:
        HistoryError: it is not a day file; the message names `place`.
    """
    try:
        table = pq.read_table(io.BytesIO(content), columns=["writer", "number", "line"])
        columns = [table.column(name).to_pylist() for name in ("writer", "number", "line")]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise HistoryError(f"{place} is not a day file: {str(error).splitlines()[0]}") from error
    return (Line(*row) for row in zip(*columns, strict=True))


def batches_in(content: bytes, place: str) -> set[tuple[str, int]]:
    """Which batches a day file holds, by writer and number."""
    try:
        table = pq.read_table(io.BytesIO(content), columns=["writer", "number"])
        pairs = table.group_by(["writer", "number"]).aggregate([])
        writers = pc.cast(pairs.column("writer"), pa.string()).to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise HistoryError(f"{place} is not a day file: {str(error).splitlines()[0]}") from error
    return set(zip(writers, pairs.column("number").to_pylist(), strict=True))
