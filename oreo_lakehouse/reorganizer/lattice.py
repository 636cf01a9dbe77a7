"""Round figures: the step that the literals of a column are multiples of, if they are.

Ten looks at one month each all begin on the first of a month. Queries made up on any other day would be served by cuts
that no real query needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.predicates.values import Array, Kind

_LEAST = 5
"""Different literals, below which a common step may be chance."""
_WHOLE = (Kind.INTEGER, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)


@dataclass(frozen=True)
class Lattice:
    """Literals as whole numbers of steps from an origin; steps are of `step` months if `monthly`."""

    kind: Kind
    step: int
    origin: int
    monthly: bool
    coordinates: npt.NDArray[np.float64]
    """(bounds x queries) of the literals that it was found in."""

    def of(self, values: Array) -> npt.NDArray[np.float64]:
        """Where values lie, in steps."""
        months = values.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) if self.monthly else values
        return (months - self.origin) / self.step

    def values(self, coordinates: npt.NDArray[np.float64]) -> list[Array]:
        """The literals at these numbers of steps, an array a bound."""
        found = np.round(coordinates).astype(np.int64) * self.step + self.origin
        if self.monthly:
            found = found.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        return list(found)


def lattice(kind: Kind, seen: Sequence[Array]) -> Lattice | None:
    """The step of some literals, all bounds of a range together; None if they have none in common.

    >>> found = lattice(Kind.INTEGER, [np.array([100, 400, 200, 700, 900]), np.array([200, 500, 300, 800, 1000])])
    >>> found.step, found.coordinates[0].tolist()
    (100, [0.0, 3.0, 1.0, 6.0, 8.0])
    """
    if kind not in _WHOLE:
        return None
    values = np.stack(seen).astype(np.int64)
    monthly = False
    if kind is Kind.DATE:
        days = values.astype("datetime64[D]")
        months = days.astype("datetime64[M]")
        monthly = bool((months.astype("datetime64[D]") == days).all())
        values = months.astype(np.int64) if monthly else values
    different = np.unique(values)
    if len(different) < _LEAST:
        return None
    step, origin = int(np.gcd.reduce(np.diff(different))), int(different[0])
    if step == 1 and not monthly:
        return None
    return Lattice(kind, step, origin, monthly, (values - origin) / step)
