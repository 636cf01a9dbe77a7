"""Clustering health in the names that users know: depth, overlap, and what queries really skip.

Pure functions on block metadata. What a file does not tell (no statistics, a bound that was cut off) counts as "might
hold any value", as it does for every engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oreo_lakehouse.layouts.blocks import Blocks, Bools, ColumnStats, Ints
from oreo_lakehouse.layouts.columnview import all_null
from oreo_lakehouse.layouts.skipping import might_match
from oreo_lakehouse.predicates.values import Array, Kind
from oreo_lakehouse.predicates.workload import Workload

CELLS = 30_000_000
"""Queries x files that are judged at most: for more files fewer queries, evenly spread."""
SMALLEST, LARGEST = 0.75, 1.8
"""Times the target size: Iceberg's rewrite_data_files leaves files between them alone."""
WELL_SIZED = 0.8
"""Share of the bytes in such files from which a table counts as well sized."""
OVERLAPPING, NEIGHBOURS = 0.5, 10
"""A column counts as not clustered when a file overlaps that share of the others, or that many of them."""
_TEXT = 8
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ColumnHealth:
    """How well the files separate one column's values."""

    column: str
    avg_depth: float
    """In how many files a value lies, mean over rows: 1 is perfect, the number of files is the worst."""
    overlap_ratio: float
    """With what share of the other files a file's range overlaps, mean: 0 is perfect, 1 the worst."""


@dataclass(frozen=True)
class Skipping:
    """What queries skip on the files as they are."""

    queries: int
    judged: int
    """Of those queries, evenly spread, how many were judged."""
    rows: float
    """Mean share of the table's rows that a query skips, without being changed."""
    bytes: float
    files: float
    reads: Ints
    """For each file, how many of the judged queries cannot skip it."""


@dataclass(frozen=True)
class Health:
    """How a table's files stand towards its queries."""

    files: int
    columns: tuple[ColumnHealth, ...]
    """Of the columns that queries filter by, most asked first."""
    skipping: Skipping | None
    """None without queries."""
    well_sized: float
    """Share of the bytes in files of a good size."""
    overlapping: tuple[str, ...]
    """Columns by which well sized files overlap: compaction by size finds nothing to do, and helps no query."""

    def to_json(self) -> dict[str, Any]:
        depth = {one.column: one.avg_depth for one in self.columns}
        overlap = {one.column: one.overlap_ratio for one in self.columns}
        skip = self.skipping
        return {
            "avg_depth": depth,
            "overlap_ratio": overlap,
            "well_sized_share": self.well_sized,
            "well_sized_but_overlapping": list(self.overlapping),
            "skipping_effectiveness": None
            if skip is None
            else {
                "queries": skip.queries,
                "judged": skip.judged,
                "rows": skip.rows,
                "bytes": skip.bytes,
                "files": skip.files,
            },
        }


def health(
    blocks: Blocks,
    columns: Sequence[str],
    workload: Workload | None = None,
    target_bytes: int = 0,
    mode: Literal["native", "bid"] = "native",
) -> Health:
    """Look at a table's files.

    Args:
        blocks: the files' statistics.
        columns: those to judge; the ones that queries filter by say most.
        workload: recent queries, or None.
        target_bytes: the size that files should have; 0 means that no size is good.
        mode: what queries can skip by.
    """
    found = tuple(column_health(blocks, name) for name in columns)
    sized = well_sized_share(blocks, target_bytes)
    return Health(
        files=len(blocks),
        columns=found,
        skipping=None if workload is None or not len(workload) else skipping(blocks, workload, mode),
        well_sized=sized,
        overlapping=tuple(one.column for one in found if sized >= WELL_SIZED and _spread(one, len(blocks))),
    )


def _spread(column: ColumnHealth, files: int) -> bool:
    return column.overlap_ratio >= min(OVERLAPPING, NEIGHBOURS / max(1, files - 1)) and files > 1


