"""A Delta table's live files by delta-rs, in the form that `fileblocks.py` describes; no JVM."""

from __future__ import annotations

import os
from collections.abc import Sequence
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable as RustTable

from oreo_lakehouse.layouts.blocks import Ints

_PROCESS = os.getpid()
_MOST_ROWS = 100_000_000
"""delta-rs tells row by row what deletion vectors took: a larger table is Spark's."""


def rust_listing(folder: str, version: int) -> pa.Table | None:
    """The live files by delta-rs, or None where it lacks something that the table has.

    Its threads do not survive a fork (schedulers fork their jobs); asked after one, it panics on the console.
    """
    if os.getpid() != _PROCESS:
        return None
    try:
        table = RustTable(folder, version=version)
        found = pa.table(table.get_add_actions(flatten=False))
        deleted = _deleted(table, found)
    except Exception:  # whatever delta-rs stumbles over, Spark can read
        return None
    except BaseException as panic:
        if type(panic).__name__ != "PanicException":
            raise
        return None
    names = {"size_bytes": "size", "num_records": "records", "null_count": "nulls"}
    columns = {names.get(name, name): found[name] for name in found.column_names}
    return None if deleted is None else pa.table(columns | {"deleted": pa.array(deleted)})


def _deleted(table: RustTable, files: pa.Table) -> Ints | None:
    """How many rows of each file a deletion vector took; None if that cannot be told for sure."""
    taken = np.zeros(len(files), np.int64)
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return taken
    places = {name: at for at, name in enumerate(_alike(files["path"].to_pylist()))}
    if len(places) < len(files) or sum(filter(None, files["num_records"].to_pylist())) > _MOST_ROWS:
        return None
    root = _alike([table.table_uri.rstrip("/") + "/"])[0]
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        kept = batch.column("selection_vector")
        before = np.concatenate([[0], np.cumsum(~kept.values.to_numpy(zero_copy_only=False))])
        gone = np.diff(before[kept.offsets.to_numpy()])
        for name, count in zip(_alike(batch.column("filepath").to_pylist()), gone, strict=True):
            place = places.get(name.removeprefix(root))
            if place is None:
                return None
            taken[place] = count
    return taken


def _alike(paths: Sequence[str]) -> list[str]:
    """Paths as both of delta-rs's tables write them: one of them escapes what the other does not."""
    return [unquote(unquote(path)) for path in paths]
