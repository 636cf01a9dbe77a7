"""A run that has nothing to decide about, ended before Spark is started, or before it reads the table.

No query is new, or the table is too small for any layout: on a schedule most runs are of this kind, and starting Spark
takes many times as long as finding that out. It writes the same line into the ledger, and answers the same, as a run
that asked Spark; whatever it cannot tell for sure, or would have to mend, is left to such a run.
"""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from oreo_lakehouse.history.compaction import tend
from oreo_lakehouse.maintenance.dossier import dossier_on
from oreo_lakehouse.maintenance.evidence import observe, obstacle
from oreo_lakehouse.maintenance.lock import locked
from oreo_lakehouse.maintenance.offline import open_beside, open_offline
from oreo_lakehouse.maintenance.progress import Progress, silent
from oreo_lakehouse.maintenance.pruned import last_mode, mode_notices, pruning_effect
from oreo_lakehouse.maintenance.registry import is_registered
from oreo_lakehouse.maintenance.run import Run
from oreo_lakehouse.maintenance.shards import shard_folder, shard_id
from oreo_lakehouse.maintenance.state import State, StateStore
from oreo_lakehouse.maintenance.weighing import BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.config import Config
    from oreo_lakehouse.maintenance.dossier import Dossier
    from oreo_lakehouse.maintenance.options import RunOptions
    from oreo_lakehouse.maintenance.outcome import Outcome
    from oreo_lakehouse.tables.contract import Table


def idle(
    table: str, config: Config, options: RunOptions, spark: SparkSession | None = None, progress: Progress = silent
) -> Outcome | None:
    """The outcome of a run that decides nothing; None where only Spark can tell, or where there is something to do.

    Args:
        table: as the user wrote it.
        config: settings.
        options: what the run may do.
        spark: only to find the table, where that cannot be done without.
        progress: told what is being done.

    Raises:
        OreoError: the table cannot be found, or read; or another run is at it.
    """
    if options.after_optimize:
        return None
    progress("opening the table", None)
    view = open_offline(table, config) if spark is None else open_beside(spark, table, config)
    if view is None:
        return None
    # Before there is anything to decide about, a run asks no more of a table than a reader knows.
    dossier = dossier_on(cast("Table", view.table), view.store)
    identity = dossier.table.identity
    config = config.for_table(table, identity.name)
    reads_only = options.dry_run
    with nullcontext() if reads_only else locked(dossier.store, identity.uuid, identity.name):
        run = Run(dossier, config, options, progress)
        state = _settled(dossier, config)
        blocks = None if state is None else view.table.blocks()
        if state is None or blocks is None:
            return None
        queries, _ = dossier.history.read_since(state.cursor)
        sizes = {} if config.decide.weigh == BYTES else None  # of columns: nothing is priced here
        evidence = observe(dossier, view.table.version(), blocks, queries, config.layout, sizes)
        reason = obstacle(evidence, identity.name, state.queries, config.layout.target_file_size)
        shards = [shard_id(first) for first in dossier.book.firsts()]
        by_shards = bool(queries) and bool(blocks.partitions)
        if reason is None or by_shards or not all(_is_idle(dossier, shard, state) for shard in shards):
            return None
        before, effect = last_mode(dossier.ledger.lines(["decision"])), pruning_effect(queries, blocks.total_rows)
        run.notices += mode_notices(config.decide.skipping, before, len(queries), effect)
        if not reads_only:
            tend(dossier.history, config.history)
        told = {"shards": {}, "shadow": options.shadow} if len(shards) > 1 else {}
        run.record.decided(evidence, "stay", reason, told)
        run.record.write(None)
        return run.outcome(evidence, "stay", reason)


def _settled(dossier: Dossier, config: Config) -> State | None:
    """What was remembered, if an earlier run left nothing to mend or to tell."""
    if not is_registered(dossier.store, dossier.table.identity) or _left_open(dossier, dossier.table.identity.uuid):
        return None
    state, damage = dossier.states.load(set_aside=False)
    counted_alike = state.number == 0 or state.weigh == config.decide.weigh
    ahead = dossier.ledger.last_time() > datetime.now(UTC)
    return None if damage or ahead or not counted_alike else state


def _is_idle(dossier: Dossier, shard: str, whole: State) -> bool:
    """A shard reads the history by itself: where others were in its way, it has not come as far as the table."""
    folder = shard_folder(dossier.table.identity.uuid, shard)
    state, damage = StateStore(dossier.store, folder).load(set_aside=False)
    cursor = state.cursor if state.number else whole.cursor
    if damage or _left_open(dossier, folder):
        return False
    return cursor == whole.cursor or not dossier.history.read_since(cursor)[0]


def _left_open(dossier: Dossier, folder: str) -> bool:
    """Whether a run died there."""
    return bool(dossier.store.entries(f"{folder}/pending"))
