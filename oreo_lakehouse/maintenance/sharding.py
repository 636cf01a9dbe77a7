"""A run on a partitioned table: each shard is judged on its own, by the queries that reach it; only some of them move.

A shard's run is a table's run, on the shard's own state and ledger, and saves its state after its commit: if the whole
run dies, shards that were done stay done. Shards that most was asked of come first, so a budget goes where it helps.
Where others are writing all the time, or something else is in the way, that shard has to wait for another run, and the
other shards do not.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from oreo_lakehouse.errors import ConflictError, OreoError, UnknownOutcomeError
from oreo_lakehouse.layouts.skipping import might_match
from oreo_lakehouse.maintenance.alpha import Alpha, alpha_of
from oreo_lakehouse.maintenance.evidence import observe, obstacle, wanted_blocks
from oreo_lakehouse.maintenance.judging import judge
from oreo_lakehouse.maintenance.run import Run
from oreo_lakehouse.maintenance.shards import hull

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oreo_lakehouse.history.querybatch import QueryBatch
    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.maintenance.dossier import Dossier
    from oreo_lakehouse.maintenance.evidence import Evidence
    from oreo_lakehouse.maintenance.options import RunOptions
    from oreo_lakehouse.maintenance.outcome import Outcome
    from oreo_lakehouse.maintenance.shards import Shard
    from oreo_lakehouse.maintenance.state import State
    from oreo_lakehouse.predicates.workload import Workload

_Cursor = dict[str, Any]


def maintain_shards(
    run: Run, shards: Sequence[Shard], state: State, version: int, blocks: Blocks, new: tuple[QueryBatch, _Cursor]
) -> Outcome:
    """Judge every shard; the outcome tells of the table, and of each shard that there was something to decide about.

    Args:
        run: the run on the whole table.
        shards: its shards.
        state: what was remembered of the table from before it had shards; they go on from there in the history.
        version: the table's.
        blocks: its files.
        new: the queries since `state`, and where they end.

    Raises:
        OreoError: some shards could not be maintained; the other shards are done. It is a `ConflictError` where others
            changed them all the time, and nothing else was wrong.
        UnknownOutcomeError: a shard's commit may have landed or not; what comes after it waits until that is known.
    """
    if not run.options.dry_run:
        run.dossier.book.add([shard.first for shard in shards])
    history = _History(run.dossier, state.cursor, new)
    parts = [_Part(run, shard, blocks, state, history) for shard in shards]
    alpha = _alpha(run, parts)
    together = sum(
        wanted_blocks(part.blocks, part.shard.partitions, run.config.layout) for part in parts if len(part.queries)
    )
    outcomes: list[Outcome] = []
    refused: list[tuple[str, OreoError]] = []
    for part in sorted(parts, key=lambda part: -len(part.queries) * part.blocks.total_rows):
        left = run.options
        if left.budget is not None:
            left = replace(left, budget=max(0, left.budget - sum(done.bytes_rewritten for done in outcomes)))
        try:
            done = part.maintain(left, version if not outcomes else run.dossier.table.version(), alpha, together)
        except UnknownOutcomeError:
            raise
        except OreoError as error:
            refused.append((part.shard.label, error))
            continue
        if done is not None:
            outcomes.append(done)
    if refused:
        moved = sum(done.decision != "stay" for done in outcomes)
        label, worst = min(refused, key=lambda one: isinstance(one[1], ConflictError))
        raise type(worst)(
            f"{len(refused)} of {len(shards)} shards could not be maintained, {moved} others were rewritten. "
            f"{label}: {worst}"
        ) from worst
    queries, cursor = new
    evidence = observe(run.dossier, version, blocks, queries, run.config.layout, run.column_bytes)
    after = state
    if len(queries):
        after = replace(state, number=state.number + 1, cursor=cursor, queries=state.queries + len(queries))
    return _together(run, shards, outcomes, after, evidence, alpha)


class _History:
    """The table's queries, each stretch of them read and compiled once for all shards that ask for it."""

    def __init__(self, dossier: Dossier, cursor: _Cursor, new: tuple[QueryBatch, _Cursor]) -> None:
        self._store = dossier.history
        self._read = {_key(cursor): new}
        self._compiled: dict[str, Workload] = {}

    def since(self, cursor: _Cursor) -> tuple[QueryBatch, _Cursor, Workload]:
        key = _key(cursor)
        if key not in self._read:
            self._read[key] = self._store.read_since(cursor)
        queries, after = self._read[key]
        if key not in self._compiled:
            self._compiled[key] = queries.workload()
        return queries, after, self._compiled[key]


