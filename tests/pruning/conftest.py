"""Tables of both formats, and layouts committed the way maintenance commits them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from maintained import FORMATS, Maintained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, spark: SparkSession, place: Any) -> Maintained:
    """A table of every format in turn, not created yet."""
    return Maintained(spark, request.param, getattr(place, request.param), place.folder)
