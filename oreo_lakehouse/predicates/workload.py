"""The vector form: a batch of stored predicates compiled once, so that whole arrays of queries are judged at a time.

Queries come from a few templates and differ in their literals. A workload groups them by **shape** (the tree without
its literals) and keeps, per place of a literal in the shape, one array over the group's queries. The literals
themselves are replaced by their positions (**codes**) in the sorted list of all literals of that column: a bound of a
block is located once in that list, and every comparison of a query with a block is one of small integers, whatever the
kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.predicates.shape import Place, Shape, places, shape_of
from oreo_lakehouse.predicates.tree import Predicate
from oreo_lakehouse.predicates.values import Array, Kind

Codes: TypeAlias = npt.NDArray[np.int32]
Ints: TypeAlias = npt.NDArray[np.int64]
Weights: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """All queries of one shape: their positions in the workload, and a slot of codes for each literal in turn."""

    shape: Shape
    queries: Ints
    slots: tuple[Codes, ...]

    def take(self, rows: Any, queries: Ints | None = None) -> Group:
        """Some of the group's queries, by position in the group."""
        return Group(self.shape, self.queries[rows] if queries is None else queries, tuple(s[rows] for s in self.slots))


class Workload:
    """Queries in order of arrival, in vector form.

    >>> from oreo_lakehouse.predicates.tree import Compare, IsNull, Op
    >>> queries = [Compare("a", Op.LT, Kind.INTEGER, 7), Compare("a", Op.LT, Kind.INTEGER, 3), IsNull("b")]
    >>> workload = Workload.of(queries)
    >>> len(workload), len(workload.groups), workload.literals["a", Kind.INTEGER]
    (3, 2, array([3, 7]))
    >>> len(workload.take([0, 0, 2]))
    3
    """

    def __init__(
        self, size: int, groups: Sequence[Group], literals: Mapping[Place, Array], weights: Weights | None = None
    ) -> None:
        self.groups = tuple(groups)
        self.literals = literals
        self.weights = weights
        """What a scan of everything by each query weighs, in [0, 1]; None: 1 for every one."""
        self._group = np.zeros(size, np.int32)
        self._row = np.zeros(size, np.int64)
        for number, group in enumerate(self.groups):
            self._group[group.queries] = number
            self._row[group.queries] = np.arange(len(group.queries))

    def __len__(self) -> int:
        return len(self._group)

    @classmethod
    def of(cls, predicates: Iterable[Predicate], weights: Weights | None = None) -> Workload:
        """Compile stored predicates; `weights` has one entry each."""
        found: dict[Shape, tuple[list[int], list[list[Any]]]] = {}
        size = 0
        for predicate in predicates:
            values: list[Any] = []
            queries, rows = found.setdefault(shape_of(predicate, values), ([], []))
            queries.append(size)
            rows.append(values)
            size += 1
        columns = {
            shape: [_array(slot, place[1]) for slot, place in zip(zip(*rows, strict=True), places(shape), strict=True)]
            for shape, (_, rows) in found.items()
        }
        literals, codes = _number(columns)
        groups = [Group(s, np.array(queries, np.int64), codes[s]) for s, (queries, _) in found.items()]
        return cls(size, groups, literals, weights)

    @classmethod
    def of_slots(cls, columns: Mapping[Shape, Sequence[Array]]) -> Workload:
        """Queries given by shape and arrays of literals, shape after shape: for queries that were made, not seen."""
        literals, codes = _number(columns)
        groups: list[Group] = []
        size = 0
        for shape, slots in columns.items():
            count = len(slots[0]) if slots else 0
            groups.append(Group(shape, np.arange(size, size + count), codes[shape]))
            size += count
        return cls(size, groups, literals)

    def values(self, group: Group) -> list[Array]:
        """The literals of a group's slots."""
        return [self.literals[p][slot] for p, slot in zip(places(group.shape), group.slots, strict=True)]

    def group_of(self, query: int) -> Group:
        """The group that a query belongs to."""
        return self.groups[self._group[query]]

    def take(self, queries: Any) -> Workload:
        """The queries at these positions, in this order, sharing the literals."""
        wanted = np.arange(len(self))[queries]
        numbers = self._group[wanted]
        groups: list[Group] = []
        for number in np.unique(numbers):
            at = np.flatnonzero(numbers == number)
            groups.append(self.groups[number].take(self._row[wanted[at]], at))
        return Workload(len(wanted), groups, self.literals, None if self.weights is None else self.weights[wanted])

    def weighted(self, weights: Weights | None) -> Workload:
        """The same queries with these weights."""
        return Workload(len(self), self.groups, self.literals, weights)

    def weight(self, queries: Any = slice(None)) -> float:
        """The mean weight of the queries at these positions; 1 where nothing is weighed."""
        if self.weights is None:
            return 1.0
        found = self.weights[queries]
        return float(found.mean()) if len(found) else 1.0

    @classmethod
    def concat(cls, parts: Sequence[Workload]) -> Workload:
        """One after the other. Free of copying literals if all are takes of one workload."""
        literals = parts[0].literals if parts else {}
        if any(part.literals is not literals for part in parts):
            literals = {
                place: _merged([p.literals[place] for p in parts if place in p.literals])
                for place in sorted({place for part in parts for place in part.literals})
            }
        groups: dict[Shape, list[Group]] = {}
        start = 0
        for part in parts:
            for group in part.groups:
                slots = group.slots
                if part.literals is not literals:
                    slots = tuple(
                        np.searchsorted(literals[place], part.literals[place]).astype(np.int32)[slot]
                        for place, slot in zip(places(group.shape), slots, strict=True)
                    )
                groups.setdefault(group.shape, []).append(Group(group.shape, group.queries + start, slots))
            start += len(part)
        joined = [
            Group(
                shape,
                np.concatenate([g.queries for g in same]),
                tuple(np.concatenate(slots) for slots in zip(*(g.slots for g in same), strict=True)),
            )
            for shape, same in groups.items()
        ]
        weights = None
        if any(part.weights is not None for part in parts):
            weights = np.concatenate([np.ones(len(p)) if p.weights is None else p.weights for p in parts])
        return cls(start, joined, literals, weights)


