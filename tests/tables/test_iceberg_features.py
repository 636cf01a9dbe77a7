"""Every kind of Iceberg table keeps its rows, its lineage and its partitions, and its statistics never lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest
from iceberg_support import MERGE_ON_READ, delete_by_equality, lay_out_by, make_table, numbers, rows_of, values
from lake import BID

from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.predicates.values import Kind, encode
from oreo_lakehouse.tables.iceberg import IcebergTable
from oreo_lakehouse.tables.iceberg.manifests import read_entries, read_local, read_metadata

if TYPE_CHECKING:
    from conftest import Place
    from pyspark.sql import SparkSession

Make = Callable[["SparkSession", str], str]
"""Makes a table of that name; answers the column to lay it out by."""


def version_1(spark: SparkSession, name: str) -> str:
    make_table(spark, name, version=1)
    return "k"


def position_deletes(spark: SparkSession, name: str) -> str:
    make_table(spark, name, properties=MERGE_ON_READ | {"write.delete.granularity": "partition"})
    spark.sql(f"DELETE FROM {name} WHERE id % 7 = 0")
    spark.sql(f"UPDATE {name} SET s = 'changed' WHERE id = 5")
    return "k"


def file_scoped_position_deletes(spark: SparkSession, name: str) -> str:
    make_table(spark, name, properties=MERGE_ON_READ | {"write.delete.granularity": "file"})
    spark.sql(f"DELETE FROM {name} WHERE id % 7 = 0")
    return "k"


def equality_deletes_and_rows_again(spark: SparkSession, name: str) -> str:
    make_table(spark, name)
    delete_by_equality(spark, name, "id", list(range(0, 900, 9)))
    numbers(spark, 0, 10).writeTo(name).append()
    return "k"


def deletion_vectors(spark: SparkSession, name: str) -> str:
    make_table(spark, name, version=3, properties=MERGE_ON_READ)
    spark.sql(f"DELETE FROM {name} WHERE id % 7 = 0")
    spark.sql(f"UPDATE {name} SET s = 'changed' WHERE id = 5")
    return "k"


def upgraded_to_version_3(spark: SparkSession, name: str) -> str:
    make_table(spark, name)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
    numbers(spark, 2000, 10).writeTo(name).append()
    return "k"


def partitioned_by_value(spark: SparkSession, name: str) -> str:
    spark.sql(f"CREATE TABLE {name} (id BIGINT, k INT, s STRING, day DATE) USING iceberg PARTITIONED BY (k, day)")
    few = numbers(spark, 0, 400).selectExpr(
        "id", "nullif(k % 5, 4) k", "s", "date_add(DATE'2024-01-01', CAST(id % 2 AS INT)) day"
    )
    few.writeTo(name).append()
    return "id"


def partitioned_by_bucket(spark: SparkSession, name: str) -> str:
    make_table(spark, name, partitioned="PARTITIONED BY (bucket(3, id), truncate(2, s))", files=1)
    return "k"


def partitioned_by_day(spark: SparkSession, name: str) -> str:
    spark.sql(f"CREATE TABLE {name} (id BIGINT, at TIMESTAMP) USING iceberg PARTITIONED BY (days(at))")
    spark.sql(f"INSERT INTO {name} SELECT id, timestamp_micros(1700000000000001 + id * 3600000000) FROM range(100)")
    return "id"


def mixed_specs(spark: SparkSession, name: str) -> str:
    make_table(spark, name, partitioned="PARTITIONED BY (bucket(3, id))", files=1)
    spark.sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD bucket(3, id) WITH truncate(50, k)")
    numbers(spark, 2000, 50).writeTo(name).append()
    return "s"


def evolved_columns(spark: SparkSession, name: str) -> str:
    make_table(spark, name, files=2)
    for change in (
        "ADD COLUMN z DOUBLE",
        "RENAME COLUMN s TO text",
        "ADD COLUMN small FLOAT",
        "ADD COLUMN d DECIMAL(5,2)",
    ):
        spark.sql(f"ALTER TABLE {name} {change}")
    spark.sql(f"INSERT INTO {name} SELECT id, 1, 'z', 2.5, 0.1, 12.34 FROM range(7000, 7010)")
    for change in (
        "DROP COLUMN z",
        "ADD COLUMN z STRING",
        "ALTER COLUMN k TYPE BIGINT",
        "ALTER COLUMN small TYPE DOUBLE",
        "ALTER COLUMN d TYPE DECIMAL(38,2)",
        "RENAME COLUMN id TO k2",
    ):
        spark.sql(f"ALTER TABLE {name} {change}")
    spark.sql(
        f"INSERT INTO {name} SELECT id, 5000000000, 'w', 0.2, -99999999999999999999999999999.99, 'zz' FROM range(5)"
    )
    return "k"


def nested_and_odd_names(spark: SparkSession, name: str) -> str:
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL, `a.b ``c` STRUCT<x: INT, y: ARRAY<STRING>>, m MAP<STRING, INT>, "
        "b BINARY, `Größe` DECIMAL(20,4), wall TIMESTAMP_NTZ, yes BOOLEAN, nothing STRING) USING iceberg"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT id, named_struct('x', CAST(id AS INT), 'y', array('q')), map('k', 2), "
        "CAST(concat('b', id, repeat('x', 40)) AS BINARY), id / 7, "
        "timestampadd(MICROSECOND, id, TIMESTAMP_NTZ'2024-01-01 00:00:00.000001'), id % 2 = 0, NULL FROM range(100)"
    )
    return "Größe"


def extreme_values(spark: SparkSession, name: str) -> str:
    spark.sql(f"CREATE TABLE {name} (id INT, f DOUBLE, g FLOAT, s STRING, at TIMESTAMP, day DATE) USING iceberg")
    spark.sql(
        f"INSERT INTO {name} VALUES (1, double('NaN'), float('NaN'), repeat('\\uD83D\\uDE00', 30), "
        "TIMESTAMP'0001-01-01 00:00:00.000001', DATE'0001-01-01'), (2, -0.0, float('-Infinity'), '', "
        "TIMESTAMP'9999-12-31 23:59:59.999999', DATE'9999-12-31'), (3, NULL, NULL, NULL, NULL, NULL)"
    )
    spark.sql(f"INSERT INTO {name} VALUES (4, double('NaN'), float('NaN'), repeat('\\uFFFF', 30), NULL, NULL)")
    spark.sql(f"INSERT INTO {name} VALUES (5, 0.0, 1.5, concat(repeat('a', 15), 'é'), NULL, NULL)")
    return "id"


def orc_files(spark: SparkSession, name: str) -> str:
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, k INT, s STRING, at TIMESTAMP, f DOUBLE) USING iceberg "
        "TBLPROPERTIES ('write.format.default' = 'orc')"
    )
    numbers(spark, 0, 300).selectExpr(
        "*", "timestamp_micros(id * 1001 - 100000) at", "if(id % 50 = 0, double('NaN'), id) f"
    ).writeTo(name).append()
    return "k"


def own_sort_order(spark: SparkSession, name: str) -> str:
    make_table(spark, name)
    spark.sql(f"ALTER TABLE {name} WRITE ORDERED BY s")
    return "k"


def wide(spark: SparkSession, name: str) -> str:
    spark.sql(f"CREATE TABLE {name} ({', '.join(f'c{i} INT' for i in range(120))}) USING iceberg")
    spark.sql(
        f"INSERT INTO {name} SELECT {', '.join(f'CAST(id % {i + 2} AS INT)' for i in range(120))} FROM range(100)"
    )
    return "c50"


KINDS: list[Make] = [
    version_1,
    position_deletes,
    file_scoped_position_deletes,
    equality_deletes_and_rows_again,
    deletion_vectors,
    upgraded_to_version_3,
    partitioned_by_value,
    partitioned_by_bucket,
    partitioned_by_day,
    mixed_specs,
    evolved_columns,
    nested_and_odd_names,
    extreme_values,
    orc_files,
    own_sort_order,
    wide,
]


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_a_layout_keeps_rows_lineage_and_partitions(spark: SparkSession, place: Place, make: Make) -> None:
    name = f"{place.iceberg}.t"
    column = make(spark, name)
    table = IcebergTable.for_name(spark, name)
    statistics_hold(spark, table)
    before, lineage = rows_of(spark, name), lineage_of(spark, table)
    for blocks in (3, 2) if make in (deletion_vectors, mixed_specs) else (3,):  # a second layout over the first's files
        lay_out_by(table, column, blocks=blocks)
        assert rows_of(spark, name) == before
        assert lineage_of(spark, table) == lineage
        statistics_hold(spark, table)
        bids = table.blocks().columns[BID]
        assert bids.lower_known.all()
        assert bids.lower.tolist() == bids.upper.tolist()
        specs = values(spark, f"SELECT DISTINCT spec_id FROM {name}.files")
        assert specs == [(max(spec for (spec,) in specs),)]
    if make in (file_scoped_position_deletes, deletion_vectors):
        assert values(spark, f"SELECT count(*) FROM {name}.delete_files") == [(0,)]


def lineage_of(spark: SparkSession, table: IcebergTable) -> list[Any]:
    """Row ids and the sequence numbers of the rows' last changes, in tables that have them."""
    name = table.identity.name
    version = values(spark, f"SHOW TBLPROPERTIES {name} ('format-version')")[0][1]
    if version != "3":
        return []
    return values(spark, f"SELECT id, _row_id, _last_updated_sequence_number FROM {name} ORDER BY ALL")


