"""`oreo status` in a terminal: how a table stands, and how well its files are clustered for what is asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oreo_lakehouse.report.console import facts, size, warn

if TYPE_CHECKING:
    from oreo_lakehouse.maintenance.status import ShardStatus, TableStatus


def show_status(status: TableStatus) -> None:
    """A table in a dozen lines."""
    for notice in status.notices:
        warn(notice)
    layout = "none of ours: as its writers left it"
    if status.layout_id:
        when = (
            f", version {status.layout_version}, {status.layout_time:%Y-%m-%d %H:%M} UTC" if status.layout_time else ""
        )
        layout = f"{status.layout or status.layout_id} ({status.layout_id}{when})"
    last = "none yet: run oreo-maintain"
    if status.last_decision:
        line = status.last_decision
        last = f"{line.facts.get('decision')} at {line.time:%Y-%m-%d %H:%M} UTC: {line.facts.get('reason')}"
    facts(
        f"{status.table} ({status.format})",
        [
            ("version", str(status.version)),
            ("content", f"{status.rows:,} rows, {status.files:,} files, {size(status.bytes)}"),
            ("layout", layout if not status.shards else f"one a shard, {len(status.shards)} shards: see below"),
            *health_rows(status),
            ("last decision", last),
            ("queries", f"{status.queries_seen:,} decided about, {status.queries_waiting:,} waiting"),
            ("location", status.location),
            ("store", status.store),
        ],
    )
    if status.shards:
        facts("shards", [(one.shard, _shard(one)) for one in status.shards])


def _shard(one: ShardStatus) -> str:
    last = "nothing decided yet"
    if one.last_decision:
        last = f"{one.last_decision.facts.get('decision')} at {one.last_decision.time:%Y-%m-%d %H:%M} UTC"
    layout = one.layout or one.layout_id or "as its writers left it"
    return f"{one.rows:,} rows, {one.files:,} files, {size(one.bytes)}: {layout}; {one.queries_seen:,} queries, {last}"


def health_rows(status: TableStatus) -> list[tuple[str, str]]:
    """Clustering health, one line a measure."""
    health, recent, best = status.health, status.recent, status.best
    if health is None:
        return []
    rows: list[tuple[str, str]] = []
    if health.columns:
        depths = ", ".join(f"{one.column} {one.avg_depth:,.1f}" for one in health.columns)
        overlaps = ", ".join(f"{one.column} {one.overlap_ratio:.1%}" for one in health.columns)
        rows += [
            ("avg_depth", f"{depths} (files that a value lies in; best 1, worst {health.files:,})"),
            ("overlap_ratio", f"{overlaps} (of the other files that a file's range overlaps; best 0%)"),
        ]
    skipping = health.skipping
    words = "not known: no query history yet"
    if skipping and recent:
        judged = "" if skipping.judged == recent.queries else f", {skipping.judged:,} of them judged"
        words = (
            f"{skipping.bytes:.1%} of the bytes, {skipping.files:.1%} of the files: what {recent.queries:,} queries of "
            f"{recent.since:%Y-%m-%d} to {recent.until:%Y-%m-%d} skip on these files{judged}"
        )
    rows.append(("skipping", words))
    if status.mode == "bid":
        rows.append(("mode", "bid: decisions count what pruning skips, beyond min/max"))
    if status.pruning:
        rows.append(("pruning", str(status.pruning)))
    if best:
        words = (
            f"{best.layout} would skip {best.skips:.1%} of the rows, where {best.actual:.1%} were skipped "
            f"({best.queries:,} queries that runs decided about)"
        )
        rows.append(("best known", words))
    if health.overlapping:
        words = (
            f"files are well sized but overlap by {', '.join(health.overlapping)}: compaction by size "
            "(rewrite_data_files, OPTIMIZE) finds nothing to do here, a layout does"
        )
        rows.append(("note", words))
    return rows
