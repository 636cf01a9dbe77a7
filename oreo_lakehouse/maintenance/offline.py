"""Looking at a table without starting a JVM, where that can be done for sure.

A Delta table is found by its path, an Iceberg table by its name in the embedded catalog; both on this machine's disk,
and the store with them. Everything else is answered by None, and Spark is asked: other catalogs, other storage, names
that only a metastore can resolve, table features that only Spark reads.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from oreo_lakehouse.history.paths import looks_like_path
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.maintenance.facts import FactStore
from oreo_lakehouse.maintenance.ledger import Ledger
from oreo_lakehouse.maintenance.state import StateStore
from oreo_lakehouse.session import spark_settings
from oreo_lakehouse.store import LocalStore, Store, configured_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.config import Config
    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.predicates.values import Kind
    from oreo_lakehouse.tables.contract import LayoutCommit, TableIdentity
    from oreo_lakehouse.tables.delta.offline import OfflineDelta

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)
_DELTA_PATH = re.compile(r"delta\.`([^`]+)`", re.IGNORECASE)


class TableReader(Protocol):
    """What looking takes of a table; the contract's `Table` has it, too."""

    @property
    def identity(self) -> TableIdentity: ...

    def version(self) -> int: ...

    def layout_commits(self) -> list[LayoutCommit]: ...

    def schema(self) -> dict[str, Kind]: ...

    def column_keys(self) -> dict[str, str]: ...

    def blocks(self, version: int | None = None) -> Blocks | None:
        """The files' statistics; None where only Spark can tell."""
        ...


@dataclass(frozen=True)
class TableView:
    """A table and what is kept about it, for reading only."""

    table: TableReader
    store: Store

    @property
    def identity(self) -> TableIdentity:
        return self.table.identity

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.store, self.identity.uuid)

    @property
    def history(self) -> HistoryStore:
        return HistoryStore(self.store, self.identity.uuid)

    @property
    def facts(self) -> FactStore:
        return FactStore(self.store, self.identity.uuid)

    @property
    def states(self) -> StateStore:
        return StateStore(self.store, self.identity.uuid)


def open_view(spark: SparkSession, table: str, config: Config) -> TableView:
    """A table as Spark sees it."""
    from oreo_lakehouse.tables.resolve import open_table

    return TableView(open_table(spark, table), configured_store(spark, config))


def open_offline(table: str, config: Config) -> TableView | None:
    """A table seen without Spark, or None if that cannot be done for sure."""
    store = offline_store(config)
    found = None if store is None else _delta(table) or _iceberg(table, config)
    return None if store is None or found is None else TableView(found, store)


def open_beside(spark: SparkSession, table: str, config: Config) -> TableView | None:
    """A table that only Spark's catalog can find, but that can be read without Spark; None for any other.

    Starting to read a Delta table takes a fresh Spark seconds, finding its folder a fraction of one.
    """
    from oreo_lakehouse.tables.resolve import delta_folder

    placed = delta_folder(spark, table)
    found = None if placed is None or not placed[1].startswith("file:") else _delta(placed[1])
    if placed is None or found is None:
        return None
    return TableView(found.named(placed[0]), configured_store(spark, config))


def offline_store(config: Config) -> Store | None:
    """The store without Spark, or None if it cannot be said for sure where Spark would have it, or is not here."""
    settings = spark_settings(config)
    if _elsewhere(settings) or _spark_is_here():
        return None
    warehouse = _local(settings["spark.sql.warehouse.dir"])
    root = _local(config.store) if config.store else warehouse and warehouse / "_oreo"
    return None if root is None else LocalStore(str(root))


def _spark_is_here() -> bool:
    """A session that runs already has catalogs of its own, which our settings say nothing about."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return True
    core = sys.modules.get("pyspark.core.context") or sys.modules.get("pyspark")
    context = getattr(core, "SparkContext", None)
    return getattr(context, "_active_spark_context", None) is not None


def _elsewhere(settings: dict[str, str]) -> bool:
    """Whether a path without a scheme may mean another file system than this machine's."""
    default = settings.get("spark.hadoop.fs.defaultFS", "file:///")
    return not default.startswith("file:") or bool(os.environ.get("HADOOP_CONF_DIR"))


def _local(place: str) -> Path | None:
    """A location as an absolute path of this machine, or None."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", place)
    if scheme is None:
        return Path(os.path.abspath(place))
    if scheme[1].lower() != "file":
        return None
    bare = place[len("file:") :]
    return Path(os.path.abspath(bare.removeprefix("//") if bare.startswith("///") else bare))


def _delta(table: str) -> OfflineDelta | None:
    named = _DELTA_PATH.fullmatch(table)
    path = named[1] if named else table if looks_like_path(table) else None
    folder = _local(path) if path else None
    if folder is None or not os.path.isdir(folder / "_delta_log"):  # no error for what cannot even be a path
        return None
    from oreo_lakehouse.tables.delta.offline import open_offline as open_delta

    return open_delta(folder)


def _iceberg(table: str, config: Config) -> TableReader | None:
    catalog = config.spark.iceberg_catalog
    key = f"spark.sql.catalog.{catalog}"
    parts = table.split(".") if _NAME.fullmatch(table) else []
    if len(parts) < 3 or parts[0] != catalog or any(k == key or k.startswith(f"{key}.") for k in config.spark.conf):
        return None
    database = _local(spark_settings(config)[f"{key}.uri"].removeprefix("jdbc:sqlite:"))
    if database is None or not os.path.isfile(database):
        return None
    from oreo_lakehouse.tables.iceberg.offline import open_offline as open_iceberg

    return open_iceberg(database, catalog, ".".join(parts[1:-1]), parts[-1])
