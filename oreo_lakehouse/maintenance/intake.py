"""Query logs into a table's history: the table gives its names and types, the history room does the reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.history.importing import ImportSummary, import_history
from oreo_lakehouse.maintenance.dossier import open_dossier
from oreo_lakehouse.maintenance.progress import Progress, silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def import_queries(
    spark: SparkSession,
    table: str,
    files: Sequence[str],
    config: Config | None = None,
    *,
    fmt: str = "auto",
    dialect: str = "",
    time_zone: str | None = None,
    progress: Progress = silent,
) -> ImportSummary:
    """Add the queries in `files` that read `table` to its history; running it again adds nothing twice.

    Args:
        spark: a session that can read the table.
        table: as in SQL, or a path.
        files: JSON lines, CSV or Parquet, also gzipped, with `statement_text` and `start_time`.
        config: settings; by default those that `load_config()` finds.
        fmt: whose names the files' fields have; `auto` finds out.
        dialect: of the SQL; by default what the statements or their format say, then Spark's.
        time_zone: of the sessions that ran them, where a statement does not say; without it, literal times are taken
            as known to within a day.
        progress: told how far it is.

    Raises:
        HistoryError: a file cannot be read or is not in a known form.
    """
    config = load_config() if config is None else config
    progress("opening the table", None)
    dossier = open_dossier(spark, table, config)
    identity = dossier.table.identity
    return import_history(
        dossier.history,
        (identity.name, identity.location),
        dossier.table.schema(),
        files,
        progress=lambda share: progress("reading the query log", share),
        fmt=fmt,
        dialect=dialect,
        time_zone=time_zone,
    )
