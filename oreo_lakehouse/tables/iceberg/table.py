"""The Iceberg table: the contract's methods, each in terms of the modules beside this one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import functions as sf

from oreo_lakehouse.errors import TableError, UnsupportedTableError
from oreo_lakehouse.jvm import java_session
from oreo_lakehouse.tables.certificate import quoted
from oreo_lakehouse.tables.contract import (
    CommitResult,
    Committed,
    LayoutCommit,
    RewritePlan,
    RowCertificate,
    Staged,
    Table,
    TableIdentity,
)
from oreo_lakehouse.tables.iceberg.commit import Swap, commit_swap
from oreo_lakehouse.tables.iceberg.engine import Engine, explained, version_of
from oreo_lakehouse.tables.iceberg.features import (
    partition_columns,
    refuse_unknown_columns,
    refuse_unsupported,
    warnings_of,
)
from oreo_lakehouse.tables.iceberg.history import layout_commits, layout_summary, return_summary, rollback_summary
from oreo_lakehouse.tables.iceberg.manifests import is_local, read_entries, read_local, read_metadata
from oreo_lakehouse.tables.iceberg.retention import release_base, retain_base, retained_runs
from oreo_lakehouse.tables.iceberg.schema import columns_of
from oreo_lakehouse.tables.iceberg.staging import add_bid_column, read_back, write_staged
from oreo_lakehouse.tables.iceberg.statistics import blocks_of
from oreo_lakehouse.tables.iceberg.undoing import inverse_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.layouts.layout import Layout
    from oreo_lakehouse.predicates.values import Kind

_KEY = "__oreo_sample_key"
_MARGIN = 1.2
"""How many more rows a sample draws than asked for, so that it rarely has too few."""


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

    def sample(self, rows: int, seed: int, columns: Sequence[str] | None = None) -> pa.Table:
        # A hash of a row's place decides, not Spark's own sampling, which depends on the order of tasks.
        self._load()
        table = self.spark.table(self.identity.name)
        total = max(1, self.blocks().total_rows)
        wanted = [sf.col(quoted(name)) for name in (table.columns if columns is None else columns)]
        key = sf.xxhash64(sf.lit(seed), sf.col("_file"), sf.col("_pos"))
        share = min(1.0, (_MARGIN * rows + 100) / total)
        drawn = table.select(*wanted, key.alias(_KEY))
        if share < 1:
            drawn = drawn.where(sf.col(_KEY) < sf.lit(int((share - 0.5) * 2**64)))
        with explained("sample", self.identity.name):
            found = drawn.toArrow()
        return found.sort_by(_KEY).drop_columns([_KEY]).slice(0, rows)

    def plan(self, layout: Layout, bid_column: str) -> RewritePlan:
        engine, table, name = self._engine, self._load(), self.identity.name
        refuse_unsupported(engine, name, table, bid_column)
        refuse_unknown_columns(engine, name, table, layout.columns)
        base = version_of(table)
        rows, size, count = 0, 0, 0
        if base != -1:
            with explained("list the files of", name):
                rows, size, count, _ = json.loads(engine.files.totals(engine.files.plan(table, base, False)))
        return RewritePlan(
            table=self.identity,
            base_version=base,
            layout=layout,
            bid_column=bid_column,
            adds_bid_column=bool(bid_column) and table.schema().findField(bid_column) is None,
            rows=rows,
            files=count,
            bytes=size,
            partition_columns=partition_columns(engine, table),
            warnings=warnings_of(engine, name, table, layout.columns),
        )

    def stage(self, plan: RewritePlan, run_id: str) -> Staged:
        if plan.files == 0:
            raise TableError(f"{self.identity.name} has no files in version {plan.base_version}: nothing to lay out.")
        table = self._load()
        with explained("stage a rewrite of", self.identity.name):
            if plan.bid_column:
                add_bid_column(self._engine, table, plan.bid_column)
            return write_staged(self._engine, table, plan, run_id)

    def verify(self, staged: Staged) -> RowCertificate:
        with explained("read back the staged files of", self.identity.name):
            return read_back(self._engine, self._load(), staged)

    def commit(self, staged: Staged, note: dict[str, str]) -> CommitResult:
        swap = Swap(staged.run_id, staged.removed, staged.added, layout_summary(staged, note))
        return commit_swap(self._engine, self.identity.name, self._load, swap)

    def discard(self, staged: Staged) -> int:
        table, files = self._load(), self._engine.files
        with explained("discard staged files of", self.identity.name):
            kept = set(json.loads(files.referenced(table, self._engine.texts(staged.paths))))
            return int(files.delete(table, self._engine.texts(path for path in staged.paths if path not in kept)))

    def layout_commits(self) -> list[LayoutCommit]:
        return layout_commits(self._engine, self._load())

    def revert(self, commit: LayoutCommit, run_id: str) -> CommitResult:
        return self._undo([commit], run_id, rollback_summary(commit, run_id))

    def return_to(self, target: LayoutCommit, run_id: str) -> CommitResult:
        """Bring an earlier layout's own files back, by one commit that writes no data; rows appended since are kept.

        Raises:
            RollbackError: rows of a later layout were changed, or files or snapshots are gone.
        """
        later = list(takewhile(lambda commit: commit.version != target.version, self.layout_commits()))
        if not later:
            return Committed(self.version())
        return self._undo(later, run_id, return_summary(target, run_id, self.version()))

    def retain(self, commit: LayoutCommit, days: float) -> None:
        """Keep a layout commit undoable for so long: expire_snapshots leaves the files that it replaced alone."""
        retain_base(self.identity.name, self._load(), commit, days)

    def release(self, commit: LayoutCommit) -> bool:
        """Give the files that a layout commit replaced free; whether they were retained."""
        return release_base(self._load(), commit)

    def retained(self) -> dict[str, int]:
        """The run ids of layout commits that `retain` keeps undoable, each with the snapshot before it."""
        return retained_runs(self._load())

    def _undo(self, commits: Sequence[LayoutCommit], run_id: str, summary: dict[str, str]) -> CommitResult:
        with explained("undo a layout of", self.identity.name):
            swap = inverse_of(self._engine, self.identity.name, self._load(), commits, run_id, summary)
        return commit_swap(self._engine, self.identity.name, self._load, swap)

    def _load(self) -> Any:
        table = self._engine.load(self.identity.name)
        if str(table.uuid()) != self.identity.uuid:
            raise TableError(f"{self.identity.name} was dropped and created again meanwhile: start over.")
        return table
