"""Block metadata that outlives its files: what the table was like before each layout, and what a look has shown.

The ledger compares what queries cost with what they would have cost under the layout before, and under none of ours;
both are gone from the table by then, so their metadata is kept here, as Parquet, under the run that replaced them. The
exact metadata of a layout that was looked at is kept under the layout's id, and takes the place of the sample's guess.
"""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from oreo_lakehouse.layouts.blocks import Blocks, ColumnStats
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.store import parsed

if TYPE_CHECKING:
    from oreo_lakehouse.store import Store

FORMAT_VERSION = 1
_TYPES = {Kind.FLOAT: pa.float64(), Kind.DECIMAL: pa.string(), Kind.STRING: pa.string(), Kind.BINARY: pa.binary()}
"""How bounds are written; the other kinds are whole numbers."""


class KeptBlocks:
    """The kept block metadata of one table."""

    def __init__(self, store: Store, table_uuid: str) -> None:
        self._store = store
        self._folder = f"{table_uuid}/blocks"

    def keep(self, name: str, blocks: Blocks) -> None:
        """Keep blocks under a name; a name that is taken keeps what it has."""
        path = f"{self._folder}/{name}.parquet"
        if not self._store.create(path, _written(blocks)) and self.get(name) is None:  # damaged: replace it
            self._store.delete(path)
            self._store.create(path, _written(blocks))

    def get(self, name: str) -> Blocks | None:
        """What was kept under a name; None if nothing was, or it cannot be read."""
        content = self._store.read(f"{self._folder}/{name}.parquet")
        return None if content is None else _read(content)

    def names(self) -> list[str]:
        return [entry.name.removesuffix(".parquet") for entry in self._store.entries(self._folder)]

    def drop(self, name: str) -> None:
        self._store.delete(f"{self._folder}/{name}.parquet")


def _written(blocks: Blocks) -> bytes:
    known = {name: stats for name, stats in blocks.columns.items() if stats.kind is not Kind.OTHER}
    columns: dict[str, Any] = {"rows": blocks.rows}
    if len(blocks.sizes) == len(blocks):
        columns["sizes"] = blocks.sizes
    for number, stats in enumerate(known.values()):
        kind = _TYPES.get(stats.kind, pa.int64())
        for part, values, valid in (
            ("low", stats.lower, stats.lower_known),
            ("high", stats.upper, stats.upper_known),
        ):
            texts = [str(value) if ok else None for value, ok in zip(values, valid, strict=True)]
            columns[f"{part}{number}"] = (
                pa.array(texts, kind) if stats.kind is Kind.DECIMAL else pa.array(values, kind, mask=~valid)
            )
        columns[f"nulls{number}"] = stats.nulls
    shape = {"version": FORMAT_VERSION, "columns": [[name, stats.kind.value] for name, stats in known.items()]}
    table = pa.table(columns).replace_schema_metadata({"oreo": json.dumps(shape)})
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


def _read(content: bytes) -> Blocks | None:
    try:
        table = pq.read_table(io.BytesIO(content))
        shape = parsed((table.schema.metadata or {})[b"oreo"])
        if shape["version"] != FORMAT_VERSION:
            return None
        stats = {str(name): _column(Kind(kind), table, number) for number, (name, kind) in enumerate(shape["columns"])}
        sizes = table["sizes"].to_numpy() if "sizes" in table.column_names else np.zeros(0, np.int64)
        return Blocks(table["rows"].to_numpy(), stats, sizes)
    except (pa.ArrowException, KeyError, ValueError, TypeError, OSError):
        return None


def _column(kind: Kind, table: pa.Table, number: int) -> ColumnStats:
    def bounds(part: str) -> tuple[np.ndarray, np.ndarray]:
        column = table[f"{part}{number}"].combine_chunks()
        known = ~np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)
        out = np.zeros(len(column), kind.dtype)
        if kind.dtype == object:
            out[:] = [
                Decimal(value) if kind is Kind.DECIMAL and value is not None else value for value in column.to_pylist()
            ]
        else:
            out[:] = column.fill_null(0).to_numpy(zero_copy_only=False)
        return out, known

    (low, low_known), (high, high_known) = bounds("low"), bounds("high")
    return ColumnStats(kind, low, high, low_known, high_known, table[f"nulls{number}"].to_numpy())
