"""The table contract: everything that maintenance may ask of a table, whatever its format.

A layout becomes a commit in four steps, each a method: `plan` pins a version and freezes what will happen, `stage`
writes new files that nobody sees, `verify` reads them back and compares rows, `commit` makes them visible in one
atomic step that changes no data. `discard` removes staged files, and is called only when it is certain that they were
not committed. A crash between any two steps leaves a table that reads the same.

A format is one module with one subclass of `Table`, one line in `resolve.py` and one fixture in the shared tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from oreo_lakehouse.errors import RollbackError
from oreo_lakehouse.predicates.values import Kind

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.layouts.layout import Layout


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
    partition_columns: tuple[str, ...]
    warnings: tuple[str, ...] = ()


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
    added: tuple[dict[str, Any], ...] = ()
    """The format's own description of the new files, as JSON values."""
    removed: tuple[dict[str, Any], ...] = ()
    """The format's own description of the replaced files, as JSON values."""


@dataclass(frozen=True)
class Committed:
    """The layout is visible as this version."""

    version: int


@dataclass(frozen=True)
class Conflicted:
    """It certainly did not land; the staged files may be discarded. The reason is a sentence."""

    reason: str


@dataclass(frozen=True)
class Unknown:
    """It may or may not have landed: discard nothing, look for the run id later."""

    reason: str


CommitResult: TypeAlias = Committed | Conflicted | Unknown


@dataclass(frozen=True)
class LayoutCommit:
    """A commit of ours, found in the table's own history."""

    version: int
    layout_id: str
    run_id: str
    time: datetime
    action: str
    """`layout`, `rollback` or `restore`."""
    base_version: int
    layout_run_id: str = ""
    """Of a rollback: the run id of the layout commit that it undid."""


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
    def blocks(self, version: int | None = None) -> Blocks:
        """The files' statistics as block metadata, deletes applied to `rows` where they are known."""

    @abstractmethod
    def sample(self, rows: int, seed: int, columns: Sequence[str] | None = None) -> pa.Table:
        """About `rows` rows drawn by Spark, uniformly and repeatably for one version and seed."""

    @abstractmethod
    def plan(self, layout: Layout, bid_column: str) -> RewritePlan:
        """Pin the current version and freeze the rewrite of all its files.

        Raises:
            UnsupportedTableError: the table has a feature that we refuse to rewrite; the sentence says which.
        """

    @abstractmethod
    def stage(self, plan: RewritePlan, run_id: str) -> Staged:
        """Write the rows of the plan's files into new files, one block a file; nothing becomes visible."""

    @abstractmethod
    def verify(self, staged: Staged) -> RowCertificate:
        """Read the staged files back.

        Raises:
            VerificationError: their rows differ from the input's.
        """

    @abstractmethod
    def commit(self, staged: Staged, note: dict[str, str]) -> CommitResult:
        """Swap the staged files in, in one atomic commit that carries the layout id, the run id and `note`.

        Rows that others appended since are kept. If another commit came between and every input is still live, the
        same staged files are committed again on top of it; if an input is gone, the answer is `Conflicted`.
        """

    @abstractmethod
    def discard(self, staged: Staged) -> int:
        """Delete staged files that were certainly not committed; returns how many. Refuses live or retained ones."""

    @abstractmethod
    def layout_commits(self) -> list[LayoutCommit]:
        """Our commits in the table's history, newest first."""

    @abstractmethod
    def revert(self, commit: LayoutCommit, run_id: str) -> CommitResult:
        """Undo one layout commit alone by its inverse; rows appended since are kept.

        Raises:
            RollbackError: it cannot be undone without losing something; the sentence says why and what to do instead.
        """

    def restore(self, commit: LayoutCommit, run_id: str) -> CommitResult:  # noqa: ARG002
        """Make the files that an earlier layout wrote current again, without rewriting a row.

        Possible while they are still there and every commit since only appended rows or moved them between files. Rows
        appended since stay in the files that their writers made.

        Raises:
            RollbackError: it cannot be done; the sentence says why and what to do instead.
        """
        raise RollbackError(
            f"{self.identity.name}: {self.format} tables cannot go back to layout {commit.layout_id} yet."
        )

    def sweep(self, run_id: str) -> int:  # noqa: ARG002
        """Delete the files of a run that died while it wrote them, unless they are committed; returns how many.

        `discard` needs what `stage` answers; this needs the run's id only. A format that cannot tell whose a file is
        deletes none.
        """
        return 0
