"""A table by every name that users write, and an error of its own for everything that is not a table."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from oreo_lakehouse.errors import NotATableError, TableError, TableNotFoundError
from oreo_lakehouse.jvm import jvm
from oreo_lakehouse.tables.resolve import delta_folder, open_table


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Everything that a name may mean; nobody here changes any of it."""
    folder = tmp_path_factory.mktemp("resolving")
    place = SimpleNamespace(delta="resolving", iceberg="iceberg.resolving", folder=folder)
    spark.sql(f"CREATE DATABASE {place.delta}")
    spark.sql(f"CREATE NAMESPACE {place.iceberg}")
    spark.range(3).write.format("delta").saveAsTable(f"{place.delta}.d")
    spark.range(3).write.format("delta").save(str(place.folder / "by path"))
    spark.range(3).writeTo(f"{place.iceberg}.i").using("iceberg").create()
    spark.range(3).write.parquet(str(place.folder / "plain"))
    spark.sql(f"CREATE TABLE {place.delta}.p USING parquet AS SELECT 1 a")
    spark.sql(f"CREATE VIEW {place.delta}.v AS SELECT * FROM {place.delta}.d")
    spark.range(1).createOrReplaceTempView("tv")
    return place


def test_a_delta_table_by_name_by_path_and_by_format(spark: Any, tables: Any) -> None:
    path = str(tables.folder / "by path")
    for name in (path, f"file:{path}", f"delta.`{path}`", path + "/"):
        assert open_table(spark, name).identity.format == "delta"
    by_name = open_table(spark, f"{tables.delta}.d").identity
    by_path = open_table(spark, by_name.location).identity
    assert by_name.uuid == by_path.uuid == open_table(spark, f"spark_catalog.{tables.delta}.d").identity.uuid


def test_an_iceberg_table_by_its_catalog(spark: Any, tables: Any) -> None:
    assert open_table(spark, f"{tables.iceberg}.i").identity.format == "iceberg"
    assert open_table(spark, f"`iceberg`.`{tables.delta}`.`i`").identity.format == "iceberg"


def test_a_bare_name_is_looked_for_in_the_current_database(spark: Any, tables: Any) -> None:
    session = spark.newSession()
    session.sql(f"USE {tables.delta}")
    assert open_table(session, "d").identity.format == "delta"
    session.sql(f"USE {tables.iceberg}")
    assert open_table(session, "i").identity.format == "iceberg"


def test_the_catalog_alone_tells_a_delta_tables_name_and_folder(spark: Any, tables: Any) -> None:
    odd = f"{tables.delta}.odd"
    spark.sql(f"CREATE TABLE {odd} (id BIGINT) USING delta LOCATION '{tables.folder}/a b%20c'")
    session = spark.newSession()
    session.sql(f"USE {tables.delta}")
    for name in (f"{tables.delta}.d", f"spark_catalog.{tables.delta}.d", "d", odd):
        opened = open_table(session, name).identity
        assert delta_folder(session, name) == (opened.name, opened.location), name
    others = [str(tables.folder / "by path"), f"delta.`{tables.folder}/by path`", f"{tables.iceberg}.i"]
    for name in (*others, f"{tables.delta}.p", f"{tables.delta}.v", f"{tables.delta}.nothing"):
        assert delta_folder(session, name) is None, name


def test_the_name_that_sql_may_write_reads_the_table(spark: Any, tables: Any) -> None:
    for name in (f"{tables.delta}.d", str(tables.folder / "by path"), f"{tables.iceberg}.i"):
        assert spark.sql(f"SELECT * FROM {open_table(spark, name).identity.name}").count() == 3


def test_whoever_opens_a_table_has_an_active_session(spark: Any, tables: Any) -> None:
    """Delta reads part of a log by the JVM thread's own session, which a Python thread new to Spark does not have."""
    found, sessions = list[bool](), jvm(spark).org.apache.spark.sql.classic.SparkSession

    def read() -> None:
        open_table(spark, str(tables.folder / "by path"))
        found.append(bool(sessions.getActiveSession().isDefined()))

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert found == [True]


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("{db}.nothing", TableNotFoundError, "there is no table 'nothing' in spark_catalog.{db}"),
        ("nodb.t", TableNotFoundError, "there is no table 't' in spark_catalog.nodb"),
        ("iceberg.{db}.nothing", TableNotFoundError, "there is no table 'nothing' in iceberg.{db}"),
        ("nocatalog.a.b", TableNotFoundError, "no catalog 'nocatalog' in this session"),
        ("{folder}/nowhere", TableNotFoundError, "there is nothing at {folder}/nowhere"),
        ("{folder}/plain", NotATableError, "is a plain folder of files, not a Delta table"),
        ("{folder}", NotATableError, "there is no _delta_log in it"),
        ("{db}.p", NotATableError, "is a table of parquet format"),
        ("{db}.v", NotATableError, "is a view; name the table that it reads"),
        ("tv", NotATableError, "is a temporary view"),
        ("iceberg.{db}.i.files", NotATableError, "is one of Iceberg's metadata tables"),
        ("{db}.d; DROP TABLE {db}.d", TableError, "is not a table name"),
        ("", TableError, "is not a table name"),
        ("a b", TableError, "is not a table name"),
    ],
)
def test_what_is_not_a_table_says_what_it_is(
    spark: Any, tables: Any, name: str, error: type[Exception], message: str
) -> None:
    db, folder = tables.delta, tables.folder
    with pytest.raises(error) as raised:
        open_table(spark, name.format(db=db, folder=folder))
    assert message.format(db=db, folder=folder) in str(raised.value)


def test_an_iceberg_folder_is_told_to_come_through_its_catalog(spark: Any, tables: Any) -> None:
    location = open_table(spark, f"{tables.iceberg}.i").identity.location
    with pytest.raises(NotATableError, match="name the table through its catalog"):
        open_table(spark, location)
