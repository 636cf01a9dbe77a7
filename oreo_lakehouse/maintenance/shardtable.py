"""One shard of a table, as maintenance sees it: a table of its own, whose files are some of the whole's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from oreo_lakehouse.errors import RollbackError, TableError
from oreo_lakehouse.tables.commits import (
    FOLD,
    LAYOUT,
    CommitResult,
    ForeignRewrite,
    LayoutCommit,
    Part,
    Returnable,
    forward,
)
from oreo_lakehouse.tables.contract import RewritePlan, Staged, Table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.layouts.layout import Layout
    from oreo_lakehouse.maintenance.shards import Shard
    from oreo_lakehouse.predicates.values import Kind
    from oreo_lakehouse.tables.filefacts import Verified


class ShardTable(Table):
    """The files of one shard; commits say whose they are, and those of other shards are not seen."""

    def __init__(self, whole: Table, shard: Shard, partitions: Collection[str]) -> None:
        super().__init__(whole.spark, whole.identity)
        self.whole, self.shard = whole, shard
        self._partitions = frozenset(partitions)
        self._known: tuple[int, Blocks] | None = None

    def version(self) -> int:
        return self.whole.version()

    def schema(self) -> dict[str, Kind]:
        return self.whole.schema()

    def column_keys(self) -> dict[str, str]:
        return self.whole.column_keys()

    def column_bytes(self) -> dict[str, int]:
        return self.whole.column_bytes()

    def blocks(self, version: int | None = None) -> Blocks:
        version = self.whole.version() if version is None else version
        if self._known is None or self._known[0] != version:
            self._known = version, self._mine(self.whole.blocks(version))
        return self._known[1]

    def _mine(self, found: Blocks) -> Blocks:
        return found.take(np.array([at for at, text in enumerate(found.partitions) if text in self._partitions], int))

    def sample(
        self, rows: int, seed: int, columns: Sequence[str] | None = None, only: Collection[str] | None = None
    ) -> pa.Table:
        return self.whole.sample(rows, seed, columns, self.blocks().names if only is None else only)

    def reading(self, only: Collection[str]) -> AbstractContextManager[DataFrame]:
        return self.whole.reading(only)

    def plan(self, layout: Layout, bid_column: str, only: Collection[str] | None = None) -> RewritePlan:
        mine = self.blocks()
        plan = self.whole.plan(layout, bid_column, mine.names if only is None else only)
        return replace(
            plan,
            table_rows=mine.total_rows,
            table_bytes=mine.total_bytes,
            action=LAYOUT if only is None else FOLD,
            shard=self.shard.id,
        )

    def stage(self, plan: RewritePlan, run_id: str) -> Staged:
        return self.whole.stage(plan, run_id)

    def verify(
        self, staged: Staged, columns: Collection[str] | None = None, pairs: Collection[tuple[str, str]] = ()
    ) -> Verified:
        return self.whole.verify(staged, columns, pairs)

    def commit(self, staged: Staged, note: dict[str, str]) -> CommitResult:
        return self.whole.commit(staged, note)

    def discard(self, staged: Staged) -> int:
        return self.whole.discard(staged)

    def sweep(self, run_id: str) -> int:
        return self.whole.sweep(run_id)

    def layout_commits(self) -> list[LayoutCommit]:
        """Those of this shard, and those of the whole table from before it had shards."""
        return [commit for commit in self.whole.layout_commits() if commit.shard in ("", self.shard.id)]

    def foreign_rewrites(self, since: LayoutCommit) -> list[ForeignRewrite]:
        return self.whole.foreign_rewrites(since)

    def revert(self, commit: LayoutCommit, run_id: str) -> CommitResult:
        return self.whole.revert(commit, run_id)

    def return_to(self, commit: LayoutCommit, run_id: str, part: Part | None = None) -> CommitResult:
        return self.whole.return_to(commit, run_id, part or self._part(commit))

    def returnable(self, commit: LayoutCommit, part: Part | None = None) -> Returnable:
        try:
            return self.whole.returnable(commit, part or self._part(commit))
        except RollbackError as error:
            return Returnable(False, None, str(error))

    def _part(self, commit: LayoutCommit) -> Part:
        """This shard after a commit and now."""
        try:
            then = self.whole.blocks(commit.version)
        except TableError as error:
            raise RollbackError(
                f"layout {commit.layout_id} of {self.shard.label} in {self.identity.name} cannot be returned to: "
                f"{error}. {forward(self.identity.name)}"
            ) from error
        if then.names and not then.partitions:
            raise RollbackError(
                f"{self.identity.name} was partitioned otherwise in version {commit.version}, so {self.shard.label} "
                f"cannot return to it. {forward(self.identity.name)}"
            )
        return Part(self.shard.id, frozenset(self._mine(then).names) | frozenset(self.blocks().names))

    def retain(self, commit: LayoutCommit, days: float) -> None:
        self.whole.retain(commit, days)

    def release(self, commit: LayoutCommit) -> bool:
        return self.whole.release(commit)
