"""The verification pass: staged files are read once, and every row goes into the certificate and its file's facts.

Strings cannot be aggregated in Spark's fast buffers, and sets of values not at all, so they are left to a second,
narrow pass: sets for columns whose files all showed few values, bounds for the other strings. Few is told by the first
pass: a quarter of the values, by their hashes, mark 64 bits, of which 256 values leave some two dozen unmarked and
thousands leave none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf

from oreo_lakehouse.layouts.blocks import ColumnStats, Distinct, Ints
from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.predicates.values import Array, Kind, encode
from oreo_lakehouse.tables.certificate import aggregates
from oreo_lakehouse.tables.contract import RowCertificate
from oreo_lakehouse.tables.filefacts import EQUAL, GREATER, LESS, FileFacts, Verified, unknown_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FEW = 256
"""Values of a column in one file up to which their set is kept, as in the estimates from a sample."""
LONGEST = 1000
"""Characters of a string up to which facts are kept of its column."""
MOST_COLUMNS = 32
"""How many columns get facts when nobody says which."""
_MARKS = 55
"""Marked bits of 64 up to which a file may hold few values; 256 of them mark 40, 1,000 of them 63."""
_FILE = "__oreo_file"
_VARIABLE = (Kind.STRING, Kind.BINARY)
_UNCOUNTED = (Kind.FLOAT, Kind.BOOLEAN, Kind.BINARY)
"""Kinds without sets: Spark's sets hold NaN several times; two booleans are their own bounds; nobody filters blobs."""
SETTINGS = {"spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000"}
"""Files that one task may tell apart before Spark would sort whole rows by their file."""


@dataclass(frozen=True)
class FactColumn:
    """A column that gets facts: its logical name, its name inside data files, its kind."""

    name: str
    key: str
    kind: Kind


def chosen(columns: Sequence[FactColumn], wanted: Collection[str] | None, always: Collection[str]) -> list[FactColumn]:
    """The columns that get facts: those wanted, or the first ones, and those that are always needed."""
    able = [column for column in columns if column.kind is not Kind.OTHER]
    if wanted is None:
        return able[:MOST_COLUMNS] + [column for column in able[MOST_COLUMNS:] if column.name in always]
    return [column for column in able if column.name in wanted or column.name in always]


def verified(
    rows: DataFrame,
    file: Column,
    name_of: Callable[[str], str],
    columns: Sequence[FactColumn],
    pairs: Collection[tuple[str, str]],
    bid_column: str,
) -> Verified:
    """Certificate and facts of the rows of some files.

    Args:
        rows: the rows.
        file: gives each row its file, in the engine's words.
        name_of: turns these words into the file's name.
        columns: those that get facts, and those that `pairs` speak of.
        pairs: logical names of columns to compare; those of different kinds are left out.
        bid_column: the column that a rewrite may change, or "".
    """
    marked = rows.withColumn(_FILE, file)
    kinds = {column.name: column for column in columns}
    pairs = sorted((a, b) for a, b in pairs if a in kinds and b in kinds and kinds[a].kind is kinds[b].kind)
    sums = [
        *aggregates(rows, [bid_column]),
        *(part for number, column in enumerate(columns) for part in _first(number, column)),
        *(_shown(a, b).alias(f"pair{number}") for number, (a, b) in enumerate(pairs)),
    ]
    found = marked.groupBy(_FILE).agg(*sums).toArrow().sort_by(_FILE)
    counts = found["rows"].to_numpy().astype(np.int64)
    stats = {column.name: _bounds(found, number, column, counts) for number, column in enumerate(columns)}
    uncounted = {column.name for column in columns if column.kind in _UNCOUNTED} | {bid_column}  # whose bounds say all
    few = [c for number, c in enumerate(columns) if c.name not in uncounted and _has_few(found, number)]
    stats |= _second(marked, found, few, [c for c in columns if c.kind in _VARIABLE and c not in few], stats)
    bids = np.full(len(counts), -1, np.int64)
    if bid_column in stats:
        of = stats[bid_column]
        bids = np.where(of.lower_known & (of.nulls == 0) & (of.lower == of.upper), of.lower, -1)
    facts = FileFacts(
        names=tuple(name_of(words) for words in found[_FILE].to_pylist()),
        rows=counts,
        bids=bids,
        columns={column.key: stats[column.name] for column in columns},
        comparisons={
            (kinds[a].key, kinds[b].key): found[f"pair{number}"].to_numpy().astype(np.int64)
            for number, (a, b) in enumerate(pairs)
        },
    )
    checksum = sum(int(value) for value in found["checksum"].to_pylist() if value is not None)
    return Verified(RowCertificate(int(counts.sum()), str(checksum)), facts)


