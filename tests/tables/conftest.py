"""The formats that the behaviour suite runs over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from lake import Lake

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from oreo_lakehouse.tables.contract import Table


def _delta(spark: SparkSession, name: str) -> Table:
    from oreo_lakehouse.tables.delta import DeltaTable

    return DeltaTable.for_name(spark, name)


def _iceberg(spark: SparkSession, name: str) -> Table:
    from oreo_lakehouse.tables.iceberg import IcebergTable

    return IcebergTable.for_name(spark, name)


OPENERS: dict[str, Callable[[SparkSession, str], Table]] = {"delta": _delta, "iceberg": _iceberg}
"""A new format joins the behaviour suite by one entry here (and by the schema of its name in `place`)."""


@pytest.fixture(params=sorted(OPENERS))
def lake(request: pytest.FixtureRequest, spark: SparkSession, place: Any) -> Lake:
    """Every format in turn."""
    return Lake(spark, request.param, getattr(place, request.param), OPENERS[request.param])


@pytest.fixture
def delta(spark: SparkSession, place: Any) -> Lake:
    """Delta only, for what no other format has."""
    return Lake(spark, "delta", place.delta, OPENERS["delta"])
