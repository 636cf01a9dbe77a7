"""Iceberg's Java side as one session sees it: tables by name, always fresh, and the units compiled to work on files.

Everything else here takes an `Engine` and Iceberg's Java table, which py4j leaves untyped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from oreo_lakehouse.errors import NotATableError, TableError, TableNotFoundError
from oreo_lakehouse.jvm import compile_java, error_class, error_reason, java_error, java_session, jvm, root_reason
from oreo_lakehouse.tables.patience import answered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
METADATA_ATTEMPTS = 10
"""Appends that never pause may come in between a few times."""
_units: dict[tuple[str, str], Any] = {}
"""Compiled once a Spark application and class."""


class Engine:
    """The door to Iceberg in one Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.files = _unit(spark, "IcebergFiles")
        self.past = _unit(spark, "IcebergPast")
        self.swaps = _unit(spark, "IcebergSwaps")

    @property
    def api(self) -> Any:
        """The package `org.apache.iceberg`."""
        return jvm(self.spark).org.apache.iceberg

    def load(self, name: str) -> Any:
        """The Java table as it is now: Spark's catalog caches tables, so what it hands out is refreshed.

        Raises:
            TableNotFoundError: there is no such table or catalog.
            NotATableError: it is not an Iceberg table.
            TableError: its metadata or its catalog cannot be read.
        """

        def ask() -> Any:
            table = self.api.spark.Spark3Util.loadIcebergTable(java_session(self.spark), name)
            table.refresh()
            return table

        try:
            return answered(self.spark, f"the catalog of {name}", ask)
        except TableError:
            raise
        except Exception as error:
            raise _not_loaded(name, error) from error

    def metadata(self, table: Any) -> dict[str, Any]:
        """All that the table's metadata file says, from memory."""
        return json.loads(self.api.TableMetadataParser.toJson(table.operations().current()))

    def schema(self, table: Any) -> dict[str, Any]:
        """The table's current schema in Iceberg's JSON form."""
        return json.loads(self.api.SchemaParser.toJson(table.schema()))

    def spec(self, table: Any) -> dict[str, Any]:
        """The table's current partition spec in Iceberg's JSON form."""
        return json.loads(self.api.PartitionSpecParser.toJson(table.spec()))

    def texts(self, items: Iterable[str]) -> Any:
        """Texts as a Java list, in one crossing of the gateway however many they are."""
        return self.files.texts(json.dumps(list(items)))


@contextmanager
def explained(doing: str, name: str) -> Generator[None]:
    """Turn what the engine raises inside into a sentence.

    Raises:
        TableError: with the engine's own reason.
    """
    try:
        yield
    except Exception as error:
        if java_error(error) is None:
            raise
        raise TableError(f"could not {doing} {name}: {root_reason(error)}. No row was changed.") from error


def change_metadata(load: Callable[[], Any], change: Callable[[Any], T]) -> T:
    """Change a table's metadata, and no file: anew from the table as it is now, whenever somebody else was faster.

    Iceberg's own retry would not do: what was prepared on older metadata it refuses every time.
    """
    for _ in range(METADATA_ATTEMPTS - 1):
        try:
            return change(load())
        except Exception as error:
            if not error_class(error).endswith("CommitFailedException"):
                raise
    return change(load())


def version_of(table: Any) -> int:
    """The current snapshot's id, -1 before the first."""
    snapshot = table.currentSnapshot()
    return -1 if snapshot is None else int(snapshot.snapshotId())


def format_version(table: Any) -> int:
    return int(table.operations().current().formatVersion())


def _unit(spark: SparkSession, name: str) -> Any:
    key = (spark.sparkContext.applicationId, name)
    if key not in _units:
        source = files(__package__ or "").joinpath(f"{name}.java").read_text(encoding="utf-8")
        gateway: Any = spark.sparkContext._gateway
        constructor = compile_java(spark, source, name).getConstructors()[0]
        _units[key] = constructor.newInstance(gateway.new_array(jvm(spark).java.lang.Object, 0))
    return _units[key]


def _not_loaded(name: str, error: Exception) -> TableError:
    kind, reason = error_class(error).rpartition(".")[2], error_reason(error)
    if kind == "NotFoundException":
        return TableError(f"the metadata of {name} is missing: {reason}; restore it or register the table again.")
    if kind.startswith("NoSuch") or kind == "CatalogNotFoundException":
        return TableNotFoundError(f"there is no table {name}: {reason}; check the name and the catalog's settings.")
    if kind in ("ClassCastException", "IllegalArgumentException", "ParseException"):
        return NotATableError(f"{name} is not an Iceberg table: {reason}; name a table as catalog.namespace.table.")
    return TableError(f"{name} could not be loaded: {kind}: {reason}; check the catalog and try again.")
