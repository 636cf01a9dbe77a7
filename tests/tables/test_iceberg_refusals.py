"""What we refuse and what is broken: one sentence each, with the problem, the place and the way out."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from iceberg_support import java_table, make_table, rows_of, values
from lake import BID, Modulo, lay_out

from oreo_lakehouse.errors import NotATableError, TableError, TableNotFoundError, UnsupportedTableError
from oreo_lakehouse.jvm import java_class
from oreo_lakehouse.tables import patience
from oreo_lakehouse.tables.iceberg import IcebergTable
from oreo_lakehouse.tables.iceberg.manifests import local_path
from oreo_lakehouse.tables.resolve import open_table

if TYPE_CHECKING:
    from conftest import Place
    from pyspark.sql import SparkSession


def test_a_table_that_cannot_gain_or_be_rewritten_safely_is_refused(spark: SparkSession, place: Place) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name, files=1, rows=10)
    for property_name, value, sentence in (
        ("encryption.key-id", "k", "encrypted"),
        ("write.format.default", "avro", "Avro"),
        ("format-version", "4", "format version 4"),
    ):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{property_name}' = '{value}')")
        with pytest.raises(UnsupportedTableError, match=sentence) as caught:
            table.plan(Modulo(), BID)
        assert str(caught.value).endswith(".")
        if property_name != "format-version":
            spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('{property_name}')")


def test_write_audit_publish_and_other_branches_are_refused(spark: SparkSession, place: Place) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name, files=1, rows=10)
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH side")
    for key in ("spark.wap.id", "spark.wap.branch"):
        spark.conf.set(key, "side")
        try:
            with pytest.raises(UnsupportedTableError, match="write-audit-publish"):
                table.plan(Modulo(), BID)
        finally:
            spark.conf.unset(key)
    with pytest.raises(UnsupportedTableError, match="main branch"):
        IcebergTable.for_name(spark, f"{name}.branch_side")
    table.plan(Modulo(), BID)


def test_a_foreign_column_of_the_bids_name_is_refused(spark: SparkSession, place: Place) -> None:
    table = make_table(spark, f"{place.iceberg}.t", files=1, rows=10)
    for column in ("s", "K"):
        with pytest.raises(UnsupportedTableError, match="bid_column"):
            table.plan(Modulo(), column)
    spark.sql(
        f"CREATE TABLE {place.iceberg}.v (id BIGINT, v VARIANT) USING iceberg TBLPROPERTIES ('format-version'='3')"
    )
    with pytest.raises(UnsupportedTableError, match="variant"):
        IcebergTable.for_name(spark, f"{place.iceberg}.v").plan(Modulo(), BID)
    spark.sql(f"CREATE TABLE {place.iceberg}.g (id BIGINT) USING iceberg TBLPROPERTIES ('format-version'='3')")
    geometry = java_class(spark, "org.apache.iceberg.types.Types$GeometryType").crs84()
    java_table(spark, f"{place.iceberg}.g").updateSchema().addColumn("g", geometry).commit()
    with pytest.raises(UnsupportedTableError, match="geometry"):
        IcebergTable.for_name(spark, f"{place.iceberg}.g").plan(Modulo(), BID)


def test_a_hadoop_catalog_and_columns_without_bounds_give_warnings(spark: SparkSession, place: Place) -> None:
    spark.conf.set("spark.sql.catalog.had", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.had.type", "hadoop")
    spark.conf.set("spark.sql.catalog.had.warehouse", str(place.folder))
    table = make_table(spark, "had.db.t", files=1, rows=10, properties={"write.metadata.metrics.column.k": "none"})
    hadoop, blind = table.plan(Modulo(column="k"), BID).warnings
    assert "hadoop catalog" in hadoop
    assert "no bounds for k" in blind
    before = rows_of(spark, "had.db.t")
    lay_out(table)
    assert rows_of(spark, "had.db.t") == before


def test_a_name_that_means_no_iceberg_table_is_told(spark: SparkSession, place: Place) -> None:
    with pytest.raises(TableNotFoundError, match="no table"):
        IcebergTable.for_name(spark, f"{place.iceberg}.nothing")
    spark.sql(f"CREATE TABLE {place.delta}.d (a INT) USING delta")
    with pytest.raises(NotATableError, match="not an Iceberg table"):
        IcebergTable.for_name(spark, f"{place.delta}.d")


def test_a_missing_metadata_file_is_named(spark: SparkSession, place: Place) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name, files=1, rows=10)
    location = str(table._load().operations().current().metadataFileLocation())
    Path(local_path(location)).unlink()
    with pytest.raises(TableError, match="metadata") as caught:
        IcebergTable.for_name(spark.newSession(), name)
    assert location in str(caught.value)
    with pytest.raises(TableError, match=r"metadata\.json is missing"):
        table.blocks()


def test_a_damaged_manifest_is_named_and_never_read_as_fewer_files(spark: SparkSession, place: Place) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name, files=2, rows=10)
    files = values(spark, f"SELECT manifest_list, path FROM {name}.snapshots CROSS JOIN {name}.manifests")[0]
    for file in (Path(local_path(path)) for path in files):
        content = file.read_bytes()
        end_of_header = content.index(content[-16:]) + 16
        for damaged in (b"not avro", content[:end_of_header], content[:-10], None):
            file.unlink() if damaged is None else file.write_bytes(damaged)
            with pytest.raises(TableError, match="missing" if damaged is None else "damaged") as caught:
                table.blocks()
            assert file.name in str(caught.value)
            with pytest.raises(TableError, match=name):
                table.stage(table.plan(Modulo(), BID), "run")
            file.write_bytes(content)
    assert table.blocks().total_rows == 20


@pytest.fixture
def silent_server() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_catalog_that_does_not_answer_is_named_with_the_time_out(
    spark: SparkSession, silent_server: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "ANSWER_SECONDS", 2.0)
    spark.conf.set("spark.sql.catalog.deaf", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.deaf.type", "rest")
    spark.conf.set("spark.sql.catalog.deaf.uri", f"http://127.0.0.1:{silent_server}")
    with pytest.raises(TableError, match=r"the catalog of deaf\.db\.t did not answer within 2 s"):
        IcebergTable.for_name(spark, "deaf.db.t")
    with pytest.raises(TableError, match="catalog 'deaf' did not answer within 2 s"):
        open_table(spark, "deaf.db.t")


def test_a_catalog_that_cannot_be_reached_is_named(spark: SparkSession, place: Place) -> None:
    spark.conf.set("spark.sql.catalog.dead", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.dead.type", "jdbc")
    spark.conf.set("spark.sql.catalog.dead.uri", f"jdbc:sqlite:{place.folder}/no/such/folder.db")
    spark.conf.set("spark.sql.catalog.dead.warehouse", str(place.folder))
    with pytest.raises(TableError, match=r"dead\.db\.t could not be loaded: .*; check the catalog"):
        IcebergTable.for_name(spark, "dead.db.t")


def test_a_table_registered_twice_stays_readable_under_its_other_name(spark: SparkSession, place: Place) -> None:
    name, other = f"{place.iceberg}.t", f"{place.iceberg}.other"
    table = make_table(spark, name, files=2, rows=50)
    location = table._load().operations().current().metadataFileLocation()
    catalog, _, plain = other.partition(".")
    spark.sql(f"CALL {catalog}.system.register_table('{plain}', '{location}')")
    before = rows_of(spark, name)
    lay_out(table)
    assert rows_of(spark, name) == rows_of(spark, other) == before
    twin = IcebergTable.for_name(spark, other)
    assert twin.identity.uuid == table.identity.uuid
    lay_out(twin, Modulo(3))
    assert rows_of(spark, name) == rows_of(spark, other) == before
