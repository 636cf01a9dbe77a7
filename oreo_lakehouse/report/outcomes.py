"""What a maintenance run did or would do, and what an undo did, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table as Grid
from rich.text import Text

from oreo_lakehouse.report.console import facts, out, size

if TYPE_CHECKING:
    from oreo_lakehouse.maintenance.calibrate import Calibration
    from oreo_lakehouse.maintenance.fleet import TableRun
    from oreo_lakehouse.maintenance.layouts import KnownLayout
    from oreo_lakehouse.maintenance.outcome import Outcome
    from oreo_lakehouse.maintenance.rollback import RolledBack

_DONE = {"move": "moved to", "fold": "folded new rows into", "stay": "stays"}
_PROOF, _METADATA = "verified before the commit", "in an earlier layout's files: the commit is metadata only"
_WOULD = {"move": "would move to", "fold": "would fold new rows into", "stay": "stays"}


def show_outcome(outcome: Outcome) -> None:
    """A maintenance run in a few lines."""
    written = outcome.version_after != outcome.version_before
    verb = (_DONE if written or outcome.decision == "stay" else _WOULD)[outcome.decision]
    layout = outcome.plan.layout.describe() if outcome.plan else (outcome.layout_id or "")
    if outcome.shards:
        layout = "layouts of their own, shard by shard"
    rows = [("decision", f"{verb} {layout if outcome.decision != 'stay' else ''}".strip()), ("why", outcome.reason)]
    if outcome.plan and outcome.dry_run:
        rows += _planned(outcome)
    elif written:
        rows += [
            ("version", f"{outcome.version_before} → {outcome.version_after}"),
            ("files", f"{outcome.files_before:,} → {outcome.files_after:,}, {size(outcome.bytes_rewritten)} rewritten"),
            ("rows", f"{outcome.rows:,}, {_PROOF if outcome.bytes_rewritten else _METADATA}"),
        ]
    if outcome.alpha:
        rows.append(("a rewrite costs", outcome.alpha))
    rows.append(("queries", f"{outcome.queries_seen:,} new, {outcome.seconds:.1f} s"))
    facts(outcome.shard or f"{outcome.table} ({outcome.format})", rows)
    for shard in outcome.shards:
        show_outcome(shard)


def _planned(outcome: Outcome) -> list[tuple[str, str]]:
    plan, ahead = outcome.plan, outcome.forecast
    assert plan is not None
    rows = [
        ("would read", f"{plan.files:,} files, {size(plan.bytes)}, {plan.rows:,} rows of version {plan.base_version}"),
        ("would write", f"{plan.layout.blocks:,} blocks, about {size(plan.bytes)}, as one commit"),
    ]
    if ahead is not None:
        pays = "never, at this rate"
        if ahead.break_even is not None:
            days = ahead.break_even / max(ahead.queries_a_day, 1e-9)
            pays = f"after {ahead.break_even:,} queries, {days:,.1f} days at {ahead.queries_a_day:,.0f} a day"
        rows += [
            ("a query reads", f"{ahead.cost_now:.1%} of the table now, {ahead.cost_then:.1%} then"),
            ("would save", f"about {size(ahead.bytes_saved_a_day)} of reading a day"),
            ("pays for itself", pays),
            ("would hold", f"{size(ahead.storage_held)} of replaced files, for time travel and rollback"),
            ("would be lost", ahead.lost_by_vacuum),
        ]
    return [
        *rows,
        ("BID column", _bid_column(plan.bid_column, plan.adds_bid_column)),
        ("nothing", "was written: this is a dry run"),
    ]


def _bid_column(name: str, is_new: bool) -> str:
    if not name:
        return "none (bid_column is empty)"
    return f"{name}, added first by an ALTER TABLE of its own" if is_new else name


def show_runs(runs: Sequence[TableRun]) -> None:
    """The summary after several tables."""
    grid = Grid()
    for heading in ("table", "decision", "rewritten", "why"):
        grid.add_column(heading, justify="right" if heading == "rewritten" else "left", overflow="fold")
    for run in runs:
        if run.outcome is None:
            grid.add_row(Text(run.table), Text(f"failed ({int(run.exit_code)})", style="red"), "", Text(str(run.error)))
        else:
            done = run.outcome
            grid.add_row(Text(run.table), Text(done.decision), size(done.bytes_rewritten), Text(done.reason))
    out.print(grid)
    failed = sum(run.error is not None for run in runs)
    moved = sum(run.outcome is not None and run.outcome.bytes_rewritten > 0 for run in runs)
    out.print(f"{len(runs)} tables: {moved} rewritten, {len(runs) - moved - failed} left as they are, {failed} failed")


def show_rollback(done: RolledBack) -> None:
    where = f" of {done.shard}" if done.shard else ""
    undone = f"layout {done.layout_id}{where}; rows appended since are kept"
    if done.returned_to:
        undone = f"left layout {done.layout_id}{where} for {done.returned_to}; rows appended since are kept"
    facts(
        f"{done.table} ({done.format})",
        [("undone", undone), ("version", f"{done.version_before} → {done.version_after}")],
    )


def show_layouts(table: str, found: Sequence[KnownLayout]) -> None:
    """A line a layout, newest first."""
    if not found:
        facts(table, [("layouts", "none of ours yet: run oreo-maintain")])
        return
    grid = Grid(title=table, title_justify="left", title_style="bold")
    shards = any(one.shard for one in found)
    for heading in (*(["shard"] if shards else []), "layout", "version", "made", "state", "what it is"):
        grid.add_column(heading, overflow="fold")
    for one in found:
        until = f" until {one.until:%Y-%m-%d %H:%M} UTC" if one.state == "returnable" and one.until else ""
        words = one.layout or one.layout_id
        why = words if one.state != "gone" else f"{words}. {one.reason}"
        made = f"{one.time:%Y-%m-%d %H:%M} UTC"
        cells = [Text(one.layout_id), str(one.version), made, Text(f"{one.state}{until}"), Text(why)]
        grid.add_row(*([Text(one.shard or "all"), *cells] if shards else cells))
    out.print(grid)


def show_calibration(done: Calibration) -> None:
    trial = f"projected from a trial on {size(done.trial_bytes)}"
    if done.trial_bytes >= done.table_bytes:
        trial = f"by a trial on all {size(done.trial_bytes)}"
    facts(
        done.table,
        [
            ("a scan", f"{done.scan_seconds:.2f} s, of {', '.join(done.columns)}, beyond what any query takes"),
            ("a rewrite", f"{done.rewrite_seconds:.1f} s, {trial}"),
            ("a rewrite costs", str(done.alpha)),
        ],
    )
