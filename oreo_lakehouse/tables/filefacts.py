"""File facts: exact metadata of files that we wrote, from every row in them.

Files never change, so what is true of one when it is written stays true whatever happens to the table: a deletion only
takes rows away. Facts go by the name that a column has inside data files (Delta's physical name, Iceberg's field id),
because a logical name may be renamed, dropped and given to another column.

They hold what engines do not keep: bounds that are not cut off, complete sets of values, and how two columns compare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.layouts.blocks import Blocks, Bools, ColumnStats, Distinct, Ints
from oreo_lakehouse.predicates.tree import CompareColumns, Op
from oreo_lakehouse.predicates.values import Array, Kind
from oreo_lakehouse.tables.contract import RowCertificate

LESS, EQUAL, GREATER = 1, 2, 4
"""Bits of what some row of a file shows for a pair of columns; a row with a NULL among them shows nothing."""
_SHOWN = {
    Op.LT: LESS,
    Op.LE: LESS | EQUAL,
    Op.EQ: EQUAL,
    Op.GE: EQUAL | GREATER,
    Op.GT: GREATER,
    Op.NE: LESS | GREATER,
}


@dataclass(frozen=True)
class FileFacts:
    """n files; every array has n entries, in the order of `names`."""

    names: tuple[str, ...]
    """As `Blocks.names` spells them."""
    rows: Ints
    bids: Ints
    """The BID that all rows of the file carry; -1 where there is none."""
    columns: Mapping[str, ColumnStats]
    """By physical name or field id."""
    comparisons: Mapping[tuple[str, str], Ints] = field(default_factory=dict[tuple[str, str], Ints])
    """For pairs of columns, the bits that their rows show."""

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Verified:
    """What reading staged files back showed."""

    certificate: RowCertificate
    facts: FileFacts


def joined(parts: list[FileFacts]) -> FileFacts:
    """The facts of several runs as those of one; of a name that comes twice, the first counts."""
    if len(parts) == 1:
        return parts[0]
    seen: set[str] = set()
    takes: list[tuple[FileFacts, Ints]] = []
    for part in parts:
        fresh = np.array([at for at, name in enumerate(part.names) if name not in seen], np.int64)
        seen.update(part.names)
        takes.append((part, fresh))
    keys = sorted({key for part, _ in takes for key in part.columns})
    pairs = sorted({pair for part, _ in takes for pair in part.comparisons})
    return FileFacts(
        names=tuple(part.names[at] for part, fresh in takes for at in fresh),
        rows=_concat([part.rows[fresh] for part, fresh in takes]),
        bids=_concat([part.bids[fresh] for part, fresh in takes]),
        columns={
            key: stats
            for key in keys
            if (stats := _column([(part.columns.get(key), fresh) for part, fresh in takes])) is not None
        },
        comparisons={
            pair: _concat(
                [
                    part.comparisons[pair][fresh] if pair in part.comparisons else np.full(len(fresh), 7, np.int64)
                    for part, fresh in takes
                ]
            )
            for pair in pairs
        },
    )


def enriched(blocks: Blocks, facts: FileFacts, keys: Mapping[str, str]) -> Blocks:
    """Blocks with what facts know more: distinct sets, comparisons between columns, and bounds that are not cut off.

    Args:
        blocks: a table's files, with their names.
        facts: of some of these files.
        keys: logical column name -> physical name or field id.
    """
    place = {name: at for at, name in enumerate(facts.names)}
    at = np.array([place.get(name, -1) for name in blocks.names], np.int64)
    known = at >= 0
    if not known.any():
        return blocks
    columns = dict(blocks.columns)
    for name, key in keys.items():
        found = facts.columns.get(key)
        if found is not None:
            base = columns.get(name) or unknown_column(found.kind, len(blocks))
            if base.kind is found.kind:
                columns[name] = _better(base, _take(found, at), known)
    names = {key: name for name, key in keys.items()}
    comparisons = dict(blocks.comparisons)
    for (left, right), bits in facts.comparisons.items():
        if left in names and right in names:
            shown = np.where(known, bits[at], 7)
            for op, wanted in _SHOWN.items():
                found_some = (shown & wanted) != 0
                comparisons[CompareColumns(names[left], op, names[right])] = found_some
                comparisons[CompareColumns(names[right], op.mirrored, names[left])] = found_some
    return replace(blocks, columns=columns, comparisons=comparisons)


def unknown_column(kind: Kind, n: int) -> ColumnStats:
    """Statistics of a column of which nothing is known."""
    never = np.zeros(n, np.bool_)
    return ColumnStats(kind, _filler(kind, n), _filler(kind, n), never, never, np.full(n, -1, np.int64))


def _better(base: ColumnStats, found: ColumnStats, known: Bools) -> ColumnStats:
    """Facts where they are known. NULL counts stay the engine's, which knows what was deleted since, unless none."""
    lower = np.where(known & found.lower_known, found.lower, base.lower)
    upper = np.where(known & found.upper_known, found.upper, base.upper)
    nulls = np.where(known & (found.nulls == 0), 0, base.nulls)
    distinct = found.distinct
    if distinct is not None:
        distinct = replace(distinct, known=distinct.known & known)
    return replace(
        base,
        lower=lower,
        upper=upper,
        lower_known=base.lower_known | (known & found.lower_known),
        upper_known=base.upper_known | (known & found.upper_known),
        nulls=nulls,
        distinct=distinct,
    )


def _take(stats: ColumnStats, at: npt.NDArray[np.int64]) -> ColumnStats:
    distinct = stats.distinct
    return replace(
        stats,
        lower=stats.lower[at],
        upper=stats.upper[at],
        lower_known=stats.lower_known[at],
        upper_known=stats.upper_known[at],
        nulls=stats.nulls[at],
        distinct=Distinct(distinct.values, distinct.present[at], distinct.known[at]) if distinct else None,
    )


def _column(parts: list[tuple[ColumnStats | None, Ints]]) -> ColumnStats | None:
    """One column over several runs; None if its kind changed between them."""
    kinds = {stats.kind for stats, _ in parts if stats is not None}
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    taken = [_take(stats, at) if stats is not None else unknown_column(kind, len(at)) for stats, at in parts]
    return ColumnStats(
        kind,
        _concat([stats.lower for stats in taken]),
        _concat([stats.upper for stats in taken]),
        _concat([stats.lower_known for stats in taken]),
        _concat([stats.upper_known for stats in taken]),
        _concat([stats.nulls for stats in taken]),
        _distinct([(stats.distinct, len(stats.nulls)) for stats in taken]),
    )


def _distinct(parts: list[tuple[Distinct | None, int]]) -> Distinct | None:
    sets = [found for found, _ in parts if found is not None]
    if not sets:
        return None
    values = np.unique(_concat([found.values for found in sets]))
    present: list[Bools] = []
    for found, n in parts:
        wide = np.zeros((n, len(values)), np.bool_)
        if found is not None:
            wide[:, np.searchsorted(values, found.values)] = found.present
        present.append(wide)
    known = [found.known if found is not None else np.zeros(n, np.bool_) for found, n in parts]
    return Distinct(values, _concat(present), _concat(known))


def _concat(arrays: list[Array]) -> Array:
    return np.concatenate(arrays)


def _filler(kind: Kind, n: int) -> Array:
    return np.full(n, None, object) if kind.dtype == object else np.zeros(n, kind.dtype)
