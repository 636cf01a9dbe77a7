"""Block metadata: what is known of n blocks of rows without opening them.

The same class describes a table's real files and the blocks that a candidate layout would make of a sample, so an
estimate and the truth are compared by the same code. What is not known is marked as such and always "might match".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.predicates.tree import CompareColumns
from oreo_lakehouse.predicates.values import Array, Kind, Value

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Distinct:
    """The complete sets of a column's non-NULL values in n blocks, for columns with few values.

    `present[b, v]` says whether block b holds `values[v]` (sorted, without repetition), where `known[b]`.
    """

    values: Array
    present: Bools
    known: Bools


@dataclass(frozen=True)
class ColumnStats:
    """Statistics of one column over n blocks; every array has n entries.

    `lower` and `upper` bound all non-NULL values inclusively where `lower_known` / `upper_known` say so (they need not
    be attained: truncated strings and cut timestamps only widen them). A block that may hold NaN has NaN as its upper
    bound. `nulls` counts NULLs; -1 where unknown, which includes every file whose row count was reduced by deletes.
    `distinct` is what the `bid` mode knows besides, never the engines.
    """

    kind: Kind
    lower: Array
    upper: Array
    lower_known: Bools
    upper_known: Bools
    nulls: Ints
    distinct: Distinct | None = None

    @classmethod
    def of(
        cls,
        kind: Kind,
        lower: Sequence[Value | None],
        upper: Sequence[Value | None],
        nulls: Sequence[int | None],
    ) -> ColumnStats:
        """From plain values, None where a bound or a count is not known.

        >>> ColumnStats.of(Kind.INTEGER, [1, None], [9, None], [0, None]).upper_known
        array([ True, False])
        """

        def bounds(values: Sequence[Value | None]) -> tuple[Array, Bools]:
            known = np.fromiter((v is not None for v in values), np.bool_, len(values))
            out = np.zeros(len(values), dtype=kind.dtype)
            if kind.dtype == object:
                out[:] = list(values)
            elif known.any():
                out[known] = np.array([v for v in values if v is not None], dtype=kind.dtype)
            return out, known

        (low, low_known), (high, high_known) = bounds(lower), bounds(upper)
        counts = np.fromiter((-1 if n is None else n for n in nulls), np.int64, len(nulls))
        return cls(kind, low, high, low_known, high_known, counts)

    def take(self, positions: Ints) -> ColumnStats:
        """The statistics of some of the blocks."""
        distinct = self.distinct
        if distinct is not None:
            distinct = Distinct(distinct.values, distinct.present[positions], distinct.known[positions])
        return ColumnStats(
            self.kind,
            self.lower[positions],
            self.upper[positions],
            self.lower_known[positions],
            self.upper_known[positions],
            self.nulls[positions],
            distinct,
        )


@dataclass(frozen=True)
class Blocks:
    """n blocks: how many rows and bytes each holds, and statistics of those columns that have any.

    `comparisons` says, for comparisons between two columns, whether some row of the block may satisfy them: only the
    `bid` mode knows. `names` are the files' paths as the table's own log or manifests spell them; blocks that a layout
    would make of a sample have none. `partitions` are the files' partitions as text, such as
    `region=EU/day=2026-03-01`; a table without partitions has none.
    """

    rows: Ints
    columns: Mapping[str, ColumnStats]
    sizes: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    comparisons: Mapping[CompareColumns, Bools] = field(default_factory=dict[CompareColumns, Bools])
    names: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()

    def take(self, positions: Ints) -> Blocks:
        """Some of the blocks.

        >>> Blocks(np.array([3, 4, 5]), {}, names=("a", "b", "c")).take(np.array([2, 0])).names
        ('c', 'a')
        """
        return Blocks(
            rows=self.rows[positions],
            columns={name: stats.take(positions) for name, stats in self.columns.items()},
            sizes=self.sizes[positions] if len(self.sizes) else self.sizes,
            comparisons={pair: found[positions] for pair, found in self.comparisons.items()},
            names=tuple(self.names[at] for at in positions) if self.names else (),
            partitions=tuple(self.partitions[at] for at in positions) if self.partitions else (),
        )

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total_rows(self) -> int:
        return int(self.rows.sum())

    @property
    def total_bytes(self) -> int:
        return int(self.sizes.sum())
