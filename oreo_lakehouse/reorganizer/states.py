"""The state space: admitted layouts, their block metadata, and what each query would cost in each of them.

The reorganizer knows state ids and numbers; this is where the numbers come from. Queries are positions in one compiled
stream, so a state's costs are computed for hundreds of queries at a time and looked up one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.layouts.blocks import Blocks
from oreo_lakehouse.layouts.layout import Layout
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.skipping import Costs, Mode, service_costs
from oreo_lakehouse.predicates.shape import comparisons
from oreo_lakehouse.predicates.tree import CompareColumns
from oreo_lakehouse.predicates.workload import Workload

INITIAL = "initial"
"""The id of a table's own layout while none of ours is in place."""
_AHEAD = 512
"""Queries whose costs are computed together."""
_TOGETHER = 64
"""Queries whose costs in all states are looked up together."""


class CostSource(Protocol):
    """Anything that knows the service costs of queries, by position in the stream."""

    def costs(self, queries: Any) -> Costs: ...

    def cost(self, query: int) -> float: ...

    def costs_of(self, workload: Workload) -> Costs: ...


class BlockCosts:
    """Costs of the stream's queries over one set of blocks, each computed when first asked for."""

    def __init__(self, stream: Workload, blocks: Blocks, mode: Mode) -> None:
        self._stream, self._blocks = stream, blocks
        self._mode: Mode = mode
        self._costs = np.full(len(stream), np.nan)

    def costs(self, queries: Any) -> Costs:
        found = self._costs[queries]
        if np.isnan(found).any():
            missing = np.unique(np.arange(len(self._costs))[queries][np.isnan(found)])
            if isinstance(queries, slice):  # a stretch of the stream: what follows it is asked for next
                ahead = np.arange(missing[-1] + 1, min(missing[-1] + _AHEAD, len(self._costs)))
                missing = np.concatenate([missing, ahead[np.isnan(self._costs[ahead])]])
            self._costs[missing] = service_costs(self._stream.take(missing), self._blocks, self._mode)
            found = self._costs[queries]
        return found

    def cost(self, query: int) -> float:
        """One query's cost; its successors' are computed along with it, since they are asked for next."""
        found = self._costs[query]
        if np.isnan(found):
            found = self.costs(slice(query, query + 1))[0]
        return float(found)

    def costs_of(self, workload: Workload) -> Costs:
        """The costs of queries that are not part of the stream."""
        return service_costs(workload, self._blocks, self._mode)


class StateSpace:
    """Layouts by id, over one sample and one stream of queries.

    Args:
        sample: rows of the table.
        stream: the queries.
        mode: what skips blocks.
        columns: those that queries speak of; statistics of others are not needed.
        made: costs of layouts by id, to be shared by several spaces over the same sample and stream.
    """

    def __init__(
        self,
        sample: Sample,
        stream: Workload,
        mode: Mode,
        columns: Iterable[str] | None = None,
        made: dict[str, BlockCosts] | None = None,
    ) -> None:
        self.sample, self.stream = sample, stream
        self.made = made
        self.mode: Mode = mode
        self.columns = None if columns is None else sorted(columns)
        found = [comparisons(group.shape) for group in stream.groups] if mode == "bid" else []
        self._comparisons = sorted(frozenset[CompareColumns]().union(*found), key=repr)
        self._sources: dict[str, CostSource] = {}
        self._known: dict[str, CostSource] = {}
        self._ahead: tuple[list[str], int, list[list[float]]] = ([], 0, [])
        """States, a first query, and the costs of it and its successors."""

    def __contains__(self, state: str) -> bool:
        return state in self._sources

    @property
    def known(self) -> dict[str, CostSource]:
        """Every state there ever was."""
        return self._known

    def source_of(self, layout: Layout) -> BlockCosts:
        """The costs of a layout that is not (yet) a state."""
        if self.made is not None and layout.id in self.made:
            return self.made[layout.id]
        source = BlockCosts(self.stream, self.sample.blocks(layout, self.columns, self._comparisons), self.mode)
        if self.made is not None:
            self.made[layout.id] = source
        return source

    def add(self, state: str, source: CostSource) -> None:
        self._sources[state] = self._known[state] = source
        self._ahead = ([], 0, [])

    def add_blocks(self, state: str, blocks: Blocks) -> None:
        """A state whose real block metadata is known."""
        self.add(state, BlockCosts(self.stream, blocks, self.mode))

    def remove(self, state: str) -> None:
        """It is no state any more; what it costs stays known, since a table may still be in it."""
        del self._sources[state]

    def costs(self, state: str, queries: Any) -> Costs:
        """The service costs of some queries of the stream in one state."""
        return self._sources[state].costs(queries)

    def cost(self, state: str, query: int) -> float:
        """One query's service cost in one state, which may have been evicted since."""
        return self._known[state].cost(query)

    def outlook(self, states: Sequence[str], workload: Workload) -> Costs:
        """Each state's mean service cost on queries that are not part of the stream."""
        return np.array([self._sources[state].costs_of(workload).mean() for state in states])

    def at(self, query: int, states: Iterable[str]) -> dict[str, float]:
        """One query's service cost in each state."""
        wanted = list(states)
        known, first, rows = self._ahead
        if known != wanted or not 0 <= query - first < len(rows):
            first, stop = query, min(query + _TOGETHER, len(self.stream))
            rows = self.matrix(wanted, slice(first, stop)).T.tolist()
            self._ahead = (wanted, first, rows)
        return dict(zip(wanted, rows[query - first], strict=True))

    def matrix(self, states: Sequence[str], queries: Any) -> npt.NDArray[np.float64]:
        """(states x queries)."""
        if not len(states):
            return np.zeros((0, len(queries)))
        return np.stack([self._sources[state].costs(queries) for state in states])
