"""What a run may do and spend, as its caller says."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class RunOptions:
    """Limits of one run; the defaults limit nothing."""

    dry_run: bool = False
    """Decide and plan, but write nothing at all."""
    shadow: bool = False
    """Decide and record what would have been done, but never touch the table."""
    after_optimize: bool = False
    """Tell what foreign rewrites undid of the layout, and repair that now."""
    budget: int | None = None
    """Bytes that may be rewritten; None: any number."""
    cooldown: float = 0.0
    """Seconds since the last layout that must pass before the next."""
    deadline: float | None = None
    """On `time.monotonic`'s clock: no rewrite is begun that would not end before it."""

    def seconds_left(self) -> float | None:
        return None if self.deadline is None else self.deadline - time.monotonic()
