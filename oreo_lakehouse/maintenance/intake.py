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
    dialect: str = "spark",
    progress: Progress = silent,
) -> ImportSummary:
    """Add the queries in `files` that read `table` to its history; running it again adds nothing twice.

    Raises:
        HistoryError: a file cannot be read or is not in a known form.
    """
    config = load_config() if config is None else config
    progress("opening the table", None)
    dossier = open_dossier(spark, table, config)
    identity = dossier.table.identity
    return import_history(
        dossier.history,
        (table, identity.name, f"delta.`{identity.location}`"),
        dossier.table.schema(),
        files,
        progress=lambda share: progress("reading the query log", share),
        fmt=fmt,
        dialect=dialect,
    )
