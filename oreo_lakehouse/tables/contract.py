"""The table contract: everything that maintenance may ask of a table, whatever its format.

A layout becomes a commit in four steps, each a method: `plan` pins a version and freezes what will happen, `stage`
writes new files that nobody sees, `verify` reads them back and compares rows, `commit` makes them visible in one
atomic step that changes no data. `discard` removes staged files, and is called only when it is certain that they were
not committed. A crash between any two steps leaves a table that reads the same.

A format is one module with one subclass of `Table`, one line in `resolve.py` and one fixture in the shared tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.tables.commits import (
    LAYOUT,
    CommitResult,
    Committed,
    Conflicted,
    ForeignRewrite,
    LayoutCommit,
    Part,
    Returnable,
    Unknown,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.layouts.layout import Layout
    from oreo_lakehouse.tables.filefacts import Verified


__all__ = [
    "CommitResult",
    "Committed",
    "Conflicted",
    "ForeignRewrite",
    "LayoutCommit",
    "Part",
    "Returnable",
    "RewritePlan",
    "RowCertificate",
    "Staged",
    "Table",
    "TableIdentity",
    "Unknown",
]


@dataclass(frozen=True)
class TableIdentity:
    """Who a table is: the format's own UUID stays through renames and is the same by name and by path."""

    uuid: str
    name: str
    """As SQL may write it, quoted where needed."""
    format: str
    location: str


@dataclass(frozen=True)
class RewritePlan:
    """Frozen: what `--dry-run` prints is exactly what a run executes."""

    table: TableIdentity
    base_version: int
    layout: Layout
    bid_column: str
    """Name of the BID column, or "" for none."""
    adds_bid_column: bool
    """The BID column does not exist yet: staging adds it by its own ALTER TABLE first."""
    rows: int
    files: int
    bytes: int
    """Of the files that are rewritten."""
    table_rows: int
    table_bytes: int
    """Of the whole version, by which a block is measured even when only some files are rewritten."""
    partition_columns: tuple[str, ...]
    only: tuple[str, ...] | None = None
    """The files to rewrite, by their names in `Blocks.names`; None for all of them."""
    warnings: tuple[str, ...] = ()
    action: str = LAYOUT
    """What the commit will be called: see `LayoutCommit.action`."""
    shard: str = ""
    """The shard that the files belong to; see `LayoutCommit.shard`."""


@dataclass(frozen=True)
class RowCertificate:
    """Evidence that two sets of rows are the same multiset: their count and an order-independent checksum."""

    rows: int
    checksum: str


@dataclass(frozen=True)
class Staged:
    """New files on storage that no reader sees yet. Plain data, so that another process can finish or discard it."""

    layout_id: str
    run_id: str
    base_version: int
    certificate: RowCertificate
    """Of the input rows, taken while they were rewritten."""
    paths: tuple[str, ...]
    rows: int
    bytes: int
    replaced_files: int
    bid_column: str = ""
    """As in the plan: the one column that a rewrite may change."""
    action: str = LAYOUT
    """As in the plan."""
    shard: str = ""
    """As in the plan."""
    added: tuple[dict[str, Any], ...] = ()
    """The format's own description of the new files, as JSON values."""
    removed: tuple[dict[str, Any], ...] = ()
    """The format's own description of the replaced files, as JSON values."""


