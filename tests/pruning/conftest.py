"""Tables of both formats, and layouts committed the way maintenance commits them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from maintained import FORMATS, Maintained
from watching import Watched

from oreo_lakehouse.pruning.attach import attach, detach

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, spark: SparkSession, place: Any) -> Maintained:
    """A table of every format in turn, not created yet."""
    return Maintained(spark, request.param, getattr(place, request.param), place.folder)


@pytest.fixture
def watched(table: Maintained) -> Iterator[Watched]:
    """The same table while pruning is on; its session has run queries before."""
    found = Watched(table)
    assert attach(table.spark, found.config, capture=False) is table.spark
    attach(table.spark, found.config, capture=False)
    yield found
    detach(table.spark)
