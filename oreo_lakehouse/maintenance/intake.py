"""Query logs into a table's history: the table gives its names and types, the history room does the reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.errors import HistoryError
from oreo_lakehouse.history.catalysttext import CatalystText
from oreo_lakehouse.history.compaction import tend
from oreo_lakehouse.history.formats import check_format
from oreo_lakehouse.history.importing import ImportSummary, import_history
from oreo_lakehouse.history.sparktypes import text_kinds
from oreo_lakehouse.maintenance.dossier import open_dossier
from oreo_lakehouse.maintenance.progress import Progress, silent
from oreo_lakehouse.maintenance.registry import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARSERS = ("auto", "catalyst", "sqlglot")


def import_queries(
    spark: SparkSession,
    table: str,
    files: Sequence[str],
    config: Config | None = None,
    *,
    fmt: str = "auto",
    dialect: str = "",
    time_zone: str | None = None,
    parser: str = "auto",
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
        parser: `sqlglot` reads statements without Spark's help; `auto` asks Spark's planner about what that leaves
            unclear and about views, `catalyst` about all Spark SQL. Nothing is executed in any case.
        progress: told how far it is.

    Raises:
        HistoryError: a file cannot be read, is not in a known form, or is about other tables only.
    """
    config = load_config() if config is None else config
    if parser not in PARSERS:
        raise HistoryError(f"no parser {parser!r}; known are {', '.join(PARSERS)}")
    check_format(fmt)
    progress("opening the table", None)
    dossier = open_dossier(spark, table, config)
    identity = dossier.table.identity
    register(dossier.store, identity)
    names = (identity.name, identity.location)
    spark_schema = spark.table(identity.name).schema
    summary = import_history(
        dossier.history,
        names,
        text_kinds(dossier.table.schema(), spark_schema),
        files,
        progress=lambda share: progress("reading the query log", share),
        fmt=fmt,
        dialect=dialect,
        time_zone=time_zone,
        keep_sql=config.history.store_sql,
        redacted=config.history.redact,
        planner=None if parser == "sqlglot" else CatalystText(spark, names, spark_schema),
        planner_first=parser == "catalyst",
    )
    if summary.other_tables and not summary.imported and not summary.known_before:
        raise HistoryError(
            f"none of the {summary.read:,} statements reads {identity.name}: {summary.other_tables:,} are about other "
            "tables. Nothing was imported; is it the log of another table, or does it use another name for this one?"
        )
    progress("packing", None)
    tend(dossier.history, config.history)
    return summary
