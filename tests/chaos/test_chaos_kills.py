"""The suite's share of the kills; `examples/chaos.py` goes on for hours."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import kills
import pytest
from histories import world_of
from kills import Killed, kill_and_go_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("kind", "seed"), [("delta", 2), ("iceberg merge on read", 2)])
def test_after_a_kill_anywhere_the_next_run_finds_the_table_in_order(
    spark: SparkSession, kind: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kills, "RECOVERIES", 1.0)  # the run that tidies up is killed, too, wherever it comes so far
    draw, killed = random.Random(seed), Killed()
    with world_of(spark, kind) as world:
        while killed.kills < 4:
            kill_and_go_on(world, draw, killed)
        world.check_every_version()
