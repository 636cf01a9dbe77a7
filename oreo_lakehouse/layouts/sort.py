"""Sort: k blocks of equal size along the order of one or more columns, NULLs last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.layouts.layout import register_layout
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.tree import Branch, Tree, TreeLayout
from oreo_lakehouse.predicates.encoded import NULL, EncodedColumn
from oreo_lakehouse.predicates.tree import And, Compare, IsNull, Op, Or, Predicate


class SortLayout(TreeLayout):
    """Rows ordered by `columns` and cut into blocks; its tree is balanced."""

    kind: ClassVar[str] = "sort"
    title: ClassVar[str] = "sorted by"

    @property
    def order(self) -> tuple[str, ...]:
        return self.columns


register_layout(SortLayout.kind, SortLayout.from_json)


def sort_layout(sample: Sample, columns: Sequence[str], k: int) -> SortLayout:
    """At most k blocks along `columns`, each within one row of the others except where many rows are equal.

    >>> import pyarrow as pa
    >>> layout = sort_layout(Sample(pa.table({"a": [4, 1, None, 3]})), ["a"], 2)
    >>> layout.assign(pa.table({"a": [4, 1, None, 3]})).tolist(), layout.sql()
    ([1, 0, 1, 0], "CASE WHEN `a` < CAST('4' AS BIGINT) THEN 0 ELSE 1 END")
    """
    order = RowOrder(sample, columns)
    if not order.names or not len(sample):
        return SortLayout(order.names, None)
    wanted = np.arange(1, k) * len(sample) // max(k, 1)
    cuts = np.unique(nearest(order.starts, wanted))
    return SortLayout(order.names, _balanced([order.before(int(at)) for at in cuts if at > 0]))


class RowOrder:
    """Rows of a sample in the order of some columns, NULLs last in each.

    Args:
        sample: the rows.
        columns: those that cannot be compared are left out.
        at: which rows; by default all.
    """

    def __init__(self, sample: Sample, columns: Sequence[str], at: npt.NDArray[np.intp] | None = None) -> None:
        self._columns = [(name, column) for name in columns if (column := sample.rows.column(name)) is not None]
        self.names = tuple(name for name, _ in self._columns)
        ranks = [c.ranks if at is None else c.ranks[at] for _, c in self._columns]
        count = len(sample) if at is None else len(at)
        found = [np.where(r == NULL, len(c.values), r) for r, (_, c) in zip(ranks, self._columns, strict=True)]
        self._keys = np.stack(found) if found else np.zeros((1, count), np.int64)
        # One column is sorted several times faster without the rows' positions.
        self._rows = None if len(self._keys) == 1 else np.lexsort(self._keys[::-1])
        self._ordered = np.sort(self._keys) if self._rows is None else self._keys[:, self._rows]
        self.starts = np.flatnonzero(np.append(count > 0, (self._ordered[:, 1:] != self._ordered[:, :-1]).any(axis=0)))
        """Where in the order a row differs from the one before."""

    @property
    def most_equal(self) -> int:
        """How many rows no cut in this order can part."""
        return int(np.diff(np.append(self.starts, self._keys.shape[1])).max(initial=0))

    def before(self, start: int) -> Predicate:
        """What is TRUE of the rows before one of the `starts` after the first."""
        return _before(self._columns, self._ordered[:, start - 1], self._ordered[:, start])

    def are_before(self, start: int) -> npt.NDArray[np.bool_]:
        """For which rows that is TRUE."""
        if self._rows is None:
            return self._keys[0] < self._ordered[0, start]
        out = np.zeros(len(self._rows), np.bool_)
        out[self._rows[:start]] = True
        return out


def nearest(starts: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """For each wanted boundary, the nearest place where a new value starts."""
    right = np.minimum(np.searchsorted(starts, wanted), len(starts) - 1)
    left = np.maximum(right - 1, 0)
    return np.where(wanted - starts[left] < starts[right] - wanted, starts[left], starts[right])


def _before(columns: Sequence[tuple[str, EncodedColumn]], last: np.ndarray, first: np.ndarray) -> Predicate:
    """`row < first` in the order of the columns, by as few of them as tell `last` from `first`."""
    (name, column), rest = columns[0], columns[1:]
    below, equal = _less(name, column, int(first[0])), _equal(name, column, int(first[0]))
    if last[0] != first[0]:
        return below
    return Or((below, And((equal, _before(rest, last[1:], first[1:])))))


def _less(name: str, column: EncodedColumn, rank: int) -> Predicate:
    if rank == len(column.values):
        return IsNull(name, negated=True)
    return Compare(name, Op.LT, column.kind, column.value(rank))


def _equal(name: str, column: EncodedColumn, rank: int) -> Predicate:
    if rank == len(column.values):
        return IsNull(name)
    return Compare(name, Op.EQ, column.kind, column.value(rank))


def _balanced(cuts: Sequence[Predicate]) -> Tree:
    """Ascending boundaries as a tree of logarithmic depth."""
    if not cuts:
        return None
    middle = len(cuts) // 2
    return Branch(cuts[middle], _balanced(cuts[:middle]), _balanced(cuts[middle + 1 :]))
