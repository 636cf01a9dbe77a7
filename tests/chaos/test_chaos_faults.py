"""The suite's share of the faults; `examples/chaos.py` goes on for hours."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from faults import CATALOG_FAULTS, Faulted, Faults
from histories import world_of
from restcatalog import CATALOG, rest_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_after_a_fault_nothing_is_lost_and_the_next_run_goes_on(spark: SparkSession, storage: Any, kind: str) -> None:
    draw, faulted = random.Random(3), Faulted()
    with world_of(spark, kind, "faulty://") as world:
        faults = Faults(world, storage, faulted)
        for _ in range(3):
            faults.fault_and_go_on(draw)
        world.check_every_version()
    assert faulted.faults == 3


def test_a_catalog_that_is_slow_or_gone_or_loses_answers_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    draw, faulted = random.Random(3), Faulted()
    with rest_catalog(spark, tmp_path) as catalog, world_of(spark, "iceberg", catalog=CATALOG) as world:
        faults = Faults(world, None, faulted, catalog)
        for _ in range(4):
            faults.fault_and_go_on(draw)
        world.check_every_version()
    assert set(faulted.kinds) <= set(CATALOG_FAULTS)
    assert set(faulted.answers) > {"went on"}, "no fault was met"
