"""What a scan by each query weighs: nothing but rows, or the bytes of the columns that it reads.

In rows every full scan is the same: what layouts save is told as a share of the table. In bytes (`decide.weigh`) a
query weighs the share of a row's bytes that its columns take, so that a scan of two narrow columns of thirty is as
cheap in the account as it is in life. Every cost of the query is multiplied by it, in deciding, in the ledger and in
receipts, and alpha is counted in the scans that weigh 1: of all rows in rows, of all columns in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oreo_lakehouse.history.querybatch import QueryBatch

if TYPE_CHECKING:
    from oreo_lakehouse.history.record import QueryRecord
    from oreo_lakehouse.predicates.workload import Weights

ROWS, BYTES = "rows", "bytes"
SCANS = {ROWS: "full scans of the table", BYTES: "scans of all columns of the table"}
"""What costs are counted in, for people."""


def weights_of(queries: Sequence[QueryRecord], sizes: Mapping[str, int] | None) -> Weights | None:
    """A weight in [0, 1] for every query; None if rows alone count.

    A query of which it is not known what it reads, or that reads a column of unknown size, weighs 1: too much is told
    of it rather than too little.

    Args:
        queries: what ran.
        sizes: bytes by column; None: rows count. None of them known is the same as every query reading everything.
    """
    if sizes is None:
        return None
    known: dict[tuple[str, ...], float] = {}
    out = np.ones(len(queries))
    for number, columns in enumerate(_columns(queries)):
        read = tuple(columns or ())
        if read not in known:
            known[read] = share_of(read, sizes)
        out[number] = known[read]
    return out


def share_of(columns: Iterable[str], sizes: Mapping[str, int]) -> float:
    """The share of a full scan's bytes that these columns take; 1 where it is not known.

    >>> share_of(["a"], {"a": 10, "b": 90}), share_of(["a", "new"], {"a": 10, "b": 90}), share_of([], {"a": 10})
    (0.1, 1.0, 1.0)
    """
    read, total = set(columns), sum(sizes.values())
    if not read or not read <= sizes.keys() or total <= 0:
        return 1.0
    return sum(sizes[name] for name in read) / total


def weigh_notice(weigh: str, before: str) -> str:
    """What must be said when costs are counted otherwise than at the last decision."""
    return (
        f"decide.weigh is {weigh!r} now and was {before!r} at the last decision: costs are counted in other scans, so "
        "decisions and the account begin anew. The table stays in the layout that it has"
    )


def _columns(queries: Sequence[QueryRecord]) -> Iterable[Any]:
    if isinstance(queries, QueryBatch):
        return queries.table.column("columns").to_pylist()
    return [query.columns for query in queries]
