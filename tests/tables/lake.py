"""What the behaviour suite needs of a format: a schema, a USING clause and a way to open a table."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from oreo_lakehouse.layouts.layout import Bids, Layout
from oreo_lakehouse.tables.certificate import certify
from oreo_lakehouse.tables.contract import CommitResult, Committed, RowCertificate, Staged, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BID = "_oreo_bid"
_runs = itertools.count(1)


class Modulo(Layout):
    """`column % blocks`: every block spans all values of everything else, so it differs from any insertion order."""

    kind = "modulo"

    def __init__(self, blocks: int = 4, column: str = "id") -> None:
        self.blocks = blocks
        self.columns = (column,)

    def assign(self, rows: pa.Table) -> Bids:
        return (rows[self.columns[0]].to_numpy() % self.blocks).astype("int32")

    def sql(self) -> str:
        return f"coalesce(cast(pmod(`{self.columns[0]}`, {self.blocks}) as int), 0)"

    def describe(self) -> str:
        return f"{self.columns[0]} modulo {self.blocks}"

    def _content(self) -> dict[str, Any]:
        return {"blocks": self.blocks, "column": self.columns[0]}


@dataclass
class Lake:
    """One format, in a schema that belongs to one test."""

    spark: SparkSession
    format: str
    schema: str
    opener: Callable[[SparkSession, str], Table]

    def sql(self, text: str) -> Any:
        """A statement as another user runs it: in a session of its own."""
        return self.spark.newSession().sql(text)

    def create(
        self,
        columns: str = "id long, v int, s string",
        select: str = "id, cast(id % 7 as int), cast(id as string)",
        rows: int = 400,
        files: int = 4,
        clause: str = "",
        name: str = "t",
    ) -> tuple[str, Table]:
        """A table of `rows` rows in about `files` files, and its name."""
        full = f"{self.schema}.{name}"
        self.sql(f"create table {full} ({columns}) using {self.format} {clause}")
        if rows:
            self.sql(f"insert into {full} select {select} from range(0, {rows}, 1, {files})")
        return full, self.opener(self.spark, full)

    def certificate(self, name: str, where: str = "true") -> RowCertificate:
        return certify(self.spark.newSession().table(name).where(where), [BID])


def rounds() -> Iterator[int]:
    """How many blocks to lay out by, in turn: two rounds, or as many as fit into OREO_APPEND_SECONDS."""
    started, done = time.monotonic(), 0
    seconds = float(os.environ.get("OREO_APPEND_SECONDS", "0"))
    while done < 2 or time.monotonic() - started < seconds:
        yield (3, 5)[done % 2]
        done += 1
    print(f"\n{done} layouts in {time.monotonic() - started:.0f} s")


def run_id() -> str:
    return f"run{next(_runs)}"


def staged_layout(table: Table, layout: Layout | None = None, bid_column: str = BID) -> Staged:
    """Planned, staged and verified."""
    staged = table.stage(table.plan(layout or Modulo(), bid_column), run_id())
    assert table.verify(staged).certificate == staged.certificate
    return staged


def lay_out(table: Table, layout: Layout | None = None, bid_column: str = BID) -> int:
    """A whole layout; the version that it became."""
    return version_of(table.commit(staged_layout(table, layout, bid_column), {}))


def version_of(result: CommitResult) -> int:
    assert isinstance(result, Committed), result
    return result.version
