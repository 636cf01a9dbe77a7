"""Several tables in one session: names, patterns, or every table with a history; one that fails stops no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from oreo_lakehouse.errors import (
    ConflictError,
    ExitCode,
    NotATableError,
    OreoError,
    TableNotFoundError,
    was_interrupted,
)
from oreo_lakehouse.jvm import error_reason
from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.maintenance.idle import idle
from oreo_lakehouse.maintenance.options import RunOptions
from oreo_lakehouse.maintenance.progress import Progress, silent
from oreo_lakehouse.maintenance.registry import known_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.config import Config
    from oreo_lakehouse.maintenance.outcome import Outcome
    from oreo_lakehouse.store import Store


@dataclass(frozen=True)
class TableRun:
    """How it went for one table: an outcome, or the error that ended its run."""

    table: str
    outcome: Outcome | None = None
    error: Exception | None = None

    @property
    def exit_code(self) -> ExitCode:
        if self.error is None:
            return ExitCode.DONE
        return self.error.exit_code if isinstance(self.error, OreoError) else ExitCode.CANNOT_RUN


def every_known_table(store: Store) -> list[str]:
    """The names of all tables that were maintained or have an imported history under a store."""
    return [table.name for table in known_tables(store)]


def is_pattern(name: str) -> bool:
    """Whether a name stands for several tables, as `db.*` does; in a path, a star is a star."""
    return "*" in name and "/" not in name


def idle_runs(tables: Sequence[str], config: Config, options: RunOptions) -> Iterator[TableRun]:
    """The runs that are over before Spark is needed; the other tables are for `maintain_all`."""
    for table in tables:
        try:
            outcome = _idle(table, config, options)
        except ConflictError as error:
            yield TableRun(table, error=error)
            continue
        if outcome is not None:
            yield TableRun(table, outcome)


def _idle(
    table: str, config: Config, options: RunOptions, spark: SparkSession | None = None, progress: Progress = silent
) -> Outcome | None:
    try:
        return idle(table, config, options, spark, progress)
    except ConflictError:
        raise
    except OreoError:  # a run that reads the table with Spark finds the same, and may know more
        return None


def _whole(spark: SparkSession, table: str, config: Config, options: RunOptions, progress: Progress) -> Outcome:
    from oreo_lakehouse.maintenance.maintain import maintain  # not before it is needed: it loads much

    return maintain(spark, table, config, options=options, progress=progress)


def expand(spark: SparkSession, names: Sequence[str]) -> list[str]:
    """Names with patterns such as `db.*` replaced by the tables that match, each table once, in the order given.

    Raises:
        TableNotFoundError: nothing matches a pattern, or there is no such database.
    """
    found: dict[str, None] = {}
    for name in names:
        found |= dict.fromkeys(_matching(spark, name) if is_pattern(name) else [name])
    return list(found)


def _matching(spark: SparkSession, pattern: str) -> list[str]:
    namespace, _, last = pattern.rpartition(".")
    if "*" in namespace:
        raise TableNotFoundError(f"{pattern!r}: a pattern may stand for tables only, as in db.* or catalog.db.ord*")
    try:
        rows = spark.sql(f"SHOW TABLES IN {namespace}" if namespace else "SHOW TABLES").collect()
    except Exception as error:
        raise TableNotFoundError(f"cannot list the tables of {pattern!r}: {error_reason(error)}") from error
    tables = sorted(str(row["tableName"]) for row in rows if not row["isTemporary"])
    matching = [table for table in tables if fnmatchcase(table, last)]
    if not matching:
        raise TableNotFoundError(f"no table matches {pattern!r}: {len(tables)} tables are there")
    return [f"{namespace}.{quoted(table)}" if namespace else quoted(table) for table in matching]


def maintain_all(
    spark: SparkSession,
    tables: Sequence[str],
    config: Config,
    options: RunOptions | None = None,
    *,
    only_tables: bool = False,
    progress: Progress = silent,
) -> Iterator[TableRun]:
    """Maintain one table after the other; the budget is for all of them together.

    Args:
        spark: a session that can write the tables.
        tables: their names.
        config: settings.
        options: what the whole run may do and spend.
        only_tables: pass over views and tables of other formats in silence, as a pattern should.
        progress: told what is being done.
    """
    left = options or RunOptions()
    for number, table in enumerate(tables, 1):

        def tell(step: str, share: float | None = None, table: str = table, number: int = number) -> None:
            progress(f"{table} ({number} of {len(tables)}): {step}" if len(tables) > 1 else step, share)

        try:
            outcome = _idle(table, config, left, spark, tell) or _whole(spark, table, config, left, tell)
        except NotATableError as error:
            if not only_tables:
                yield TableRun(table, error=error)
            continue
        except Exception as error:  # whatever happens to one table, the others get their turn
            if was_interrupted(error):
                raise KeyboardInterrupt from error
            yield TableRun(table, error=error)
            continue
        if left.budget is not None:
            left = replace(left, budget=max(0, left.budget - outcome.bytes_rewritten))
        yield TableRun(table, outcome)
