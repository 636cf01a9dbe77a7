"""The Iceberg table: the contract's methods, each in terms of the modules beside this one."""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar

from oreo_lakehouse.errors import ConflictError, TableError, UnsupportedTableError
from oreo_lakehouse.jvm import java_session
from oreo_lakehouse.tables.commits import FOLD, LAYOUT
from oreo_lakehouse.tables.contract import (
    CommitResult,
    Committed,
    ForeignRewrite,
    LayoutCommit,
    Part,
    Returnable,
    RewritePlan,
    Staged,
    Table,
    TableIdentity,
)
from oreo_lakehouse.tables.iceberg.commit import Swap, commit_swap
from oreo_lakehouse.tables.iceberg.engine import Engine, change_metadata, explained, version_of
from oreo_lakehouse.tables.iceberg.features import (
    partition_columns,
    refuse_unknown_columns,
    refuse_unsupported,
    warnings_of,
)
from oreo_lakehouse.tables.iceberg.history import (
    foreign_rewrites,
    layout_commits,
    layout_summary,
    rollback_summary,
)
from oreo_lakehouse.tables.iceberg.manifests import is_local, read_entries, read_local, read_metadata
from oreo_lakehouse.tables.iceberg.retention import release_base, retain_base, retained_runs
from oreo_lakehouse.tables.iceberg.sampling import draw, engine_tasks
from oreo_lakehouse.tables.iceberg.schema import columns_of
from oreo_lakehouse.tables.iceberg.staging import (
    add_bid_column,
    read_back,
    read_group,
    staged_tasks,
    sweep,
    write_staged,
)
from oreo_lakehouse.tables.iceberg.statistics import blocks_of
from oreo_lakehouse.tables.iceberg.undoing import inverse_of, returnable, way_back

_MEASURED = 1_000
"""Files whose columns are measured: as many as tell how wide each is."""

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.layouts.layout import Layout
    from oreo_lakehouse.predicates.values import Kind
    from oreo_lakehouse.tables.filefacts import Verified