class Table(ABC):
    """One Delta or Iceberg table. Every method reads the table's present state unless a version is given."""

    format: ClassVar[str]

    def __init__(self, spark: SparkSession, identity: TableIdentity) -> None:
        self.spark = spark
        self.identity = identity

    @abstractmethod
    def version(self) -> int:
        """The current version: Delta's version number, Iceberg's snapshot id (-1 before the first snapshot)."""

    @abstractmethod
    def schema(self) -> dict[str, Kind]:
        """Top-level columns by logical name, the BID column included once it exists."""

    @abstractmethod
    def column_keys(self) -> dict[str, str]:
        """Logical column name -> the column's name inside data files, by which file facts go."""

    @abstractmethod
    def column_bytes(self) -> dict[str, int]:
        """Bytes on storage by top-level column, of some of the present files: for what columns weigh against others.

        Columns that files do not hold, such as Delta's partition columns, have none. Where nothing can be told, {}.
        """

    @abstractmethod
    def blocks(self, version: int | None = None) -> Blocks:
        """The files' statistics as block metadata, deletes applied to `rows` where they are known."""

    @abstractmethod
    def sample(
        self, rows: int, seed: int, columns: Sequence[str] | None = None, only: Collection[str] | None = None
    ) -> pa.Table:
        """About `rows` rows drawn by Spark, uniformly and repeatably for one version and seed.

        Args:
            rows: how many.
            seed: of the draw.
            columns: which ones; all by default.
            only: the files to draw from, by their names in `Blocks.names`; None for all of them.
        """

    @abstractmethod
    def reading(self, only: Collection[str]) -> AbstractContextManager[DataFrame]:
        """The rows of these files and no others, for as long as the block lasts."""

    @abstractmethod
    def plan(self, layout: Layout, bid_column: str, only: Collection[str] | None = None) -> RewritePlan:
        """Pin the current version and freeze the rewrite of all its files, or of those named in `only`.

        With `only`, rows join blocks of the same BID that the table has already: so a tail of appended files is folded
        into a layout, or one partition rewritten. Every file that is named in full is the same as None.

        Raises:
            UnsupportedTableError: the table has a feature that we refuse to rewrite; the sentence says which.
            ConflictError: a file in `only` is not part of the table any more.
        """

    @abstractmethod
    def stage(self, plan: RewritePlan, run_id: str) -> Staged:
        """Write the rows of the plan's files into new files, one block a file; nothing becomes visible."""

    @abstractmethod
    def verify(
        self, staged: Staged, columns: Collection[str] | None = None, pairs: Collection[tuple[str, str]] = ()
    ) -> Verified:
        """Read the staged files back: proof that no row was lost, and exact facts of every new file.

        Args:
            staged: what `stage` answered.
            columns: which columns get facts; by default the first ones of a kind that has an order.
            pairs: columns to compare with each other, row by row.

        Raises:
            VerificationError: their rows differ from the input's.
        """

    @abstractmethod
    def commit(self, staged: Staged, note: dict[str, str]) -> CommitResult:
        """Swap the staged files in, in one atomic commit that carries the layout id, the run id and `note`.

        Rows that others appended since are kept. If another commit came between and every input is still live, the
        same staged files are committed again on top of it; if an input is gone, the answer is `Conflicted`.

        Raises:
            TableError: the table cannot be read, or may not be written by this user; nothing was committed, and the
                staged files are deleted as far as that is possible.
        """

    @abstractmethod
    def discard(self, staged: Staged) -> int:
        """Delete staged files that were certainly not committed; returns how many. Refuses live or retained ones."""

    @abstractmethod
    def layout_commits(self) -> list[LayoutCommit]:
        """Our commits in the table's history, newest first."""

    @abstractmethod
    def foreign_rewrites(self, since: LayoutCommit) -> list[ForeignRewrite]:
        """Commits of others that took files out of the table which `since` or a later commit of ours had put in.

        A file that only lost rows to a deletion vector or a delete file is still there, and not told of.

        Raises:
            TableError: the table's history does not go back so far.
        """

    @abstractmethod
    def revert(self, commit: LayoutCommit, run_id: str) -> CommitResult:
        """Undo one commit of ours alone by its inverse; rows appended since are kept.

        Raises:
            RollbackError: it cannot be undone without losing something; the sentence says why and what to do instead.
        """

    @abstractmethod
    def return_to(self, commit: LayoutCommit, run_id: str, part: Part | None = None) -> CommitResult:
        """Make the files that were current after an earlier commit of ours current again, without rewriting a row.

        Rows appended since are kept, in the files that their writers made. Where there is nothing to do, the answer is
        the present version, and nothing is committed. With `part`, the files of its partitions alone come and go.

        Raises:
            RollbackError: files are gone, or rows were changed since; the sentence says why and what to do instead.
        """

    @abstractmethod
    def returnable(self, commit: LayoutCommit, part: Part | None = None) -> Returnable:
        """Whether `return_to` would do it now, and until when. Reads metadata and looks for files; opens none."""

    def retain(self, commit: LayoutCommit, days: float) -> None:  # noqa: B027
        """Ask the format to keep what a commit of ours replaced for so many days after it, so that it stays undoable.

        A format that keeps replaced files by a rule of its own, which one commit cannot change, does nothing here;
        `returnable` tells the truth in any case.
        """

    def release(self, commit: LayoutCommit) -> bool:  # noqa: ARG002
        """Give back what `retain` asked for this commit; whether there was anything to give back."""
        return False

    def sweep(self, run_id: str) -> int:  # noqa: ARG002
        """Delete the files of a run that died while it wrote them, unless they are committed; returns how many.

        `discard` needs what `stage` answers; this needs the run's id only. A format that cannot tell whose a file is
        deletes none.
        """
        return 0
