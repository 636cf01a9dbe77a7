"""How a tree's cuts keep blocks of equal size, within 20%.

A block is good if it holds a unit of rows within the tolerance. Some numbers of rows can be divided into good blocks
(with a tolerance of 0.2: 0.8 to 1.2 units, and everything from 1.6 on), others cannot. A cut is allowed if both of its
sides can be, so that every leaf becomes a good block in the end, wherever the values can be told apart finely enough.

Cuts are made on a sample. n sampled rows of a block leave its true size uncertain by 2 / sqrt(n), two standard errors;
that much of the 20% is kept back, up to a half of them. So blocks of 1,000 sampled rows are cut to within 13.7% of a
unit, and the table's own blocks are within 20%; of those with fewer than 400 some are not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oreo_lakehouse.layouts.blocks import Bools, Ints

TOLERANCE = 0.2
_TIES = 0.02
"""Of the tolerance, kept for cuts that only divide: where values repeat, no cut is quite where it should be."""
_SLACK = 0.999
"""A row more or less does not count."""
_MIDDLE = 0.1
"""What a dividing cut may lose in evenness for being in the middle, which keeps trees flat."""


class Balance:
    """Blocks of about `unit` sampled rows.

    Args:
        unit: sampled rows of an average block.
        share: of the table's rows that are in the sample.
    """

    def __init__(self, unit: float, share: float = 1.0) -> None:
        self.unit = max(1.0, unit)
        self.tolerance = max(TOLERANCE / 2, TOLERANCE - 2 * np.sqrt(max(0.0, 1.0 - share) / self.unit))

    def allowed(self, left: Ints, rows: int) -> Bools:
        """Which cuts, that send so many rows of a node left, leave two sides that can be divided into good blocks.

        >>> Balance(unit=100).allowed(np.array([70, 90, 150, 210]), rows=300).tolist()
        [False, True, False, True]
        """
        return np.maximum(self._off(left), self._off(rows - left)) <= self.tolerance - _TIES

    def dividing(self, left: Ints, rows: int) -> int:
        """The cut that leaves the evenest blocks, rather in the middle; -1 if none is allowed."""
        off = np.maximum(self._off(left), self._off(rows - left))
        worth = np.where(off <= self.tolerance, off + _MIDDLE * np.abs(left / max(1, rows) - 0.5), np.inf)
        best = int(np.argmin(worth)) if len(worth) else 0
        return best if len(worth) and np.isfinite(worth[best]) else -1

    def too_large(self, rows: int) -> bool:
        return rows > (1 + self.tolerance) * self.unit + _SLACK

    def _off(self, rows: Ints) -> npt.NDArray[np.float64]:
        """How far blocks of equal size that the rows can be divided into are from a unit, as a share of it."""
        off = np.full(len(rows), np.inf)
        for near in (np.floor(rows / self.unit), np.ceil(rows / self.unit)):
            units = np.maximum(1, near) * self.unit
            off = np.minimum(off, np.maximum(0.0, np.abs(rows - units) - _SLACK) / units)
        return np.where(rows > 0, off, np.inf)
