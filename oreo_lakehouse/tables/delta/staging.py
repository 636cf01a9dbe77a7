"""Writing the rows of a plan's files into new files that no reader sees, and reading them back."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import TimestampType

from oreo_lakehouse.errors import ConflictError, TableError, VerificationError
from oreo_lakehouse.jvm import error_reason, none, root_reason, scala_object, scala_seq, some
from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.tables.arrange import arrange, numbered, rows_per_file
from oreo_lakehouse.tables.certificate import certify, observed
from oreo_lakehouse.tables.contract import RewritePlan, RowCertificate, Staged
from oreo_lakehouse.tables.delta import footers
from oreo_lakehouse.tables.delta.actions import actions, documents, json_lines, link_commits
from oreo_lakehouse.tables.delta.fileblocks import fact_columns
from oreo_lakehouse.tables.delta.indexed import STATISTICS_COLUMNS, statistics_columns
from oreo_lakehouse.tables.delta.log import Log, file_prefix, partition_columns, schema_of
from oreo_lakehouse.tables.factpass import SETTINGS, chosen, verified
from oreo_lakehouse.tables.filefacts import Verified

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def prepare(log: Log, plan: RewritePlan) -> Any:
    """The snapshot to rewrite from: the plan's version, or the one after our own ALTER TABLE statements.

    The BID column has an ALTER of its own because a change of metadata inside the layout commit would make every
    concurrent append fail.
    """
    base = log.snapshot(plan.base_version)
    needed = tuple(filter(None, (plan.bid_column, *plan.layout.columns)))
    listed = statistics_columns(base, needed)
    if not plan.adds_bid_column and listed is None:
        return base
    try:
        link_commits(log.spark, log.java)
        if plan.adds_bid_column and plan.bid_column not in schema_of(log.snapshot()).names:
            log.spark.sql(
                f"ALTER TABLE {log.sql_name} ADD COLUMNS ({quoted(plan.bid_column)} INT COMMENT 'block of the layout')"
            )
        if listed is not None:
            value = listed.replace("\\", "\\\\").replace("'", "\\'")
            log.spark.sql(f"ALTER TABLE {log.sql_name} SET TBLPROPERTIES ('{STATISTICS_COLUMNS}' = '{value}')")
    except Exception as error:
        raise TableError(f"cannot prepare {log.sql_name} for its first layout: {error_reason(error)}") from error
    return log.snapshot()


def stage(log: Log, plan: RewritePlan, run_id: str) -> Staged:
    """Write one block a file; see `Table.stage`."""
    if plan.only == ():
        raise TableError(f"no file of {log.sql_name} was named: there is nothing to fold.")
    snapshot, java = prepare(log, plan), actions(log.spark)
    files = log.files(snapshot) if plan.only is None else java.at(log.files(snapshot), "\n".join(plan.only))
    if snapshot.version() != plan.base_version:
        files = java.select(files, java.keys(log.files(log.snapshot(plan.base_version))), True)
    if files.size() != plan.files:
        raise ConflictError(
            f"{log.sql_name} was changed while its rewrite was prepared; nothing was written, run again."
        )
    settings = {"spark.sql.files.maxRecordsPerFile": str(rows_per_file(plan.table_rows, plan.layout.blocks))}
    try:
        with log.session(settings, run_id) as session:
            certificate, added = _write(log, session, snapshot, files, plan)
        _drop_empty(log, plan, added, run_id)
    except Exception as error:
        with suppress(Exception):  # the first error is the one to tell
            sweep(log, run_id)
        if isinstance(error, TableError):
            raise
        raise TableError(
            f"could not write new files for {log.sql_name}: {root_reason(error)}. The table is as it was."
        ) from error
    return Staged(
        layout_id=plan.layout.id,
        run_id=run_id,
        base_version=int(snapshot.version()),
        certificate=certificate,
        paths=tuple(str(add["path"]) for add in added),
        rows=certificate.rows,
        bytes=sum(int(add["size"]) for add in added),
        replaced_files=int(files.size()),
        bid_column=plan.bid_column,
        action=plan.action,
        shard=plan.shard,
        added=tuple(added),
        removed=tuple({"key": key} for key in str(java.keys(files)).split("\n") if key),
    )


def _write(
    log: Log, session: SparkSession, snapshot: Any, files: Any, plan: RewritePlan
) -> tuple[RowCertificate, list[dict[str, Any]]]:
    rows = log.read(session, snapshot, files)
    # Rows keep their ids: Delta adds them as columns here and knows them again when it writes.
    tracked = scala_object(log.spark, "org.apache.spark.sql.delta.RowTracking").preserveRowTrackingColumns
    rows = DataFrame(tracked(rows._jdf, snapshot), session)
    free = {plan.bid_column, *(set(rows.columns) - set(schema_of(snapshot).names))}
    watched, certificate = observed(numbered(rows, plan.layout, plan.bid_column), free, f"oreo-{plan.layout.id}")
    made = arrange(watched, plan.layout, plan.bid_column, plan.partition_columns)
    transaction = log.java.startTransaction(log.catalog_table, some(log.spark, snapshot))
    lean = plan.rows >= footers.ROWS
    if lean:
        footers.collect_only_untold(session, transaction, snapshot)
    java = actions(log.spark)
    written = java.list(transaction.writeFiles(made._jdf, none(log.spark), True, scala_seq(log.spark, [])))
    added = [document["add"] for document in documents(str(java.json(written)))]
    if lean:
        added = footers.completed(log, snapshot, written, added)
    for add in added:
        add["dataChange"] = False
    return certificate() or certify(log.read(session, snapshot, files), [plan.bid_column]), added


def _drop_empty(log: Log, plan: RewritePlan, added: list[dict[str, Any]], run_id: str) -> None:
    """Delete the file without rows that Spark writes where block 0 is empty, and that Delta leaves out."""
    first = f"{file_prefix(run_id)}part-00000-"
    if not plan.partition_columns and not any(f"/{add['path']}".rpartition("/")[2].startswith(first) for add in added):
        java = actions(log.spark)
        java.delete(log.java, java.named(log.java, first))


def verify(
    log: Log, staged: Staged, columns: Collection[str] | None = None, pairs: Collection[tuple[str, str]] = ()
) -> Verified:
    """Read the staged files back; see `Table.verify`."""
    java = actions(log.spark)
    snapshot = log.snapshot(staged.base_version)
    names = {path.rpartition("/")[2]: path for path in staged.paths}
    needed = {staged.bid_column, *(name for pair in pairs for name in pair)}
    # The text of a timestamp in a partition's name may mean another instant in another session's time zone.
    unsure = {
        name for name in partition_columns(snapshot) if isinstance(schema_of(snapshot)[name].dataType, TimestampType)
    }
    able = [column for column in fact_columns(schema_of(snapshot)) if column.name not in unsure]
    with log.session(SETTINGS) as session:
        found = verified(
            log.read(session, snapshot, added_files(log, staged)),
            sf.input_file_name(),
            lambda uri: names.get(uri.rpartition("/")[2], uri),
            chosen(able, columns, needed),
            pairs,
            staged.bid_column,
        )
        if found.certificate == staged.certificate:
            return found
        # The observed certificate counts a stage twice that Spark ran twice: ask the input again before giving up.
        keys = "\n".join(str(item["key"]) for item in staged.removed)
        inputs = java.select(log.files(snapshot), keys, True)
        wanted = certify(log.read(session, snapshot, inputs), [staged.bid_column])
    if found.certificate == wanted:
        return found
    raise VerificationError(
        f"the new files of {log.sql_name} hold {found.certificate.rows} rows (checksum "
        f"{found.certificate.checksum}), its present files "
        f"{wanted.rows} (checksum {wanted.checksum}): nothing was committed. Please report it with the schema."
    )


def added_files(log: Log, staged: Staged) -> Any:
    """The staged files as a Java list of AddFile."""
    return actions(log.spark).parse(json_lines({"add": add} for add in staged.added))


def discard(log: Log, staged: Staged) -> int:
    """Delete staged files that the log knows nothing of; see `Table.discard`."""
    java = actions(log.spark)
    return _delete(log, java.paths(log.java, added_files(log, staged)))


def sweep(log: Log, run_id: str) -> int:
    """Delete the files of a run by their names, also after a process that died while it wrote; see `Table.sweep`."""
    return _delete(log, actions(log.spark).named(log.java, file_prefix(run_id)))


def _delete(log: Log, paths: Any) -> int:
    return 0 if paths.isEmpty() else int(actions(log.spark).deleteUnknown(log.java, log.snapshot(), paths))
