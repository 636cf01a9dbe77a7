"""One Spark session for the whole test process; every test that asks for `place` gets names and folders of its own."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from faultystorage import ROOM, faulty_storage
from quickspark import QUICK, SHORT, without_processes
from restcatalog import rest_settings

from oreo_lakehouse.config import load_config
from oreo_lakehouse.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_LONG = ("chaos", "cli", "tables", "pruning", "maintenance", "history")
"""Rooms whose files take longest: they go first, so that short ones fill up the end while the last long one runs."""
_numbers = itertools.count(1)
_starts = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {room: place for place, room in enumerate(_LONG)}
    items.sort(key=lambda item: order.get(item.path.parent.name, len(order)))


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def spark(warehouse: Path) -> Iterator[SparkSession]:
    """Real Spark with Delta and Iceberg; Delta's catalog is in memory, since one process needs no more."""
    # pytest would silently start it anew for each parameter of a fixture that takes its name.
    assert next(_starts) == 1, "Spark starts once in a test process; is there another fixture called `spark`?"
    flags = {
        "spark.warehouse": str(warehouse),
        "spark.driver_memory": "3g",
        "spark.conf": {**QUICK, **SHORT, **rest_settings()},
    }
    session = spark_session(load_config(flags=flags, environ={}))
    without_processes(session)
    yield session
    session.stop()


@dataclass(frozen=True)
class Place:
    """A schema in both catalogs and a folder, nobody else's."""

    delta: str
    iceberg: str
    folder: Path


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Place:
    name = f"test{next(_numbers)}"
    spark.sql(f"CREATE DATABASE {name}")
    spark.sql(f"CREATE NAMESPACE iceberg.{name}")
    return Place(delta=name, iceberg=f"iceberg.{name}", folder=tmp_path)


@pytest.fixture(scope="session")
def faulty(spark: SparkSession) -> Iterator[Any]:
    made = faulty_storage(spark)
    yield made
    made.close()


@pytest.fixture
def storage(faulty: Any) -> Iterator[Any]:
    """The storage behind `faulty:` locations, healthy again after the test."""
    yield faulty
    faulty.fault(ROOM, None)
