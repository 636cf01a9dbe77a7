"""A Delta table's log, as far as this package asks it: snapshots, files, our own commits.

Delta's public API cannot swap files without a data change, so this goes through its Java classes; every call here has
a test that the engine still answers as we think.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from oreo_lakehouse.errors import NotATableError, TableError, UnsupportedTableError
from oreo_lakehouse.jvm import error_class, error_reason, java_session, jvm, none
from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.tables.contract import ForeignRewrite
from oreo_lakehouse.tables.delta.actions import actions, link_commits, past
from oreo_lakehouse.tables.delta.commitnotes import LAYOUT, RUN, note_of

CATALOG_MANAGED = "its commits are managed by a catalog, through which a layout cannot be committed yet"
_NOTE = "spark.databricks.delta.commitInfo.userMetadata"
_FILE_PREFIX = "spark.databricks.delta.testOnly.dataFileNamePrefix"
_SAFE = {
    # A read that forgives missing or damaged files would lose rows, and the checksum would agree with the loss.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.databricks.delta.stats.collect": "true",
    "spark.databricks.delta.optimizeWrite.enabled": "false",
    "spark.databricks.delta.autoCompact.enabled": "false",
}


Note: TypeAlias = tuple[int, datetime, dict[str, str]]
"""A commit of ours: its version, its time, and what we wrote into it."""


@dataclass(frozen=True)
class Log:
    """One table's log, opened by name or by path."""

    spark: SparkSession
    java: Any
    catalog_table: Any
    """Scala `Option[CatalogTable]`: what the catalog knows, none for a path."""
    sql_name: str
    _listed: dict[tuple[str, int], Any] = field(default_factory=dict[tuple[str, int], Any], compare=False, repr=False)
    """The files of the last two versions asked for: a run asks for them again and again, each time by a Spark job."""
    _noted: dict[str, tuple[int, list[Note]]] = field(
        default_factory=dict[str, tuple[int, list[Note]]], compare=False, repr=False
    )
    """By table id, our own commits up to a version. Commits never change, so only newer ones are read again."""

    @classmethod
    def for_name(cls, spark: SparkSession, name: str) -> Log:
        """The log of a table in a catalog."""
        try:
            parsed = java_session(spark).sessionState().sqlParser().parseTableIdentifier(name)
            table = java_session(spark).sessionState().catalog().getTableMetadata(parsed)
            log = jvm(spark).org.apache.spark.sql.delta.DeltaLog.forTable(java_session(spark), table)
        except Exception as error:
            raise TableError(f"cannot open the Delta table {name}: {error_reason(error)}") from error
        return cls(spark, log, jvm(spark).scala.Option.apply(table), name)

    @classmethod
    def for_path(cls, spark: SparkSession, path: str) -> Log:
        """The log of the table in a folder."""
        try:
            folder = jvm(spark).org.apache.hadoop.fs.Path(path)
            log = jvm(spark).org.apache.spark.sql.delta.DeltaLog.forTable(java_session(spark), folder)
        except Exception as error:
            raise TableError(f"cannot open the Delta table at {path}: {error_reason(error)}") from error
        return cls(spark, log, none(spark), f"delta.{quoted(path)}")

    @property
    def location(self) -> str:
        return str(self.java.dataPath().toString())

    def snapshot(self, version: int | None = None) -> Any:
        """Delta's Snapshot of a version, by default the newest one.

        Raises:
            NotATableError: there is no table.
            TableError: the version is gone, or the log cannot be read.
        """
        try:
            if version is not None:
                return self.java.getSnapshotAt(version, none(self.spark), self.catalog_table, False)
            newest = self.java.update(False, none(self.spark), self.catalog_table)
        except Exception as error:
            if "UnsupportedTableFeature" in error_class(error) or "InvalidProtocolVersion" in error_class(error):
                raise UnsupportedTableError(
                    f"{self.sql_name} needs a newer Delta Lake than this one: {error_reason(error)}"
                ) from error
            if "commit coordinator" in error_reason(error):  # Delta itself cannot open it without its catalog's classes
                raise UnsupportedTableError(f"{self.sql_name} cannot be rewritten: {CATALOG_MANAGED}.") from error
            what = "its log" if version is None else f"version {version}"
            raise TableError(
                f"cannot read {what} of {self.sql_name}: {error_reason(error)}. Nothing was changed; if the log is "
                "damaged, restore _delta_log from a backup, if the version is gone, use a newer one."
            ) from error
        if newest.version() < 0:
            raise NotATableError(f"{self.sql_name} is not a Delta table: its log has no commits.")
        return newest

    def files(self, snapshot: Any) -> Any:
        """The live files of a snapshot, as a Java list of AddFile."""
        key = (str(snapshot.metadata().id()), int(snapshot.version()))
        if key not in self._listed:
            try:
                found = snapshot.allFiles().collectAsList()
            except Exception as error:
                raise TableError(f"cannot read the log of {self.sql_name}: {error_reason(error)}") from error
            while len(self._listed) > 1:
                self._listed.pop(next(iter(self._listed)))
            self._listed[key] = jvm(self.spark).java.util.Collections.unmodifiableList(found)
        return self._listed[key]

    def read(self, session: SparkSession, snapshot: Any, files: Any) -> DataFrame:
        """Rows of these files, under the snapshot's schema, deletes applied; they need not be committed."""
        rows = self.java.createDataFrame(snapshot, actions(self.spark).seq(files), False, none(self.spark))
        return DataFrame(rows, session)

    @contextmanager
    def session(self, settings: Mapping[str, str] | None = None, run_id: str = "") -> Generator[SparkSession]:
        """A session of our own with the user's settings below ours; Delta asks the JVM thread's active session."""
        cloned = java_session(self.spark).cloneSession()
        for key, value in {**_SAFE, **(settings or {})}.items():
            cloned.conf().set(key, value)
        if run_id:
            # The run's id in the files' names tells whose they are after a crash. RuntimeConfig refuses this setting
            # (Delta made it for its own tests, and static), the SQLConf below it does not.
            cloned.sessionState().conf().setConfString(_FILE_PREFIX, file_prefix(run_id))
        sessions = jvm(self.spark).org.apache.spark.sql.SparkSession
        before = sessions.getActiveSession()
        sessions.setActiveSession(cloned)
        try:
            yield SparkSession(self.spark.sparkContext, cloned)
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()

    def swap(self, snapshot: Any, removed: Any, added: Any, note: Mapping[str, str]) -> int:
        """Commit on top of `snapshot` with no data change; raises whatever Delta raises."""
        with self.session({_NOTE: json.dumps(dict(note), sort_keys=True)}) as session:
            link_commits(self.spark, self.java)
            java = actions(self.spark)
            return int(java.swap(java_session(session), self.java, self.catalog_table, snapshot, removed, added))

    def notes(self, since: int = 0) -> list[Note]:
        """Our own commits from a version on, newest first."""
        newest = self.snapshot()
        table, now = str(newest.metadata().id()), int(newest.version())
        upto, known = self._noted.get(table, (-1, []))
        if upto < 0 < since:
            return self._read_notes(since)  # not all of them are known then, and none are kept
        if upto < now:
            newer = self._read_notes(upto + 1)
            known = [note for note in newer if note[0] <= now] + known  # what landed meanwhile is read next time
            self._noted[table] = (now, known)
        return [note for note in known if note[0] >= since]

    def _read_notes(self, since: int) -> list[Note]:
        text = str(past(self.spark).notes(self.java, self.catalog_table, since, LAYOUT))
        lines = [line.split(" ", 2) for line in text.split("\n") if line]
        read = [(int(version), _moment(millis), note_of(note)) for version, millis, note in lines]
        found = [(version, time, note) for version, time, note in read if note is not None]
        return sorted(found, key=lambda note: -note[0])

    def foreign_rewrites(self, since: int) -> list[ForeignRewrite]:
        """See `Table.foreign_rewrites`."""
        now = int(self.snapshot().version())
        try:
            text = str(past(self.spark).foreign(self.java, self.catalog_table, since, now, LAYOUT))
        except Exception as error:
            raise TableError(
                f"what others did to {self.sql_name} since version {since} is not known, because its log does not go "
                f"back so far: {error_reason(error)}"
            ) from error
        lines = [line.split("\t") for line in text.split("\n") if line]
        return [ForeignRewrite(int(v), operation, _moment(ms), tuple(files)) for v, ms, operation, *files in lines]

    def operations(self, newest: int = 100) -> Counter[str]:
        """What the newest commits did, counted."""
        text = str(past(self.spark).operations(self.java, self.catalog_table, newest))
        return Counter(line for line in text.split("\n") if line)

    def landed(self, run_id: str, since: int) -> int | None:
        """The version that a run committed after `since`, or None."""
        return next((version for version, _, note in self.notes(since) if note.get(RUN) == run_id), None)


def schema_of(snapshot: Any) -> StructType:
    """The table's schema with logical names."""
    return StructType.fromJson(json.loads(str(snapshot.schema().json())))


def partition_columns(snapshot: Any) -> tuple[str, ...]:
    """Logical names of the table's partition columns."""
    names = snapshot.metadata().partitionColumns()
    return tuple(str(names.apply(i)) for i in range(names.size()))


def configuration(snapshot: Any) -> dict[str, str]:
    """The table's properties."""
    return dict(json.loads(str(snapshot.metadata().json()))["metaData"].get("configuration") or {})


def _moment(millis: str) -> datetime:
    return datetime.fromtimestamp(int(millis) / 1000, UTC)


def file_prefix(run_id: str) -> str:
    """How the names of a run's files begin."""
    return f"oreo-{run_id}-"
