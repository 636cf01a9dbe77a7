"""The `Table` contract on a Delta table."""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import functions as sf

from oreo_lakehouse.errors import ConflictError, TableError
from oreo_lakehouse.jvm import error_reason
from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.tables.commits import FOLD, LAYOUT
from oreo_lakehouse.tables.contract import (
    CommitResult,
    ForeignRewrite,
    LayoutCommit,
    Part,
    Returnable,
    RewritePlan,
    Staged,
    Table,
    TableIdentity,
)
from oreo_lakehouse.tables.delta import committing, features, staging, undoing
from oreo_lakehouse.tables.delta.actions import actions
from oreo_lakehouse.tables.delta.commitnotes import layout_commit
from oreo_lakehouse.tables.delta.fileblocks import fact_columns, kind_of_field, physical_name
from oreo_lakehouse.tables.delta.indexed import statistics_columns
from oreo_lakehouse.tables.delta.log import Log, partition_columns, schema_of
from oreo_lakehouse.tables.delta.statistics import read_blocks

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.layouts.layout import Layout
    from oreo_lakehouse.predicates.values import Kind
    from oreo_lakehouse.tables.filefacts import Verified

_FOOTERS = 8
"""Files whose footers are opened to learn how many bytes each column takes."""
_SPLITS = {"spark.sql.files.minPartitionNum": "32", "spark.sql.files.maxPartitionBytes": "128MB"}
"""Spark samples by the place of a row among its splits: the same on every machine, so that a sample is repeatable."""