def statistics_hold(spark: SparkSession, table: IcebergTable) -> None:
    """No live row lies outside what its file's statistics say."""
    location = table._load().operations().current().metadataFileLocation()
    metadata = read_metadata(location, read_local)
    current = next(s for s in metadata["snapshots"] if s["snapshot-id"] == table.version())
    paths = [entry.path for entry in read_entries(current, read_local) if entry.content == 0]
    blocks = table.blocks()
    assert len(paths) == len(blocks) > 0
    kinds = {name: kind for name, kind in table.schema().items() if kind is not Kind.OTHER}
    assert blocks.columns.keys() == kinds.keys()
    live = spark.table(table.identity.name).selectExpr("_file", *map(quoted, kinds)).toArrow()
    by_file = {path: live.filter(pc.equal(live["_file"], path)) for path in paths}
    for block, path in enumerate(paths):
        rows = by_file[path]
        assert rows.num_rows <= blocks.rows[block]
        for name, kind in kinds.items():
            found, missing = encode(rows[name])
            stats = blocks.columns[name]
            if stats.nulls[block] in (0, blocks.rows[block]):
                assert missing.all() if stats.nulls[block] else not missing.any()
            for value in found[~missing]:
                assert not stats.lower_known[block] or not below(value, stats.lower[block], kind), (name, value)
                assert not stats.upper_known[block] or not below(stats.upper[block], value, kind), (name, value)


def below(one: Any, other: Any, kind: Kind) -> bool:
    """Spark's order: NaN is above every number and equal to itself."""
    if kind is Kind.FLOAT and (one != one or other != other):
        return one == one and other != other
    return one < other
