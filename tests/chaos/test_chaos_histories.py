"""The suite's share of the random histories; `examples/chaos.py` plays them by the hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from histories import WEIGHTS, Tally, drawn, explored, play, shrunk
from world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("kind", "seed"), [("delta mapped", 12), ("iceberg v3", 7)])
def test_table_and_model_agree_after_every_step(spark: SparkSession, kind: str, seed: int) -> None:
    tally = Tally()
    explored(spark, kind, seed, 10, tally)
    assert tally.histories == 1
    assert tally.moves > 0, "no layout was changed, so that nothing was tried"


def test_the_present_version_of_an_iceberg_table_keeps_its_columns(spark: SparkSession) -> None:
    """Where ALTER makes no version; the model once expected the new column in the old one."""
    play(spark, "iceberg", [("clean", 500), ("add_column", 768)], Tally())


def test_a_failing_history_is_cut_down_to_what_makes_it_fail() -> None:
    steps = [(name, 0) for name in "abcdefgh"]
    assert shrunk(steps, lambda some: {("b", 0), ("g", 0)} <= {*some}, float("inf")) == [("b", 0), ("g", 0)]


def test_every_step_can_be_drawn_and_taken() -> None:
    steps = {name for seed in range(20) for name, _ in drawn(seed, 20)}
    assert steps == set(WEIGHTS)
    assert all(callable(getattr(World, name)) for name in steps)
