"""The Iceberg table: the contract's methods, each in terms of the modules beside this one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import functions as sf

from oreo_lakehouse.errors import TableError, UnsupportedTableError
from oreo_lakehouse.jvm import java_list, java_session
from oreo_lakehouse.tables.certificate import quoted
from oreo_lakehouse.tables.contract import (
    CommitResult,
    LayoutCommit,
    RewritePlan,
    RowCertificate,
    Staged,
    Table,
    TableIdentity,
)
from oreo_lakehouse.tables.iceberg.commit import Swap, commit_swap
from oreo_lakehouse.tables.iceberg.features import (
    partition_columns,
    refuse_unknown_columns,
    refuse_unsupported,
    warnings_of,
)
from oreo_lakehouse.tables.iceberg.handle import java_files, load, schema_of
from oreo_lakehouse.tables.iceberg.history import layout_commits, layout_summary
from oreo_lakehouse.tables.iceberg.manifests import is_local, read_entries, read_local, read_metadata
from oreo_lakehouse.tables.iceberg.revert import inverse_of
from oreo_lakehouse.tables.iceberg.schema import columns_of
from oreo_lakehouse.tables.iceberg.staging import add_bid_column, read_back, write_staged
from oreo_lakehouse.tables.iceberg.statistics import blocks_of

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

    @classmethod
    def for_name(cls, spark: SparkSession, name: str) -> IcebergTable:
        """The table that SQL calls `name`, catalog included.

        Raises:
            TableNotFoundError: there is none.
            UnsupportedTableError: the name means a branch or a tag.
        """
        table = load(spark, name)
        parsed = java_session(spark).sessionState().sqlParser().parseMultipartIdentifier(name)
        last = str(parsed.last())
        if not str(table.name()).endswith(last):
            raise UnsupportedTableError(
                f"{name} means the branch, tag or snapshot {last!r}, but layouts go to the main branch: name the table."
            )
        return cls(spark, TableIdentity(str(table.uuid()), name, cls.format, str(table.location())))

    def version(self) -> int:
        return _current(self._load())

    def schema(self) -> dict[str, Kind]:
        return {column.name: column.kind for column in columns_of(schema_of(self.spark, self._load()))}

    def blocks(self, version: int | None = None) -> Blocks:
        table = self._load()
        location = str(table.operations().current().metadataFileLocation())
        files = java_files(self.spark)
        read = read_local if is_local(location) else lambda path: bytes(files.read(table, path))
        metadata = read_metadata(location, read)
        wanted = _current(table) if version is None else version
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
        return drawn.toArrow().sort_by(_KEY).drop_columns([_KEY]).slice(0, rows)

    def plan(self, layout: Layout, bid_column: str) -> RewritePlan:
        table, name = self._load(), self.identity.name
        refuse_unsupported(self.spark, name, table, bid_column)
        refuse_unknown_columns(self.spark, name, table, layout.columns)
        base, files = _current(table), java_files(self.spark)
        tasks = [] if base == -1 else files.plan(table, base, False)
        rows, size, count, _ = json.loads(files.totals(tasks)) if len(tasks) else (0, 0, 0, 0)
        return RewritePlan(
            table=self.identity,
            base_version=base,
            layout=layout,
            bid_column=bid_column,
            adds_bid_column=bool(bid_column) and table.schema().findField(bid_column) is None,
            rows=rows,
            files=count,
            bytes=size,
            partition_columns=partition_columns(self.spark, table),
            warnings=warnings_of(self.spark, name, table, layout.columns),
        )

    def stage(self, plan: RewritePlan, run_id: str) -> Staged:
        if plan.files == 0:
            raise TableError(f"{self.identity.name} has no files in version {plan.base_version}: nothing to lay out.")
        table = self._load()
        if plan.bid_column:
            add_bid_column(self.spark, table, plan.bid_column)
        return write_staged(self.spark, java_files(self.spark), table, plan, run_id)

    def verify(self, staged: Staged) -> RowCertificate:
        return read_back(self.spark, java_files(self.spark), self._load(), staged)

    def commit(self, staged: Staged, note: dict[str, str]) -> CommitResult:
        swap = Swap(staged.run_id, staged.removed, staged.added, layout_summary(staged, note))
        return commit_swap(self.spark, java_files(self.spark), self._load, swap)

    def discard(self, staged: Staged) -> int:
        table, files = self._load(), java_files(self.spark)
        paths = java_list(self.spark, staged.paths)
        paths.removeAll(files.referenced(table, paths))
        return int(files.delete(table, paths))

    def layout_commits(self) -> list[LayoutCommit]:
        return layout_commits(java_files(self.spark), self._load())

    def revert(self, commit: LayoutCommit, run_id: str) -> CommitResult:
        files = java_files(self.spark)
        swap = inverse_of(self.spark, files, self.identity.name, self._load(), commit, run_id)
        return commit_swap(self.spark, files, self._load, swap)

    def _load(self) -> Any:
        table = load(self.spark, self.identity.name)
        if str(table.uuid()) != self.identity.uuid:
            raise TableError(f"{self.identity.name} was dropped and created again meanwhile: start over.")
        return table


def _current(table: Any) -> int:
    snapshot = table.currentSnapshot()
    return -1 if snapshot is None else int(snapshot.snapshotId())
