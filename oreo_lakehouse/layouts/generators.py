"""Layout generators by name: the paper's `generate_layout(D, Q, k)`.

All blocks of a layout hold one number of the sample's rows within 20%, wherever its values can be told apart finely
enough: the largest has at most 1.5 times the rows of the smallest. `sort`, `zorder` and `hilbert` make k blocks, which
are mostly more even than that. `qdtree` makes 1.4 k to 2.1 k (1.7 k in the mean): few cuts that queries gain by lie
where even blocks need them, and more, smaller blocks make up for that. What part of the 20% is kept for the sample's
error, `balance.py` says.

Finely enough means: for `sort` and `qdtree`, that no more than a twentieth of a block's rows are equal in all columns;
for the curves, that no more than a tenth of a block lies in one of at most 2^16 cells.

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
from oreo_lakehouse.layouts.sort import RowOrder, sort_layout
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
    names = most_used_columns(sample, workload, weights)
    names += [name for name in sample.rows.kinds if name not in names] if names else []
    few = 2
    while few < len(names) and RowOrder(sample, names[:few]).most_equal * k > _TIES * len(sample):
        few += 1
    return sort_layout(sample, names[:few], k)


def _curve(kind: type[CurveLayout]) -> Generator:
    def made(sample: Sample, workload: Workload, k: int, mode: Mode, weights: Weights | None) -> Layout:
        del mode
        columns = most_used_columns(sample, workload, weights)[:_CURVE_COLUMNS]
        return kind.of(sample, columns, k) or sort_layout(sample, columns, k)

    return made


_TIES = 0.1
"""Of a block's rows that may be equal in all columns sorted by, before one more column is taken."""
_CURVE_COLUMNS = 3
"""The paper's choice: the three columns that the window's queries use most."""
_OURS: dict[str, Generator] = {
    "sort": _sort,
    "qdtree": qdtree_layout,
    "zorder": _curve(ZOrderLayout),
    "hilbert": _curve(HilbertLayout),
}
