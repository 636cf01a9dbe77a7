"""The suite's share of the races; `examples/chaos.py` goes on for as long as wanted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from histories import world_of
from races import Race

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_maintainers_and_writers_at_once_lose_nothing_and_fail_nobody(
    spark: SparkSession, warehouse: Path, kind: str
) -> None:
    with world_of(spark, kind) as world:
        Race(world, warehouse).run(8, maintainers=2)