def skipping(blocks: Blocks, workload: Workload, mode: Literal["native", "bid"] = "native") -> Skipping:
    """What the queries skip of these files, and how often each file is read."""
    most = max(1, CELLS // max(1, len(blocks)))
    chosen = np.unique(np.linspace(0, len(workload) - 1, min(most, len(workload))).astype(np.int64))
    read = might_match(workload.take(chosen), blocks, mode)
    reads = read.sum(axis=0, dtype=np.int64)

    def skipped(weights: Ints) -> float:
        total = float(weights.sum()) * len(chosen)
        return 1 - float((weights * reads).sum()) / total if total else 0.0

    return Skipping(
        queries=len(workload),
        judged=len(chosen),
        rows=skipped(blocks.rows),
        bytes=skipped(blocks.sizes) if len(blocks.sizes) == len(blocks) else skipped(blocks.rows),
        files=skipped(np.ones(len(blocks), np.int64)),
        reads=reads,
    )


def heat(
    blocks: Blocks, workload: Workload, column: str | None, rows: int, columns: int, mode: Literal["native", "bid"]
) -> _Floats:
    """Which files are read when: (parts of the queries, oldest first) x (parts of the files), shares in [0, 1].

    Files are in the order of `column`'s lower bounds, so that files read together are neighbours.
    """
    most = max(1, CELLS // max(1, len(blocks)))
    chosen = np.unique(np.linspace(0, len(workload) - 1, min(most, len(workload))).astype(np.int64))
    read = might_match(workload.take(chosen), blocks, mode)
    stats = blocks.columns.get(column or "")
    if stats is not None and stats.lower_known.any():
        place = np.full(len(blocks), np.iinfo(np.int64).max)
        place[stats.lower_known] = _ranks(stats.lower[stats.lower_known], stats.kind)
        read = read[:, np.argsort(place, kind="stable")]
    down = np.array_split(np.arange(len(chosen)), min(rows, len(chosen)))
    across = np.array_split(np.arange(len(blocks)), min(columns, len(blocks)))
    by_file = np.stack([read[part].mean(axis=0) for part in down])
    return np.stack([by_file[:, part].mean(axis=1) for part in across], axis=1)


def well_sized_share(blocks: Blocks, target_bytes: int) -> float:
    """Share of the bytes in files that compaction by size would leave alone."""
    if not target_bytes or not blocks.total_bytes:
        return 0.0
    good = (blocks.sizes >= SMALLEST * target_bytes) & (blocks.sizes <= LARGEST * target_bytes)
    return float(blocks.sizes[good].sum() / blocks.total_bytes)


def column_health(blocks: Blocks, column: str) -> ColumnHealth:
    """Depth and overlap of one column."""
    stats, n = blocks.columns.get(column), len(blocks)
    if stats is None or stats.kind is Kind.OTHER:
        return ColumnHealth(column, float(n), 1.0 if n > 1 else 0.0)
    holds = ~all_null(stats, blocks.rows)  # a file of NULLs alone holds no value
    low, high = _positions(stats, holds)
    return ColumnHealth(column, _depth(stats, blocks.rows, holds), _overlap(low, high))


def _positions(stats: ColumnStats, holds: Bools) -> tuple[Ints, Ints]:
    """Both bounds of the files that hold values, as ranks among all bounds; an unknown one is beyond all others."""
    lower_known, upper_known = stats.lower_known[holds], stats.upper_known[holds]
    lower, upper = stats.lower[holds], stats.upper[holds]
    both = np.concatenate([lower[lower_known], upper[upper_known]])
    ranks = _ranks(both, stats.kind)
    low = np.full(len(lower), -1, np.int64)
    high = np.full(len(upper), len(both) + 2, np.int64)
    low[lower_known], high[upper_known] = ranks[: lower_known.sum()], ranks[lower_known.sum() :]
    return low, np.maximum(low, high)


def _ranks(values: Array, kind: Kind) -> Ints:
    if kind in (Kind.STRING, Kind.BINARY):  # Arrow orders texts several times faster than Python compares them
        texts = pa.array(values.tolist(), pa.large_string() if kind is Kind.STRING else pa.large_binary())
        compute: Any = pc  # its functions are made at run time
        return compute.rank(texts, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    return np.unique(values, return_inverse=True)[1].astype(np.int64) if len(values) else np.zeros(0, np.int64)


def _overlap(low: Ints, high: Ints) -> float:
    """Mean share of the other files that a file overlaps in more than a common end."""
    n = len(low)
    if n < 2:
        return 0.0
    point = low == high
    lows, highs, points = np.sort(low), np.sort(high), np.sort(low[point])
    begun = np.searchsorted(lows, high, "left")  # begin below my end
    over = np.searchsorted(highs, low, "right")  # end at or below my beginning
    # a file of one value ends where it begins, and so do its equals, which never began below it
    equals = np.searchsorted(points, low, "right") - np.searchsorted(points, low, "left")
    overlaps = begun - over + np.where(point, equals, -1)
    return float(overlaps.mean() / (n - 1))


def _depth(stats: ColumnStats, rows: Ints, holds: Bools) -> float:
    """Files that hold the value in the middle of a file's range, mean over rows.

    The ends of ranges would say too little: of files that all span the whole domain, few contain the smallest minimum.
    """
    n = int(holds.sum())
    known = (stats.lower_known & stats.upper_known)[holds]
    if not n or not known.any():
        return float(n)
    places = _as_numbers(stats, holds)
    lower, upper = places[:n], places[n:]
    middle = lower[known] / 2 + upper[known] / 2
    middle = np.where(np.isfinite(middle), middle, lower[known])
    lows = np.sort(np.where(stats.lower_known[holds], lower, -np.inf))
    highs = np.sort(np.where(stats.upper_known[holds], upper, np.inf))
    depth = np.searchsorted(lows, middle, "right") - np.searchsorted(highs, middle, "left")
    weights = rows[holds][known].astype(np.float64)
    return float(np.average(depth, weights=weights)) if weights.sum() > 0 else float(depth.mean())


def _as_numbers(stats: ColumnStats, holds: Bools) -> _Floats:
    """All lower, then all upper bounds as numbers in the same order; texts by their first characters that differ."""
    values: Array = np.concatenate([stats.lower[holds], stats.upper[holds]])
    if stats.kind in (Kind.STRING, Kind.BINARY):
        known = np.concatenate([stats.lower_known[holds], stats.upper_known[holds]])
        raw = [v.encode() if isinstance(v, str) else bytes(v or b"") for v in values.tolist()]
        told = [v for v, is_known in zip(raw, known, strict=True) if is_known]
        least, most = min(told, default=b""), max(told, default=b"")
        same = next(
            (i for i, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), min(len(least), len(most))
        )
        cut = b"".join([v[same : same + _TEXT].ljust(_TEXT, b"\0") for v in raw])
        return np.frombuffer(cut, dtype=">u8").astype(np.float64)
    if stats.kind is Kind.DECIMAL:
        return np.array([float(v or 0) for v in values.tolist()])
    numbers = values.astype(np.float64)
    return np.where(np.isnan(numbers), np.inf, numbers)


def best_known(states: Mapping[str, float], weight: float) -> tuple[str, float] | None:
    """The layout with the lowest sum of costs, and the share that it would skip of what full scans would have cost."""
    if not states or weight <= 0:
        return None
    layout = min(states, key=lambda state: states[state])
    return layout, 1 - states[layout] / weight
