"""Layout generators by name: the paper's `generate_layout(D, Q, k)`.

How even their blocks are, where values do not repeat too often: `sort` within one row; `zorder` and `hilbert` between
half and twice the average; `qdtree` spends its blocks where queries look, none of them below half the average.

A user's own generator is one function with the signature of `Generator`, announced under the entry point group
`oreo_lakehouse.generators` (and a `Layout` of its own, if need be, announced by `register_layout` when that module is
imported).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.errors import ConfigError
from oreo_lakehouse.layouts.curve import CurveLayout, HilbertLayout, ZOrderLayout
from oreo_lakehouse.layouts.layout import Layout
from oreo_lakehouse.layouts.qdtree import qdtree_layout
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.skipping import Mode
from oreo_lakehouse.layouts.sort import sort_layout
from oreo_lakehouse.predicates.shape import places
from oreo_lakehouse.predicates.workload import Workload

Weights: TypeAlias = npt.NDArray[np.float64]
Generator: TypeAlias = Callable[[Sample, Workload, int, Mode, Weights | None], Layout]
GROUP = "oreo_lakehouse.generators"


def generate(
    name: str, sample: Sample, workload: Workload, k: int, mode: Mode = "native", weights: Weights | None = None
) -> Layout:
    """A layout of about k blocks made for a workload from a sample.

    Raises:
        ConfigError: no generator of that name is installed.
    """
    return generator(name)(sample, workload, k, mode, weights)


def generator(name: str) -> Generator:
    """The generator of that name: one of ours, or one that an installed package announces."""
    if name in _OURS:
        return _OURS[name]
    for found in entry_points(group=GROUP, name=name):
        return cast("Generator", found.load())
    known = sorted({*_OURS, *(found.name for found in entry_points(group=GROUP))})
    raise ConfigError(f"no layout generator {name!r}; known are {', '.join(known)}")


def most_used_columns(sample: Sample, workload: Workload, weights: Weights | None = None) -> list[str]:
    """Columns that queries compare with literals and the sample can sort, by how many queries do."""
    uses: dict[str, float] = {}
    for group in workload.groups:
        count = len(group.queries) if weights is None else float(weights[group.queries].sum())
        for name in sorted({place[0] for place in places(group.shape)}):
            if sample.rows.column(name) is not None:
                uses[name] = uses.get(name, 0.0) + count
    return sorted(uses, key=lambda name: (-uses[name], name))


def _sort(sample: Sample, workload: Workload, k: int, mode: Mode, weights: Weights | None) -> Layout:
    del mode
    return sort_layout(sample, most_used_columns(sample, workload, weights)[:2], k)


def _curve(kind: type[CurveLayout]) -> Generator:
    def made(sample: Sample, workload: Workload, k: int, mode: Mode, weights: Weights | None) -> Layout:
        del mode
        columns = most_used_columns(sample, workload, weights)[:_CURVE_COLUMNS]
        return kind.of(sample, columns, k) or sort_layout(sample, columns, k)

    return made


_CURVE_COLUMNS = 3
"""The paper's choice: the three columns that the window's queries use most."""
_OURS: dict[str, Generator] = {
    "sort": _sort,
    "qdtree": qdtree_layout,
    "zorder": _curve(ZOrderLayout),
    "hilbert": _curve(HilbertLayout),
}
