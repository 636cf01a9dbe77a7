"""Alpha, the price of a rewrite in scans of the table, measured on the table itself.

A scan is what a query does: it reads the columns that queries filter by, of every row. A rewrite reads, shuffles,
writes and verifies every column of every row. Each move of ours measures both (the narrow pass before it is such a
scan), and `oreo calibrate` measures them now, where it leaves out of a scan what any query takes. A narrow pass is
counted whole: where it takes many seconds, starting a query is little of it. Until there is a measurement, the paper's
middle value counts. Where bytes are weighed (`decide.weigh`), alpha is counted in scans of all columns: what a scan of
some took is projected by their share of the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from oreo_lakehouse.maintenance.ledger import LedgerLine
from oreo_lakehouse.maintenance.ledgerfacts import number
from oreo_lakehouse.maintenance.weighing import BYTES, ROWS

DEFAULT = 80.0
"""The paper measures 60 to 100."""
DEFAULTS = {ROWS: DEFAULT, BYTES: 3.0}
"""A rewrite reads, shuffles, writes and verifies what a scan of all columns reads."""
LEAST, MOST = 2.0, 1000.0
_LATEST = 5
"""Measurements that count: a cluster that was resized is soon known as it is now."""


@dataclass(frozen=True)
class Alpha:
    """The price of a rewrite, and where it comes from."""

    value: float
    source: str

    weigh: str = ROWS

    def __str__(self) -> str:
        what = "scans of all columns" if self.weigh == BYTES else "scans"
        return f"{self.value:.0f} {what} ({self.source})"


def alpha_of(configured: float, lines: Sequence[LedgerLine], weigh: str = ROWS) -> Alpha:
    """The alpha in force: as configured, else measured, else the default.

    Args:
        configured: `decide.alpha`; 0 means "measure it".
        lines: the ledger's `commit` and `calibration` lines, oldest first.
        weigh: `decide.weigh`.
    """
    if configured > 0:
        return Alpha(configured, "configured", weigh)
    found = [(line, value) for line in lines if (value := measured(line, weigh)) is not None][-_LATEST:]
    if not found:
        return Alpha(DEFAULTS[weigh], "default; measured from the first rewrite on", weigh)
    value = min(MOST, max(LEAST, float(median(value for _, value in found))))
    last = found[-1][0].time
    if all(line.kind == "calibration" for line, _ in found):
        return Alpha(value, f"calibrated {last:%Y-%m-%d}", weigh)
    count = len(found)
    return Alpha(value, f"measured from {count} rewrite{'s' if count > 1 else ''}, last {last:%Y-%m-%d}", weigh)


def measured(line: LedgerLine, weigh: str = ROWS) -> float | None:
    """What a line says of alpha, or None: a fold rewrites too little, a return writes nothing."""
    facts = line.facts
    if line.kind == "calibration":
        rewrite, scan = number(facts.get("rewrite_seconds")), number(facts.get("scan_seconds"))
    elif line.kind == "commit" and facts.get("action", "layout") == "layout":
        rewrite, scan = number(facts.get("seconds")), number(facts.get("scan_seconds"))
    else:
        return None
    share = number(facts.get("scan_share")) if weigh == BYTES else 1.0
    if rewrite is None or scan is None or share is None:
        return None
    return rewrite / scan * share if rewrite > 0 and scan > 0 and share > 0 else None