class IcebergTable(Table):
    """A table in an Iceberg catalog that Spark knows, on its main branch."""

    format: ClassVar[str] = "iceberg"

    def __init__(self, spark: SparkSession, identity: TableIdentity) -> None:
        super().__init__(spark, identity)
        self._engine = Engine(spark)

    @classmethod
    def for_name(cls, spark: SparkSession, name: str) -> IcebergTable:
        """The table that SQL calls `name`, catalog included.

        Raises:
            TableNotFoundError: there is none.
            UnsupportedTableError: the name means a branch or a tag.
        """
        table = Engine(spark).load(name)
        last = str(java_session(spark).sessionState().sqlParser().parseMultipartIdentifier(name).last())
        if not str(table.name()).endswith(last):
            raise UnsupportedTableError(
                f"{name} means the branch, tag or snapshot {last!r}, but layouts go to the main branch: name the table."
            )
        return cls(spark, TableIdentity(str(table.uuid()), name, cls.format, str(table.location())))

    def version(self) -> int:
        return version_of(self._load())

    def schema(self) -> dict[str, Kind]:
        return {column.name: column.kind for column in columns_of(self._engine.schema(self._load()))}

    def column_keys(self) -> dict[str, str]:
        return {column.name: str(column.id) for column in columns_of(self._engine.schema(self._load()))}

    def blocks(self, version: int | None = None) -> Blocks:
        table = self._load()
        location = table.operations().current().metadataFileLocation()
        local = is_local(location or table.location())
        read = read_local if local else lambda path: bytes(self._engine.files.read(table, path))
        with explained("read the metadata of", self.identity.name):
            # A REST catalog need not tell where the metadata is.
            metadata = read_metadata(location, read) if location else self._engine.metadata(table)
            wanted = version_of(table) if version is None else version
            if wanted == -1:
                return blocks_of(metadata, [])
            snapshot = next((s for s in metadata.get("snapshots", []) if s["snapshot-id"] == wanted), None)
            if snapshot is None:
                raise TableError(f"{self.identity.name} has no snapshot {wanted}: it has expired, or never was there.")
            return blocks_of(metadata, read_entries(snapshot, read))

    def column_bytes(self) -> dict[str, int]:
        table = self._load()
        with explained("read the manifests of", self.identity.name):
            return json.loads(self._engine.files.columnBytes(table, _MEASURED))

    def sample(
        self, rows: int, seed: int, columns: Sequence[str] | None = None, only: Collection[str] | None = None
    ) -> pa.Table:
        self._load()
        with explained("sample", self.identity.name):
            if only is None:
                frame, total = self.spark.table(self.identity.name), self.blocks().total_rows
                return draw(frame, rows, total, seed, columns or frame.columns)
            table = self._load()
            tasks = engine_tasks(self._engine, table, only)
            total = json.loads(self._engine.files.totals(tasks))[0]
            with staged_tasks(self._engine, table, tasks) as group:
                frame = read_group(self._engine, group, tasks)
                return draw(frame, rows, total, seed, columns or list(self.schema()))

    @contextmanager
    def reading(self, only: Collection[str]) -> Generator[DataFrame]:
        table = self._load()
        tasks = engine_tasks(self._engine, table, only)
        with staged_tasks(self._engine, table, tasks) as group:
            yield read_group(self._engine, group, tasks)

    def plan(self, layout: Layout, bid_column: str, only: Collection[str] | None = None) -> RewritePlan:
        engine, table, name = self._engine, self._load(), self.identity.name
        refuse_unsupported(engine, name, table, bid_column)
        refuse_unknown_columns(engine, name, table, layout.columns)
        base = version_of(table)
        chosen = None if only is None else tuple(sorted(set(only)))
        rows, size, count, table_rows, table_bytes, everything = 0, 0, 0, 0, 0, 0
        if base != -1:
            with explained("list the files of", name):
                tasks = engine.files.plan(table, base, False)
                table_rows, table_bytes, everything, _ = json.loads(engine.files.totals(tasks))
                tasks = tasks if chosen is None else engine.files.only(tasks, engine.texts(chosen))
                rows, size, count, _ = json.loads(engine.files.totals(tasks))
        if chosen is not None and len(chosen) != count:
            missing = f"{len(chosen) - count} of the {len(chosen)} files to rewrite"
            raise ConflictError(f"{missing} are not in {name} any more; run again.")
        return RewritePlan(
            table=self.identity,
            base_version=base,
            layout=layout,
            bid_column=bid_column,
            adds_bid_column=bool(bid_column) and table.schema().findField(bid_column) is None,
            rows=rows,
            files=count,
            bytes=size,
            table_rows=table_rows,
            table_bytes=table_bytes,
            partition_columns=partition_columns(engine, table),
            only=None if chosen and count == everything else chosen,
            action=LAYOUT if chosen is None or (chosen and count == everything) else FOLD,
            warnings=warnings_of(engine, name, table, layout.columns),
        )

    def stage(self, plan: RewritePlan, run_id: str) -> Staged:
        if plan.files == 0:
            raise TableError(f"{self.identity.name} has no files in version {plan.base_version}: nothing to lay out.")
        with explained("stage a rewrite of", self.identity.name):
            if plan.bid_column:
                change_metadata(self._load, lambda table: add_bid_column(self._engine, table, plan.bid_column))
            table = self._load()
            try:
                return write_staged(self._engine, table, plan, run_id)
            except Exception:  # whatever it was is raised again; only its files go
                with suppress(Exception):  # the first error is the one to tell
                    sweep(self._engine, table, run_id)
                raise

    def verify(
        self, staged: Staged, columns: Collection[str] | None = None, pairs: Collection[tuple[str, str]] = ()
    ) -> Verified:
        with explained("read back the staged files of", self.identity.name):
            return read_back(self._engine, self._load(), staged, columns, pairs)

    def commit(self, staged: Staged, note: dict[str, str]) -> CommitResult:
        swap = Swap(staged.run_id, staged.removed, staged.added, layout_summary(staged, note))
        try:
            return commit_swap(self._engine, self.identity.name, self._load, swap)
        except TableError:
            with suppress(TableError):
                self.discard(staged)
            raise

    def discard(self, staged: Staged) -> int:
        table, files = self._load(), self._engine.files
        with explained("discard staged files of", self.identity.name):
            kept = set(json.loads(files.referenced(table, self._engine.texts(staged.paths))))
            return int(files.delete(table, self._engine.texts(path for path in staged.paths if path not in kept)))

    def sweep(self, run_id: str) -> int:
        with explained("look for the files of a dead run of", self.identity.name):
            return sweep(self._engine, self._load(), run_id)

    def layout_commits(self) -> list[LayoutCommit]:
        return layout_commits(self._engine, self._load())

    def revert(self, commit: LayoutCommit, run_id: str) -> CommitResult:
        table, name = self._load(), self.identity.name
        with explained("undo a layout of", name):
            swap = inverse_of(self._engine, name, table, [commit], run_id, rollback_summary(commit, run_id))
        return commit_swap(self._engine, name, self._load, swap)

    def return_to(self, commit: LayoutCommit, run_id: str, part: Part | None = None) -> CommitResult:
        table, name = self._load(), self.identity.name
        with explained("look into the history of", name):
            swap = way_back(self._engine, name, table, commit, run_id, part)
        if swap is None:
            return Committed(version_of(table))
        return commit_swap(self._engine, name, self._load, swap)

    def returnable(self, commit: LayoutCommit, part: Part | None = None) -> Returnable:
        return returnable(self._engine, self.identity.name, self._load(), commit, part)

    def foreign_rewrites(self, since: LayoutCommit) -> list[ForeignRewrite]:
        with explained("look into the history of", self.identity.name):
            return foreign_rewrites(self._engine, self.identity.name, self._load(), since.version)

    def retain(self, commit: LayoutCommit, days: float) -> None:
        name = self.identity.name
        with explained("tag a layout of", name):
            change_metadata(self._load, lambda table: retain_base(name, table, commit, days))

    def release(self, commit: LayoutCommit) -> bool:
        with explained("untag a layout of", self.identity.name):
            return change_metadata(self._load, lambda table: release_base(table, commit))

    def retained(self) -> dict[str, int]:
        """The run ids of layout commits that `retain` keeps undoable, each with the snapshot before it."""
        return retained_runs(self._load())

    def _load(self) -> Any:
        table = self._engine.load(self.identity.name)
        if str(table.uuid()) != self.identity.uuid:
            raise TableError(f"{self.identity.name} was dropped and created again meanwhile: start over.")
        return table
