"""Many records at once: a sequence of them that is made of columns, so that a million fit in little memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.querycolumns import SCHEMA, Rows, Templates, table_of_records
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.history.templates import Template
from oreo_lakehouse.predicates.shape import Shape
from oreo_lakehouse.predicates.tree import Predicate
from oreo_lakehouse.predicates.values import Array
from oreo_lakehouse.predicates.workload import Workload

_CHUNK = 10_000
"""Records that are made at a time while somebody walks through a batch."""


class QueryBatch(Sequence[QueryRecord]):
    """Records in order, each made when it is asked for.

    `workload` compiles what they ask without making a record or a predicate; `predicates` makes every predicate, which
    for a million of them takes seconds and several hundred megabytes.

    >>> from oreo_lakehouse.predicates.tree import TRUE
    >>> batch = QueryBatch.of([QueryRecord(f"q{n}", 0, "import", 5, "ok", "u", TRUE, Exactness.EXACT) for n in "ab"])
    >>> len(batch), batch[1].query_id, batch.predicates(), batch.times.tolist(), len(batch.workload())
    (2, 'qb', [Constant(value=True), Constant(value=True)], [5, 5], 2)
    """

    def __init__(self, table: pa.Table, templates: list[Template], codes: npt.NDArray[np.int32]) -> None:
        self.table = table
        """The records' fields, as `SCHEMA` has them, repeated texts as dictionaries, and `literals` as JSON."""
        self.templates = templates
        self.codes = codes
        """The number of each record's template."""

    @classmethod
    def of(cls, records: Sequence[QueryRecord]) -> QueryBatch:
        """A batch of records that are there already."""
        templates = Templates()
        return cls.joined([templates.rows(table_of_records(records), "a record")], templates)

    @classmethod
    def joined(cls, parts: list[Rows], templates: Templates) -> QueryBatch:
        """All parts, by time, the same record once. The list is emptied: a million records should be there once."""
        if not parts:
            return cls.of([])
        whole = Rows.joined(parts)
        parts.clear()
        table, codes = whole.table, whole.codes
        del whole
        same = _keys(table).dictionary_encode().indices.to_numpy()
        _, first = np.unique(same, return_index=True)
        if len(first) < len(table):
            first = np.sort(first)
            table, codes = table.take(first), codes[first]
        by = pc.SortOptions([(name, "ascending") for name in ("time_us", "query_id", "scan")])
        order = pc.call_function("sort_indices", [table], by).to_numpy()
        if (np.diff(order.astype(np.int64)) != 1).any():
            table, codes = table.take(order), codes[order]
        return cls(table, templates.all, codes)

    @property
    def times(self) -> npt.NDArray[np.int64]:
        """When each query started, UTC microseconds since 1970."""
        return self.table.column("time_us").to_numpy()

    def keys(self) -> list[str]:
        """What makes each record the same as another: `QueryRecord.key`."""
        return _keys(self.table).to_pylist()

    def predicates(self) -> list[Predicate]:
        """What each record asks."""
        made = [template.predicate for template in self.templates]
        literals = self.table.column("literals").to_pylist()
        return [made[code](text) for code, text in zip(self.codes.tolist(), literals, strict=True)]

    def workload(self) -> Workload:
        """What the records ask, in vector form and in their order: the same as `Workload.of(self.predicates())`."""
        columns: dict[Shape, list[Array]] = {}
        places: dict[Shape, list[npt.NDArray[np.int64]]] = {}
        plain: list[npt.NDArray[np.int64]] = []
        literals = self.table.column("literals").combine_chunks()
        for code in np.unique(self.codes):
            at = np.flatnonzero(self.codes == code)
            found = self.templates[code].slots(literals.take(pa.array(at)).to_pylist())
            if found is None or not found[1]:
                plain.append(at)
            else:
                shape, slots = found
                known = columns.get(shape)
                columns[shape] = slots if known is None else [np.concatenate(p) for p in zip(known, slots, strict=True)]
                places.setdefault(shape, []).append(at)
        order = [at for shape in columns for at in places[shape]]
        rest = np.concatenate([*plain, np.zeros(0, np.int64)])
        made = QueryBatch(self.table.take(rest), self.templates, self.codes[rest]).predicates()
        parts = [part for part in (Workload.of_slots(columns), Workload.of(made)) if len(part)]
        positions = np.concatenate([*order, rest])
        return Workload.concat(parts).take(np.argsort(positions)) if parts else Workload.of([])

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, index: int) -> QueryRecord: ...

    @overload
    def __getitem__(self, index: slice) -> QueryBatch: ...

    def __getitem__(self, index: int | slice) -> QueryRecord | QueryBatch:
        if isinstance(index, slice):
            chosen = np.arange(len(self))[index]
            return self.take(chosen)
        at = range(len(self))[index]
        fields_ = {field.name: _scalar(self.table.column(field.name)[at]) for field in SCHEMA}
        predicate = self.templates[self.codes[at]].predicate(self.table.column("literals")[at].as_py())
        known: dict[str, Any] = {name: value for name, value in fields_.items() if value is not None}
        known |= {"predicate": predicate, "exactness": Exactness(known["exactness"])}
        return QueryRecord(**known)

    def take(self, positions: npt.ArrayLike) -> QueryBatch:
        """The records at these positions, in this order."""
        chosen = np.asarray(positions, np.int64)
        return QueryBatch(self.table.take(chosen), self.templates, self.codes[chosen])

    def _slice(self, start: int, count: int) -> QueryBatch:
        return QueryBatch(self.table.slice(start, count), self.templates, self.codes[start : start + count])

    def __iter__(self) -> Iterator[QueryRecord]:
        names = [field.name for field in fields(QueryRecord)]
        for start in range(0, len(self), _CHUNK):
            part = self._slice(start, _CHUNK)
            columns = [part.predicates() if name == "predicate" else _values(part.table, name) for name in names]
            for row in zip(*columns, strict=True):
                yield QueryRecord(*row)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def workload_of(queries: Sequence[QueryRecord]) -> Workload:
    """What records ask, in vector form: of a batch without making a single record."""
    return queries.workload() if isinstance(queries, QueryBatch) else Workload.of([one.predicate for one in queries])


def at(queries: Sequence[QueryRecord], positions: Sequence[int]) -> Sequence[QueryRecord]:
    """The records at these positions."""
    return queries.take(positions) if isinstance(queries, QueryBatch) else [queries[number] for number in positions]


def _keys(table: pa.Table) -> pa.Array:
    both = [table.column("query_id"), table.column("scan").cast(pa.string())]
    return pc.call_function("binary_join_element_wise", [*both, pa.scalar("#")]).combine_chunks()


def _scalar(value: pa.Scalar) -> Any:
    plain = value.as_py()
    return tuple(plain) if isinstance(plain, list) else plain


_MISSING: dict[str, Any] = {"table_name": "", "reasons": (), "columns": ()}


def _values(table: pa.Table, name: str) -> list[Any]:
    """A column as a record has it."""
    column = table.column(name).combine_chunks()
    if pa.types.is_dictionary(column.type):
        own: list[Any] = column.dictionary.to_pylist()
        own = [Exactness(value) for value in own] if name == "exactness" else own
        return [_MISSING.get(name) if at is None else own[at] for at in column.indices.to_pylist()]
    values: list[Any] = column.to_pylist()
    if pa.types.is_list(column.type):
        return [() if value is None else tuple(value) for value in values]
    return values