def _key(cursor: _Cursor) -> str:
    return json.dumps(cursor, sort_keys=True)


class _Part:
    """One shard in this run."""

    def __init__(self, run: Run, shard: Shard, blocks: Blocks, whole: State, history: _History) -> None:
        self._run, self.shard, self.blocks = run, shard, blocks.take(shard.files)
        self.dossier = run.dossier.of_shard(shard, set(self.blocks.partitions))
        state, self._damage = self.dossier.states.load(set_aside=not run.options.dry_run)
        if state.number == 0:
            state = replace(state, cursor=whole.cursor, kinds=whole.kinds)
        self._state = state if run.options.shadow else replace(state, shadow=None)
        everything, self._cursor, workload = history.since(state.cursor)
        # A query that cannot match the shard's rows at all costs it nothing in any layout: it has no say.
        reaches = might_match(workload, hull(self.blocks), run.config.decide.skipping)[:, 0]
        self.queries = everything.take(np.flatnonzero(reaches))

    def maintain(self, options: RunOptions, version: int, alpha: Alpha, together: int) -> Outcome | None:
        """The shard's own run; None if nothing happened that it would have to decide about.

        Args:
            options: what is left of what the run may do and spend.
            version: the table's.
            alpha: the price of a rewrite.
            together: blocks that all shards of the run are decided about with.
        """
        whole, label = self._run, self.shard.label
        run = Run(
            self.dossier, whole.config, options, lambda step, share=None: whole.progress(f"{label}: {step}", share)
        )
        run.notices += self._damage
        run.repair()
        if not self.queries and not options.after_optimize:
            run.record.write(self._passed() if self._cursor != self._state.cursor else None)
            whole.notices += run.notices
            return None
        run.column_bytes = whole.column_bytes
        evidence = observe(self.dossier, version, self.blocks, self.queries, whole.config.layout, whole.column_bytes)
        done = judge(run, self._state, replace(evidence, blocks_together=together), self._cursor, alpha)
        whole.notices += [f"{label}: {notice}" for notice in run.notices]
        return done

    def _passed(self) -> State:
        return replace(self._state, number=self._state.number + 1, cursor=self._cursor)


def _alpha(run: Run, parts: Sequence[_Part]) -> Alpha:
    """Measured from all rewrites of the table: in scans of what is rewritten, a shard's price is like any other's."""
    ledgers = [run.dossier.ledger, *(part.dossier.ledger for part in parts)]
    lines = [line for ledger in ledgers for line in ledger.lines(["commit", "calibration"])]
    decide = run.config.decide
    return alpha_of(decide.alpha, sorted(lines, key=lambda line: line.time), decide.weigh)


def _together(
    run: Run, shards: Sequence[Shard], done: Sequence[Outcome], state: State, evidence: Evidence, alpha: Alpha
) -> Outcome:
    """The table's own outcome and its line in the table's own ledger, which lists what every shard decided."""
    gain = [one for one in done if one.decision != "stay"]
    decision = "stay" if not gain else "move" if any(one.decision == "move" for one in gain) else "fold"
    reason = f"none of {len(shards)} shards gains from a rewrite now"
    if gain:
        reason = f"{len(gain)} of {len(shards)} shards gain: {', '.join(one.shard for one in gain)}"
    elif not done:
        config, name = run.config.layout, run.dossier.table.identity.name
        reason = obstacle(evidence, name, state.queries, config.target_file_size) or reason
    told = {one.shard: {"decision": one.decision, "reason": one.reason} for one in done}
    run.record.decided(evidence, decision, reason, {"shards": told, "shadow": run.options.shadow})
    run.record.write(state if len(evidence.queries) else None)
    written = [one.version_after for one in done if one.version_after != one.version_before]
    return replace(
        run.outcome(evidence, decision, reason),
        version_after=written[-1] if written else evidence.version,
        files_after=len(evidence.blocks) + sum(one.files_after - one.files_before for one in done),
        bytes_rewritten=sum(one.bytes_rewritten for one in done),
        alpha=str(alpha) if done else "",
        shards=tuple(done),
    )
