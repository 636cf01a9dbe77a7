"""The suite's share of the kills; `examples/chaos.py` goes on for hours."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from histories import world_of
from kills import Killed, kill_and_go_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("kind", "seed"), [("delta", 5), ("iceberg merge on read", 5)])
def test_after_a_kill_anywhere_the_next_run_finds_the_table_in_order(spark: SparkSession, kind: str, seed: int) -> None:
    draw, killed = random.Random(seed), Killed()
    with world_of(spark, kind) as world:
        while killed.kills < 3:
            kill_and_go_on(world, draw, killed)
        world.check_every_version()
