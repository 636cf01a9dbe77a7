"""Which tables we refuse to rewrite, each with its own sentence, and what we warn of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oreo_lakehouse.errors import TableError, UnsupportedTableError
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.tables.iceberg.engine import format_version
from oreo_lakehouse.tables.iceberg.schema import columns_of, types_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oreo_lakehouse.tables.iceberg.engine import Engine

FORMAT_VERSIONS = (1, 2, 3)
_UNTESTED_TYPES = ("variant", "geometry", "geography", "unknown", "timestamp_ns", "timestamptz_ns", "time")
_WAP = ("spark.wap.id", "spark.wap.branch")


def refuse_unsupported(engine: Engine, name: str, table: Any, bid_column: str) -> None:
    """Say no before anything is written.

    Raises:
        UnsupportedTableError: with the feature, and the way out where there is one.
    """
    version = format_version(table)
    if version not in FORMAT_VERSIONS:
        raise UnsupportedTableError(
            f"{name} has Iceberg format version {version}; this release knows {FORMAT_VERSIONS[0]} to "
            f"{FORMAT_VERSIONS[-1]}: upgrade oreo-lakehouse."
        )
    for key in _WAP:
        if engine.spark.conf.get(key, None):
            raise UnsupportedTableError(
                f"this session writes {name} through write-audit-publish ({key} is set), where reads and commits see "
                f"different snapshots: unset {key} and run again."
            )
    properties = dict(table.properties())
    if properties.get("encryption.key-id"):
        raise UnsupportedTableError(
            f"{name} is encrypted (encryption.key-id), and its file keys would not survive a rewrite."
        )
    if properties.get("write.format.default", "parquet").lower() == "avro":
        raise UnsupportedTableError(
            f"{name} writes Avro, whose files have no column bounds, so no layout could skip any: set "
            "write.format.default to parquet, and the next rewrite converts it."
        )
    schema = engine.schema(table)
    untested = sorted(types_in(schema) & set(_UNTESTED_TYPES))
    if untested:
        raise UnsupportedTableError(f"{name} has columns of type {', '.join(untested)}, which is not supported yet.")
    column = next((c for c in columns_of(schema) if c.name.lower() == bid_column.lower()), None)
    if bid_column and column is not None and (column.name != bid_column or column.type != "int"):
        raise UnsupportedTableError(
            f"{name} has a column {column.name!r} of type {column.type} that is not ours: set bid_column to another "
            "name."
        )


def refuse_unknown_columns(engine: Engine, name: str, table: Any, wanted: Sequence[str]) -> None:
    """A layout made for another schema.

    Raises:
        TableError: the table has no such column.
    """
    known = [column.name for column in columns_of(engine.schema(table))]
    for column in wanted:
        if column not in known:
            raise TableError(f"{name} has no column {column!r}, which the layout needs; it has {', '.join(known)}.")


def warnings_of(engine: Engine, name: str, table: Any, layout_columns: Sequence[str]) -> tuple[str, ...]:
    """What a user should know before the rewrite."""
    found: list[str] = []
    if table.operations().getClass().getSimpleName() == "HadoopTableOperations":
        found.append(
            f"{name} is in a hadoop catalog, which can lose commits when two processes write at once: move it to a "
            "JDBC, REST or Hive catalog."
        )
    modes = engine.api.MetricsConfig.forTable(table)
    blind = [c for c in layout_columns if str(modes.columnMode(c).toString()) in ("none", "counts")]
    if blind:
        found.append(
            f"{name} keeps no bounds for {', '.join(blind)} (write.metadata.metrics.*), so engines cannot skip by "
            "them: ALTER TABLE … SET TBLPROPERTIES ('write.metadata.metrics.column.…' = 'truncate(16)')."
        )
    return tuple(found)


def partition_columns(engine: Engine, table: Any) -> tuple[str, ...]:
    """The columns behind the current partition fields, where sorting by the column sorts the field too."""
    names = {column.id: column.name for column in columns_of(engine.schema(table))}
    fields = engine.spec(table)["fields"]
    ordered = [f for f in fields if not f["transform"].startswith(("bucket", "void"))]
    return tuple(dict.fromkeys(names[f["source-id"]] for f in ordered if f["source-id"] in names))


def is_clustered_by_sort(engine: Engine, table: Any) -> bool:
    """Whether rows sorted by the partition columns arrive one partition after the other, so that a writer may close
    each file before the next: with identity fields only, and none whose values sort equal without being the same."""
    sortable = {c.id for c in columns_of(engine.schema(table)) if c.kind not in (Kind.OTHER, Kind.FLOAT)}
    fields = [field for field in engine.spec(table)["fields"] if field["transform"] != "void"]
    return all(field["transform"] == "identity" and field["source-id"] in sortable for field in fields)


def bid_metrics_property(bid_column: str) -> str:
    """Iceberg keeps bounds for the first 100 columns only; this table property is for a BID column behind them."""
    return f"write.metadata.metrics.column.{bid_column}"
