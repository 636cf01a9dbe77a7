"""Who rewrites a table, and how: identical copies of it, and the formats' own rewrites to the same size of files."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from oreo_lakehouse.layouts.layout import Layout
from oreo_lakehouse.maintenance.facts import wanted_facts
from oreo_lakehouse.predicates.tree import Predicate
from oreo_lakehouse.tables.contract import Committed, Staged, Table
from oreo_lakehouse.tables.delta import DeltaTable
from oreo_lakehouse.tables.iceberg import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMAS = {"delta": "bench", "iceberg": "iceberg.bench"}
_UNCOMPRESSED = 50
"""Times that rows may be larger than in a file, as a limit for Iceberg's writer."""
_OPTIMIZE = "spark.databricks.delta.optimize."


class Copy:
    """One contender's copy of the table, which can be put back to how it was made."""

    def __init__(self, spark: SparkSession, fmt: str, name: str) -> None:
        self.spark, self.format, self.name = spark, fmt, f"{SCHEMAS[fmt]}.{name}"
        self._first = self.table.version()

    @classmethod
    def make(cls, spark: SparkSession, fmt: str, name: str, source: Path, files: int, clustered: Sequence[str]) -> Copy:
        """Rows of a Parquet file in its order, in about so many files of the same size.

        `clustered` declares liquid clustering by these columns, which OPTIMIZE then follows.
        """
        full = f"{SCHEMAS[fmt]}.{name}"
        size = source.stat().st_size // files + 1
        with settings(spark, {"spark.sql.files.maxPartitionBytes": size, "spark.sql.files.openCostInBytes": 0}):
            spark.read.parquet(str(source)).writeTo(full).using(fmt).create()
        if clustered:
            spark.sql(f"ALTER TABLE {full} CLUSTER BY ({', '.join(clustered)})")
        return cls(spark, fmt, name)

    @property
    def table(self) -> Table:
        return (DeltaTable if self.format == "delta" else IcebergTable).for_name(self.spark, self.name)

    @property
    def folder(self) -> Path:
        return Path(self.table.identity.location.removeprefix("file:"))

    def mark(self) -> None:
        """Let the present version be the one to go back to."""
        self._first = self.table.version()

    def held(self) -> int:
        """Bytes on storage, replaced files included."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    def restore(self) -> None:
        """The first version again, and the files of later ones deleted."""
        if self.format == "delta":
            self.spark.sql(f"RESTORE TABLE {self.name} TO VERSION AS OF {self._first}")
        else:
            plain = self.name.removeprefix("iceberg.")
            self.spark.sql(f"CALL iceberg.system.rollback_to_snapshot('{plain}', {self._first})")
        self.tidy()

    def tidy(self) -> None:
        """Delete the files that the present version does not read."""
        live = {name.rpartition("/")[2] for name in self.table.blocks().names}
        for file in self.folder.rglob("*.parquet"):
            if file.name not in live and "_delta_log" not in file.parts:
                file.unlink()

    def drop(self) -> None:
        self.spark.sql(f"DROP TABLE {self.name}{' PURGE' if self.format == 'iceberg' else ''}")


@contextmanager
def settings(spark: SparkSession, given: Mapping[str, object]) -> Generator[None]:
    """Session settings for as long as the block lasts."""
    before = {key: spark.conf.get(key, None) for key in given}
    for key, value in given.items():
        spark.conf.set(key, str(value))
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def zorder(copy: Copy, columns: Sequence[str], blocks: int) -> None:
    """The format's own z-order of the whole table."""
    if copy.format == "iceberg":
        rewrite_data_files(copy, f"zorder({', '.join(columns)})", blocks)
        return
    _optimize(copy, f"OPTIMIZE {copy.name} ZORDER BY ({', '.join(columns)})", blocks)


def liquid(copy: Copy, blocks: int) -> None:
    """Delta's liquid clustering, of all files."""
    _optimize(copy, f"OPTIMIZE {copy.name} FULL", blocks)


def sort(copy: Copy, columns: Sequence[str], blocks: int) -> None:
    """Iceberg's sort of the whole table."""
    rewrite_data_files(copy, ", ".join(f"{column} ASC" for column in columns), blocks)


def rewrite_data_files(copy: Copy, order: str, blocks: int) -> None:
    size = copy.table.blocks().total_bytes // blocks
    # Iceberg counts bytes before they are compressed: its files would be a fraction of the size, several times as many.
    most = size * _UNCOMPRESSED
    options = f"map('rewrite-all', 'true', 'target-file-size-bytes', '{size}', 'max-file-size-bytes', '{most}')"
    plain = copy.name.removeprefix("iceberg.")
    copy.spark.sql(
        f"CALL iceberg.system.rewrite_data_files(table => '{plain}', strategy => 'sort', "
        f"sort_order => '{order}', options => {options})"
    ).collect()


def _optimize(copy: Copy, statement: str, blocks: int) -> None:
    size = copy.table.blocks().total_bytes // blocks
    with settings(copy.spark, {f"{_OPTIMIZE}maxFileSize": size, f"{_OPTIMIZE}minFileSize": 1 << 40}):
        copy.spark.sql(statement).collect()


def plain_copy(copy: Copy) -> Copy:
    """Every row read and written again, none of them moved: what Spark cannot go below."""
    spark, name = copy.spark, f"{copy.name}_again"
    spark.table(copy.name).writeTo(name).using(copy.format).create()
    return Copy(spark, copy.format, name.rpartition(".")[2])


def shuffled_copy(copy: Copy, blocks: int, order: Sequence[str] = ()) -> Copy:
    """Every row sent to another task, put in order there and written, nothing counted or proved: what nobody who
    regroups rows with Spark can go below."""
    spark, name = copy.spark, f"{copy.name}_shuffled"
    rows = spark.table(copy.name).repartition(blocks, "l_orderkey", "l_linenumber")
    rows = rows.sortWithinPartitions(*order) if order else rows
    rows.writeTo(name).using(copy.format).create()
    return Copy(spark, copy.format, name.rpartition(".")[2])


class Ours:
    """Our rewrite in its steps, so that each can be measured."""

    def __init__(self, copy: Copy, layout: Layout, queries: Sequence[Predicate]) -> None:
        self._table, self._layout = copy.table, layout
        self._facts = wanted_facts(layout, queries)
        self._staged: Staged | None = None

    def stage(self) -> None:
        plan = self._table.plan(self._layout, "_oreo_bid")
        self._staged = self._table.stage(plan, uuid.uuid4().hex)

    def prove(self) -> None:
        """That no row was lost: counts and checksum."""
        assert self._staged is not None
        self._table.verify(self._staged, ())

    def verify(self) -> None:
        """The same, and the facts that pruning goes by, as a run does it."""
        assert self._staged is not None
        self._table.verify(self._staged, *self._facts)

    def commit(self) -> None:
        assert self._staged is not None
        assert isinstance(self._table.commit(self._staged, {}), Committed)


def evenness(sizes: Sequence[int]) -> tuple[float, float]:
    """The smallest and the largest, over their mean."""
    values = np.asarray(sizes, np.float64)
    return float(values.min() / values.mean()), float(values.max() / values.mean())
