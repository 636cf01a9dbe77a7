"""A kept sample is as good as a fresh one, and only new files are drawn from."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oreo_lakehouse.maintenance.keptsample import KeptSample
from oreo_lakehouse.store import LocalStore
from oreo_lakehouse.tables.resolve import open_table


class Watched:
    """A real table whose draws are counted."""

    def __init__(self, table: Any) -> None:
        self.table, self.drawn_from = table, list[int | None]()

    def sample(self, rows: int, seed: int, columns: Any = None, only: Collection[str] | None = None) -> Any:
        self.drawn_from.append(None if only is None else len(only))
        return self.table.sample(rows, seed, columns, only)


@pytest.mark.parametrize("fmt", ["delta", "iceberg"])
def test_only_new_files_are_drawn_from_and_every_row_has_the_same_chance(
    spark: Any, place: Any, tmp_path: Path, fmt: str
) -> None:
    name = f"{place.delta if fmt == 'delta' else place.iceberg}.sampled"
    spark.range(0, 8_000, 1, 4).selectExpr("id", "id % 7 AS k").writeTo(name).using(fmt).create()
    kept = KeptSample(LocalStore(str(tmp_path)), "t")
    watched = Watched(open_table(spark, name))

    def drawn(rows: int = 2_000, columns: tuple[str, ...] = ("id",), *, keep: bool = True) -> np.ndarray:
        table = kept.draw(watched, watched.table.blocks(), rows, 1, dict.fromkeys(columns, ""), keep=keep)  # type: ignore[arg-type]
        return np.sort(table["id"].to_numpy())

    def files() -> list[Path]:
        return sorted((tmp_path / "t/sample").glob("*.parquet"))

    drawn(keep=False)
    assert not files()
    first = drawn()
    assert abs(len(first) - 2_000) < 250
    assert (drawn() == first).all()
    assert watched.drawn_from == [None, None]
    # A quarter more rows: about 400 of them come in, and as many of the old ones go.
    spark.range(8_000, 10_000, 1, 1).selectExpr("id", "id % 7 AS k").writeTo(name).append()
    second = drawn()
    assert watched.drawn_from[2:] == [1]
    assert abs((second >= 8_000).mean() - 0.2) < 0.04
    assert abs(len(second) - 2_000) < 250
    assert set(second[second < 8_000]) < set(first)
    assert (drawn() == second).all()
    # A layout of ours puts the same rows into other files; a delete by others is another matter.
    before = watched.table.blocks()
    spark.table(name).repartition(3).createOrReplaceTempView("again")
    spark.sql(f"INSERT OVERWRITE {name} SELECT * FROM again")
    kept.follow(before, watched.table.blocks())
    third = drawn()
    assert watched.drawn_from[3:] == []
    assert len(files()) == 1
    assert set(third) <= set(second)
    assert len(third) > 0.9 * len(second)
    spark.sql(f"DELETE FROM {name} WHERE id < 5000")
    assert drawn().min() >= 5_000
    assert len(watched.drawn_from) == 4
    # Another column, or too few rows for the table as it is, are a new draw; so is what was damaged.
    drawn(columns=("id", "k"))
    assert len(watched.drawn_from) == 5
    drawn(4_500, ("id", "k"))
    assert len(watched.drawn_from) == 6
    for file in files():
        file.write_bytes(b"damaged")
    assert len(drawn(4_500)) > 4_000
    assert len(watched.drawn_from) == 7