def _merged(arrays: Sequence[Array]) -> Array:
    return np.unique(np.concatenate(arrays)) if len(arrays) > 1 else arrays[0]


def _number(columns: Mapping[Shape, Sequence[Array]]) -> tuple[dict[Place, Array], dict[Shape, tuple[Codes, ...]]]:
    """Sort the literals of each place; replace each literal by its position."""
    owners: dict[Place, list[tuple[Shape, int]]] = {}
    for shape in columns:
        for number, place in enumerate(places(shape)):
            owners.setdefault(place, []).append((shape, number))
    literals: dict[Place, Array] = {}
    codes: dict[Shape, list[Codes]] = {shape: [np.zeros(0, np.int32)] * len(slots) for shape, slots in columns.items()}
    for place, found in owners.items():
        arrays = [columns[shape][number] for shape, number in found]
        literals[place], inverse = np.unique(np.concatenate([a.ravel() for a in arrays]), return_inverse=True)
        parts = np.split(inverse.astype(np.int32), np.cumsum([array.size for array in arrays])[:-1])
        for (shape, number), array, part in zip(found, arrays, parts, strict=True):
            codes[shape][number] = part.reshape(array.shape)
    return literals, {shape: tuple(slots) for shape, slots in codes.items()}


def _array(values: tuple[Any, ...], kind: Kind) -> Array:
    """Literals as (queries,), lists of literals as (queries x literals)."""
    out = np.empty((len(values), len(values[0])) if isinstance(values[0], tuple) else len(values), kind.dtype)
    out[:] = values
    return out
