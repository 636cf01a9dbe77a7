"""Iceberg's Java table behind a name, always fresh, and the compiled unit that works on all its files at once."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.errors import NotATableError, TableError, TableNotFoundError
from oreo_lakehouse.jvm import compile_java, error_class, error_reason, java_session, jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_units: dict[str, Any] = {}
"""By Spark application, since each has a JVM of its own."""


def load(spark: SparkSession, name: str) -> Any:
    """The Java table as it is now: Spark's catalog caches tables, so what it hands out is refreshed.

    Raises:
        TableNotFoundError: there is no such table or catalog.
        NotATableError: it is not an Iceberg table.
        TableError: its metadata or its catalog cannot be read.
    """
    try:
        table = jvm(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergTable(java_session(spark), name)
        table.refresh()
    except Exception as error:
        raise _explained(name, error) from error
    return table


def schema_of(spark: SparkSession, table: Any) -> dict[str, Any]:
    """The table's current schema in Iceberg's JSON form."""
    return json.loads(jvm(spark).org.apache.iceberg.SchemaParser.toJson(table.schema()))


def java_files(spark: SparkSession) -> Any:
    """The compiled `IcebergFiles`, once a Spark application."""
    application: str = spark.sparkContext.applicationId
    if application not in _units:
        source = files(__package__ or "").joinpath("IcebergFiles.java").read_text(encoding="utf-8")
        unit = compile_java(spark, source, "IcebergFiles")
        gateway: Any = spark.sparkContext._gateway
        _units[application] = unit.getConstructors()[0].newInstance(gateway.new_array(jvm(spark).java.lang.Object, 0))
    return _units[application]


def _explained(name: str, error: Exception) -> TableError:
    kind, reason = error_class(error).rpartition(".")[2], error_reason(error)
    if kind == "NotFoundException":
        return TableError(f"the metadata of {name} is missing: {reason}; restore it or register the table again.")
    if kind.startswith("NoSuch") or kind == "CatalogNotFoundException":
        return TableNotFoundError(f"there is no table {name}: {reason}; check the name and the catalog's settings.")
    if kind in ("ClassCastException", "IllegalArgumentException", "ParseException"):
        return NotATableError(f"{name} is not an Iceberg table: {reason}; name a table as catalog.namespace.table.")
    return TableError(f"{name} could not be loaded: {kind}: {reason}; check the catalog and try again.")
