"""Why a move that the optimizer wants is not made in this run: too little gain, too soon, too dear, too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oreo_lakehouse.maintenance.evidence import Evidence
    from oreo_lakehouse.maintenance.options import RunOptions
    from oreo_lakehouse.tables.contract import RewritePlan


def held_back(
    evidence: Evidence,
    plan: RewritePlan,
    gain: float,
    min_gain: float,
    options: RunOptions,
    bytes_a_second: float | None,
) -> str | None:
    """A sentence, or None if nothing speaks against the move.

    Args:
        evidence: the table as it is.
        plan: the rewrite in question.
        gain: the share of the table that a recent query would no longer read.
        min_gain: `decide.min_gain`.
        options: the run's limits.
        bytes_a_second: how fast the last rewrite was; None if there was none.
    """
    if gain < min_gain:
        return (
            f"{plan.layout.describe()} would save {gain:.1%} of the rows a query reads, less than decide.min_gain = "
            f"{min_gain:.1%}"
        )
    age = evidence.layout_age()
    if age is not None and age < options.cooldown:
        return (
            f"the last layout is {_hours(age)} old and --cooldown asks for {_hours(options.cooldown)}: "
            f"{plan.layout.describe()} has to wait"
        )
    if options.budget is not None and plan.bytes > options.budget:
        return (
            f"{plan.layout.describe()} would rewrite {plan.bytes:,} bytes, more than the {options.budget:,} that "
            "--budget leaves"
        )
    needed = 0.0 if bytes_a_second is None else plan.bytes / bytes_a_second
    return out_of_time(plan, needed, options)


def out_of_time(plan: RewritePlan, needed: float, options: RunOptions) -> str | None:
    """A sentence if a rewrite that takes so many seconds would end after the run's time."""
    left = options.seconds_left()
    if left is None or 0 < left >= needed:
        return None
    return (
        f"{plan.layout.describe()} would take about {needed / 60:.1f} minutes and --max-minutes leaves "
        f"{max(0.0, left) / 60:.1f}"
    )


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 360 else f"{seconds / 60:.1f} min"
