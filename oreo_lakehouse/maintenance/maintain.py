"""One maintenance run: observe -> decide -> look -> plan -> stage -> verify -> commit -> record.

State is saved only after the table, so a run that dies anywhere is simply repeated: the next one starts from the same
state, sees the same queries and, with the same seed, decides the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.history.compaction import tend
from oreo_lakehouse.maintenance.alpha import alpha_of
from oreo_lakehouse.maintenance.dossier import open_dossier
from oreo_lakehouse.maintenance.evidence import files_now, observe
from oreo_lakehouse.maintenance.judging import judge
from oreo_lakehouse.maintenance.lock import locked
from oreo_lakehouse.maintenance.options import RunOptions
from oreo_lakehouse.maintenance.progress import Progress, silent, spark_share
from oreo_lakehouse.maintenance.pruned import last_mode, mode_notices, pruning_effect
from oreo_lakehouse.maintenance.run import Run
from oreo_lakehouse.maintenance.sharding import maintain_shards
from oreo_lakehouse.maintenance.shards import beginnings, shards_of
from oreo_lakehouse.maintenance.weighing import BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.maintenance.outcome import Outcome


def maintain(
    spark: SparkSession,
    table: str,
    config: Config | None = None,
    *,
    options: RunOptions | None = None,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Outcome:
    """Decide about the queries that came since the last run and, when it pays, rewrite the table.

    Args:
        spark: a session that can write the table.
        table: as in SQL, or a path.
        config: settings; by default those that `load_config()` finds.
        options: what the run may do and spend.
        dry_run: decide and plan, but write nothing at all; short for `RunOptions(dry_run=True)`.
        progress: told what is being done.

    Raises:
        OreoError: see `errors.py`; each names the problem, the place and the way out.
    """
    config = load_config() if config is None else config
    options = options or RunOptions()
    options = replace(options, dry_run=options.dry_run or dry_run)
    progress("opening the table", None)
    dossier = open_dossier(spark, table, config)
    identity = dossier.table.identity
    config = config.for_table(table, identity.name)
    if options.dry_run:
        return _execute(Run(dossier, config, options, progress))
    with locked(dossier.store, identity.uuid, identity.name):
        return _execute(Run(dossier, config, options, progress))


def _execute(run: Run) -> Outcome:
    dossier, config = run.dossier, run.config
    state, damage = dossier.states.load(set_aside=not run.options.dry_run)
    run.notices += damage
    if not run.options.shadow:
        state = replace(state, shadow=None)
    run.settle()
    run.progress("reading the query history", None)
    if not run.options.dry_run:
        tend(dossier.history, config.history)
    with spark_share(dossier.table.spark, run.progress, "reading the table's file statistics"):
        version, blocks = files_now(dossier, config.decide.skipping)
    queries, cursor = dossier.history.read_since(state.cursor)
    if config.decide.weigh == BYTES:
        run.column_bytes = dossier.table.column_bytes()
    run.notices += mode_notices(
        config.decide.skipping,
        last_mode(dossier.ledger.lines(["decision"])),
        len(queries),
        pruning_effect(queries, blocks.total_rows),
    )
    ours = dossier.facts.names() if blocks.partitions else ()
    shards = shards_of(blocks, beginnings(blocks, dossier.book.firsts(), config.layout, ours))
    if shards:
        return maintain_shards(run, shards, state, version, blocks, (queries, cursor))
    alpha = alpha_of(config.decide.alpha, dossier.ledger.lines(["commit", "calibration"]), config.decide.weigh)
    evidence = observe(dossier, version, blocks, queries, config.layout, run.column_bytes)
    return judge(run, state, evidence, cursor, alpha)
