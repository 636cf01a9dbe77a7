"""From what a user writes to a table: `table`, `db.table`, `catalog.ns.table`, a path, ``delta.`path` ``.

The format is found from the table itself. Whatever is not a Delta or Iceberg table gets an error of its own that says
what it is instead and what to do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import is_instance_of

from oreo_lakehouse.errors import NotATableError, TableError, TableNotFoundError
from oreo_lakehouse.history.paths import looks_like_path
from oreo_lakehouse.jvm import (
    activate,
    error_class,
    error_reason,
    hadoop_conf,
    java_session,
    jvm,
    root_reason,
    scala_seq,
    some,
)
from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.tables.delta import DeltaTable
from oreo_lakehouse.tables.iceberg import IcebergTable
from oreo_lakehouse.tables.patience import answered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.tables.contract import Table

_BY_FORMAT_NAME = ("delta", "iceberg", "parquet", "orc", "avro", "csv", "json")
_SESSION_CATALOG = "spark_catalog"
_ICEBERG_TABLE = "org.apache.iceberg.spark.source.SparkTable"


def open_table(spark: SparkSession, name: str) -> Table:
    """The table that `name` means in this session.

    Raises:
        TableNotFoundError: there is nothing of that name.
        NotATableError: it is a view, a plain folder of files, a metadata table or a table of another format.
    """
    activate(spark)
    if looks_like_path(name):
        return _open_path(spark, name)
    parts = _parse(spark, name)
    if len(parts) == 2 and parts[0].lower() in _BY_FORMAT_NAME and looks_like_path(parts[1]):
        return _open_path(spark, parts[1])
    return _open_name(spark, name, parts)


def _parse(spark: SparkSession, name: str) -> list[str]:
    try:
        parsed = java_session(spark).sessionState().sqlParser().parseMultipartIdentifier(name)
    except Exception as error:  # py4j wraps Spark's ParseException
        raise TableError(
            f"{name!r} is not a table name: write table, db.table, catalog.namespace.table or a path with a /, and put "
            "names with other characters in backticks."
        ) from error
    return [str(parsed.apply(i)) for i in range(parsed.size())]


def _open_path(spark: SparkSession, path: str) -> Table:
    folder = jvm(spark).org.apache.hadoop.fs.Path(path)
    try:
        files = folder.getFileSystem(hadoop_conf(spark))
        found = bool(files.exists(folder))
        inside = {str(s.getPath().getName()) for s in files.listStatus(folder)} if found else set[str]()
    except Exception as error:
        raise TableError(f"cannot look into {path}: {error_reason(error)}") from error
    if not found:
        raise TableNotFoundError(f"there is nothing at {path}; a table in a catalog is named db.table, without a /.")
    if "_delta_log" in inside:
        return DeltaTable.for_path(spark, str(files.makeQualified(folder).toString()))
    if "metadata" in inside:
        raise NotATableError(
            f"{path} looks like an Iceberg table's folder: name the table through its catalog (catalog.namespace.table)"
            ", which alone knows its current version."
        )
    if any(re.search(r"\.(parquet|orc|avro|csv|json)$", file) for file in inside):
        raise NotATableError(
            f"{path} is a plain folder of files, not a Delta table: nothing guards its rows while files are rewritten. "
            f"Make it one first: CONVERT TO DELTA parquet.`{path}`."
        )
    raise NotATableError(f"{path} is not a Delta table: there is no _delta_log in it.")


def delta_folder(spark: SparkSession, name: str) -> tuple[str, str] | None:
    """The full name of a Delta table of Spark's own catalog, and where it lies; None for anything else.

    Only the catalog is asked, which is much faster than opening the table.

    Raises:
        TableError: the name means nothing.
    """
    activate(spark)
    if looks_like_path(name):
        return None
    catalog, namespace, table = _meant(spark, name, _parse(spark, name))
    if catalog != _SESSION_CATALOG or len(namespace) != 1:
        return None
    identifier = jvm(spark).org.apache.spark.sql.catalyst.TableIdentifier(table, some(spark, namespace[0]))
    known = java_session(spark).sessionState().catalog()
    try:
        found = answered(spark, f"catalog {catalog!r}", lambda: known.getTableMetadata(identifier))
        if not found.provider().contains("delta") or found.storage().locationUri().isEmpty():
            return None
        folder = jvm(spark).org.apache.hadoop.fs.Path(found.location())  # which writes no character as %20
        return _readable(*namespace, table), str(folder.toString())
    except Exception:  # opening it says what is wrong
        return None


def _open_name(spark: SparkSession, name: str, parts: list[str]) -> Table:
    catalog, namespace, table = _meant(spark, name, parts)
    loaded = _load(spark, catalog, namespace, table, name)
    kind = str(loaded.getClass().getName())
    if kind.endswith(".DeltaTableV2"):
        # Delta's own parser takes the session catalog's tables without the catalog's name.
        levels = namespace if catalog == _SESSION_CATALOG else [catalog, *namespace]
        return DeltaTable.for_name(spark, _readable(*levels, table))
    if kind == _ICEBERG_TABLE:
        if is_instance_of(spark.sparkContext._gateway, loaded.table(), "org.apache.iceberg.BaseMetadataTable"):
            raise NotATableError(f"{name} is one of Iceberg's metadata tables; name the table itself.")
        return IcebergTable.for_name(spark, _readable(catalog, *namespace, table))
    if kind.endswith(".V1Table") and loaded.v1Table().tableType().name() == "VIEW":
        raise NotATableError(f"{name} is a view; name the table that it reads.")
    provider = loaded.properties().get("provider") or "another"
    raise NotATableError(f"{name} is a table of {provider} format; only Delta and Iceberg tables can be maintained.")


def _meant(spark: SparkSession, name: str, parts: list[str]) -> tuple[str, list[str], str]:
    """The catalog, the namespace and the table that a name means in this session."""
    state = java_session(spark).sessionState()
    if state.catalog().isTempView(scala_seq(spark, parts)):
        raise NotATableError(f"{name} is a temporary view; name the table that it reads.")
    catalogs = state.catalogManager()
    if len(parts) > 1 and _is_catalog(spark, catalogs, parts[0]):
        catalog, parts = parts[0], parts[1:]
    else:
        catalog = str(catalogs.currentCatalog().name())
        if len(parts) > 2:
            raise TableNotFoundError(
                f"no catalog {parts[0]!r} in this session: configure spark.sql.catalog.{parts[0]} in [spark.conf]."
            )
    namespace = parts[:-1] or [str(level) for level in catalogs.currentNamespace()]
    return catalog, namespace, parts[-1]


def _is_catalog(spark: SparkSession, catalogs: Any, name: str) -> bool:
    """Whether a name means a catalog, which Spark finds out by starting it; that may ask a server."""
    try:
        return bool(answered(spark, f"catalog {name!r}", lambda: catalogs.isCatalogRegistered(name)))
    except TableError:
        raise
    except Exception as error:
        raise TableError(
            f"catalog {name!r} could not be started: {root_reason(error)}; check its settings and that it runs."
        ) from error


def _readable(*parts: str) -> str:
    """A name in full, with backticks only where it needs them."""
    return ".".join(part if re.fullmatch(r"[A-Za-z_]\w*", part, re.ASCII) else quoted(part) for part in parts)


def _load(spark: SparkSession, catalog: str, namespace: list[str], table: str, name: str) -> Any:
    gateway: Any = spark.sparkContext._gateway
    levels = gateway.new_array(jvm(spark).java.lang.String, len(namespace))
    for i, level in enumerate(namespace):
        levels[i] = level
    identifier = jvm(spark).org.apache.spark.sql.connector.catalog.Identifier.of(levels, table)
    catalogs = java_session(spark).sessionState().catalogManager()
    try:
        return answered(spark, f"catalog {catalog!r}", lambda: catalogs.catalog(catalog).loadTable(identifier))
    except TableError:
        raise
    except Exception as error:
        if "NoSuch" in error_class(error):
            where = ".".join([catalog, *namespace])
            raise TableNotFoundError(
                f"there is no table {table!r} in {where}; check the name, or give a path with a / in it."
            ) from error
        raise TableError(f"catalog {catalog!r} could not load {name}: {error_reason(error)}") from error