class DeltaTable(Table):
    """One Delta table, in a catalog or at a path."""

    format: ClassVar[str] = "delta"

    def __init__(self, spark: SparkSession, identity: TableIdentity, log: Log) -> None:
        super().__init__(spark, identity)
        self._log = log

    @classmethod
    def for_name(cls, spark: SparkSession, name: str) -> DeltaTable:
        """A table in a catalog, named as SQL would name it."""
        return cls._of(spark, Log.for_name(spark, name))

    @classmethod
    def for_path(cls, spark: SparkSession, path: str) -> DeltaTable:
        """The table in a folder."""
        return cls._of(spark, Log.for_path(spark, path))

    @classmethod
    def _of(cls, spark: SparkSession, log: Log) -> DeltaTable:
        uuid = str(log.snapshot().metadata().id())
        return cls(spark, TableIdentity(uuid, log.sql_name, cls.format, log.location), log)

    def version(self) -> int:
        return int(self._log.snapshot().version())

    def schema(self) -> dict[str, Kind]:
        return {field.name: kind_of_field(field) for field in schema_of(self._log.snapshot()).fields}

    def column_keys(self) -> dict[str, str]:
        return {column.name: column.key for column in fact_columns(schema_of(self._log.snapshot()))}

    def column_bytes(self) -> dict[str, int]:
        snapshot = self._log.snapshot()
        fields = {physical_name(field): field.name for field in schema_of(snapshot).fields}
        try:
            held = str(actions(self.spark).columnBytes(self._log.java, self._log.files(snapshot), _FOOTERS))
        except Exception as error:
            raise TableError(f"cannot read files of {self.identity.name}: {error_reason(error)}") from error
        sizes = {fields[key]: int(size) for key, size in json.loads(held).items() if key in fields}
        return dict.fromkeys(fields.values(), 0) | sizes if sizes else {}

    def blocks(self, version: int | None = None) -> Blocks:
        return read_blocks(self._log, self._log.snapshot(version))

    def sample(
        self, rows: int, seed: int, columns: Sequence[str] | None = None, only: Collection[str] | None = None
    ) -> pa.Table:
        snapshot = self._log.snapshot()
        _, files = self._chosen(self._log.files(snapshot), only)
        total = self._rows(files)
        names = list(columns) if columns is not None else schema_of(snapshot).names
        with self._log.session(_SPLITS) as session:
            frame = self._log.read(session, snapshot, actions(self.spark).sorted(files))
            drawn = frame.select(*[sf.col(quoted(name)) for name in names])
            try:
                return (drawn.sample(rows / total, seed) if rows < total else drawn).toArrow()
            except Exception as error:
                raise TableError(f"cannot read rows of {self.identity.name}: {error_reason(error)}") from error

    @contextmanager
    def reading(self, only: Collection[str]) -> Generator[DataFrame]:
        snapshot = self._log.snapshot()
        _, files = self._chosen(self._log.files(snapshot), only)
        with self._log.session() as session:
            yield self._log.read(session, snapshot, files)

    def plan(self, layout: Layout, bid_column: str, only: Collection[str] | None = None) -> RewritePlan:
        snapshot = self._log.snapshot()
        features.refuse_unsupported(self.identity.name, snapshot)
        schema = schema_of(snapshot)
        missing = [name for name in layout.columns if name not in schema.names]
        if missing:
            raise TableError(
                f"{self.identity.name} has no column {missing[0]}, by which {layout.describe()} arranges it."
            )
        bid_column, adds = features.resolve_bid_column(self.identity.name, schema, bid_column)
        listed = statistics_columns(snapshot, tuple(filter(None, (bid_column, *layout.columns))))
        everything = self._log.files(snapshot)
        chosen, files = self._chosen(everything, only)
        _, total_bytes, _, _ = actions(self.spark).totals(everything)
        count, size, _, _ = actions(self.spark).totals(files)
        rows = self._rows(files)
        return RewritePlan(
            table=self.identity,
            base_version=int(snapshot.version()),
            layout=layout,
            bid_column=bid_column,
            adds_bid_column=adds,
            rows=rows,
            files=int(count),
            bytes=int(size),
            table_rows=rows if chosen is None else self._rows(everything),
            table_bytes=int(total_bytes),
            partition_columns=partition_columns(snapshot),
            only=chosen,
            action=LAYOUT if chosen is None else FOLD,
            warnings=features.warnings(
                snapshot, listed, bid_column if adds else "", self._log.operations() if adds else {}
            ),
        )

    def stage(self, plan: RewritePlan, run_id: str) -> Staged:
        return staging.stage(self._log, plan, run_id)

    def verify(
        self, staged: Staged, columns: Collection[str] | None = None, pairs: Collection[tuple[str, str]] = ()
    ) -> Verified:
        return staging.verify(self._log, staged, columns, pairs)

    def commit(self, staged: Staged, note: dict[str, str]) -> CommitResult:
        try:
            return committing.commit(self._log, staged, note)
        except TableError:
            with suppress(TableError):
                self.discard(staged)
            raise

    def discard(self, staged: Staged) -> int:
        return staging.discard(self._log, staged)

    def layout_commits(self) -> list[LayoutCommit]:
        return [layout_commit(version, time, note) for version, time, note in self._log.notes()]

    def revert(self, commit: LayoutCommit, run_id: str) -> CommitResult:
        return undoing.revert(self._log, commit, run_id)

    def return_to(self, commit: LayoutCommit, run_id: str, part: Part | None = None) -> CommitResult:
        return undoing.return_to(self._log, commit, run_id, part)

    def returnable(self, commit: LayoutCommit, part: Part | None = None) -> Returnable:
        return undoing.returnable(self._log, commit, part)

    def foreign_rewrites(self, since: LayoutCommit) -> list[ForeignRewrite]:
        return self._log.foreign_rewrites(since.version)

    def sweep(self, run_id: str) -> int:
        return staging.sweep(self._log, run_id)

    def _chosen(self, files: Any, only: Collection[str] | None) -> tuple[tuple[str, ...] | None, Any]:
        """The names in `only`, None if they are all, and their files."""
        names = None if only is None else tuple(sorted(set(only)))
        if names is None:
            return None, files
        found = actions(self.spark).at(files, "\n".join(names))
        if found.size() != len(names):
            raise ConflictError(
                f"{len(names) - found.size()} of the {len(names)} files to rewrite are not in {self.identity.name} any "
                "more; run again."
            )
        return (None, files) if names and found.size() == files.size() else (names, found)

    def _rows(self, files: object) -> int:
        """Rows of files with deletes applied, counted by Spark where the log does not tell."""
        _, _, rows, silent = actions(self.spark).totals(files)
        if not silent:
            return int(rows)
        with self._log.session() as session:
            return self._log.read(session, self._log.snapshot(), files).count()