def hashed() -> Column:
    """An aggregate that is always empty, and makes Spark aggregate strings beside it by hashing instead of sorting.

    Strings do not fit the buffers of Spark's plain hash aggregate; those of the one for sets hold anything.
    """
    return sf.collect_set(sf.lit(None).cast("int")).alias("hashed")


def _first(at: int, column: FactColumn) -> list[Column]:
    value = sf.col(quoted(column.name))
    parts = [sf.count(value).alias(f"count{at}")]
    if column.kind not in _VARIABLE:
        parts += [sf.min(value).alias(f"low{at}"), sf.max(value).alias(f"high{at}")]
    if column.kind not in _UNCOUNTED:
        number = sf.hash(value)
        bit = sf.call_function("shiftleft", sf.lit(1).cast("long"), sf.shiftright(number, 2))  # by it modulo 64
        parts.append(sf.bit_or(sf.when(number.bitwiseAND(sf.lit(3)) == 0, bit)).alias(f"marks{at}"))
    return parts


def _shown(left: str, right: str) -> Column:
    a, b = sf.col(quoted(left)), sf.col(quoted(right))
    return sf.bit_or(sf.when(a < b, sf.lit(LESS)).when(a == b, sf.lit(EQUAL)).when(a > b, sf.lit(GREATER)).otherwise(0))


def _bounds(found: pa.Table, number: int, column: FactColumn, rows: Array) -> ColumnStats:
    nulls = rows - found[f"count{number}"].to_numpy().astype(np.int64)
    if column.kind in _VARIABLE:
        return replace(unknown_column(column.kind, len(rows)), nulls=nulls)
    (low, missing), (high, _) = (encode(found[f"{side}{number}"]) for side in ("low", "high"))
    return ColumnStats(column.kind, low, high, ~missing, ~missing, nulls)


def _has_few(found: pa.Table, number: int) -> bool:
    marks, _ = encode(found[f"marks{number}"])  # NULL, no mark, becomes 0
    return bool(np.all(np.bitwise_count(marks.astype(np.uint64)) <= _MARKS))


def _second(
    marked: DataFrame, first: pa.Table, few: list[FactColumn], wide: list[FactColumn], stats: dict[str, ColumnStats]
) -> dict[str, ColumnStats]:
    if not few and not wide:
        return {}
    sums = [sf.count(sf.lit(1)).alias("rows"), hashed()]
    for number, column in enumerate(few):
        sums.append(sf.collect_set(sf.col(quoted(column.name))).alias(f"set{number}"))
    for number, column in enumerate(wide):
        value = sf.col(quoted(column.name))
        sums += [sf.min(value).alias(f"low{number}"), sf.max(value).alias(f"high{number}")]
    found = marked.groupBy(_FILE).agg(*sums).toArrow().sort_by(_FILE)
    if not (found[_FILE].equals(first[_FILE]) and found["rows"].equals(first["rows"])):
        return {}  # read differently twice: then only the first pass counts, which the certificate vouches for
    better: dict[str, ColumnStats] = {}
    for number, column in enumerate(few):
        lists = found[f"set{number}"].combine_chunks()
        values = _readable(lists.flatten())
        if values is not None:
            better[column.name] = _with_set(stats[column.name], values, np.diff(lists.offsets.to_numpy()))
    for number, column in enumerate(wide):
        low, high = _readable(found[f"low{number}"]), _readable(found[f"high{number}"])
        if low is not None and high is not None:
            known = ~found[f"low{number}"].is_null().to_numpy()
            better[column.name] = replace(
                stats[column.name], lower=low, upper=high, lower_known=known, upper_known=known
            )
    return better


def _readable(values: pa.ChunkedArray | pa.Array) -> Array | None:
    """Values in their array form; None if one is too long to be worth keeping, or is a string that is no text."""
    try:
        found, _ = encode(values)
    except (UnicodeDecodeError, pa.ArrowInvalid):
        return None
    if found.dtype == object and any(isinstance(v, str | bytes) and len(v) > LONGEST for v in found):
        return None
    return found


def _with_set(stats: ColumnStats, flat: Array, lengths: Ints) -> ColumnStats:
    """Complete sets where they are small, from all files' values one after the other; they bound strings too."""
    values, codes = np.unique(flat, return_inverse=True)
    known = lengths <= FEW
    present = np.zeros((len(lengths), len(values)), np.bool_)
    present[np.repeat(np.arange(len(lengths)), lengths), codes] = True
    if stats.kind in _VARIABLE and len(values):
        some = lengths > 0
        low, high = stats.lower.copy(), stats.upper.copy()
        low[some] = values[present.argmax(axis=1)[some]]
        high[some] = values[len(values) - 1 - present[:, ::-1].argmax(axis=1)[some]]
        stats = replace(stats, lower=low, upper=high, lower_known=some, upper_known=some)
    if not known.any():
        return stats
    kept = present[known].any(axis=0)
    present[~known] = False
    return replace(stats, distinct=Distinct(values[kept], present[:, kept], known))
