"""A REST catalog: the same promises when commits go over the network, and when its answers get lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from iceberg_support import make_table, numbers, rows_of
from lake import staged_layout
from restcatalog import rest_catalog

from oreo_lakehouse.tables.contract import Committed, Conflicted, Unknown

if TYPE_CHECKING:
    from conftest import Place
    from pyspark.sql import SparkSession

    from oreo_lakehouse.tables.iceberg import IcebergTable


@pytest.fixture(scope="module")
def server(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with rest_catalog(spark, tmp_path_factory.mktemp("rest")) as server:
        spark.sql("CREATE NAMESPACE rest.db")
        yield server


@pytest.fixture
def table(spark: SparkSession, server: Any, place: Place) -> IcebergTable:
    return make_table(spark, f"rest.db.{place.delta}", files=2, rows=100)


def test_a_layout_goes_in_and_out_through_a_rest_catalog(spark: SparkSession, table: IcebergTable) -> None:
    name = table.identity.name
    staged = staged_layout(table)
    numbers(spark, 5000, 10).writeTo(name).append()
    before = rows_of(spark, name)
    assert table.commit(staged, {}) == Committed(table.version())
    assert rows_of(spark, name) == before
    assert len(table.blocks()) == len(staged.paths) + 1
    table.retain(table.layout_commits()[0], days=1)
    assert isinstance(table.revert(table.layout_commits()[0], "back"), Committed)
    assert rows_of(spark, name) == before
    staged = staged_layout(table)
    spark.sql(f"DELETE FROM {name} WHERE id < 10")
    before = rows_of(spark, name)
    assert isinstance(table.commit(staged, {}), Conflicted)
    assert rows_of(spark, name) == before


@pytest.mark.parametrize(
    ("commits", "afterwards", "expected"),
    [(1, True, Committed), (1, False, Committed), (99, False, Unknown)],
    ids=["answer_lost", "request_lost_once", "server_down"],
)
def test_a_commit_whose_answer_is_lost_is_found_again(
    spark: SparkSession, server: Any, table: IcebergTable, commits: int, afterwards: bool, expected: type
) -> None:
    name = table.identity.name
    staged = staged_layout(table)
    before = rows_of(spark, name)
    server.fail(0, commits, afterwards)
    result = table.commit(staged, {})
    server.fail(0, 0, False)
    assert isinstance(result, expected), result
    assert rows_of(spark, name) == before
    assert isinstance(table.commit(staged, {}), Committed)
    assert [commit.run_id for commit in table.layout_commits()] == [staged.run_id]
    assert rows_of(spark, name) == before
