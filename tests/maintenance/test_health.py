"""Clustering health against plain counting, and on tables whose answer is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oreo_lakehouse.layouts.blocks import Blocks, ColumnStats
from oreo_lakehouse.layouts.skipping import service_costs
from oreo_lakehouse.maintenance import health as module
from oreo_lakehouse.maintenance.health import column_health, health, skipping
from oreo_lakehouse.predicates.tree import And, Compare, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.predicates.workload import Workload

MB = 1 << 20


def blocks_of(bounds: list[tuple[Any, Any]], kind: Kind = Kind.INTEGER, size: int = 128 * MB) -> Blocks:
    n = len(bounds)
    stats = ColumnStats.of(kind, [b[0] for b in bounds], [b[1] for b in bounds], [0] * n)
    return Blocks(np.full(n, 100), {"a": stats}, np.full(n, size))


@pytest.mark.parametrize(
    ("bounds", "kind", "depth", "overlap"),
    [
        ([(0, 9), (10, 19), (20, 29)], Kind.INTEGER, 1.0, 0.0),
        ([(0, 10), (10, 20), (20, 30)], Kind.INTEGER, 1.0, 0.0),  # a common end is no overlap
        ([(0, 29), (1, 28), (2, 30)], Kind.INTEGER, 3.0, 1.0),
        ([(5, 5), (5, 5), (9, 9)], Kind.INTEGER, 5 / 3, 0.0),  # one value a file: nothing to cluster
        ([(0, 9), (5, 5)], Kind.INTEGER, 1.5, 1.0),
        ([(None, None), (None, None)], Kind.INTEGER, 2.0, 1.0),
        ([(None, None), (0, 1), (5, 6)], Kind.INTEGER, 2.0, 4 / 6),
        ([("shop-aa", "shop-ad"), ("shop-ae", "shop-az")], Kind.STRING, 1.0, 0.0),
        ([("shop-aa", "shop-zd"), ("shop-ab", "shop-zz")], Kind.STRING, 2.0, 1.0),
    ],
)
def test_known_answers(bounds: list[Any], kind: Kind, depth: float, overlap: float) -> None:
    found = column_health(blocks_of(bounds, kind), "a")
    assert found.avg_depth == pytest.approx(depth)
    assert found.overlap_ratio == pytest.approx(overlap)


ranges = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 6)).map(lambda p: (p[0], p[0] + p[1])), min_size=2, max_size=12
)


@settings(max_examples=200, deadline=None)
@given(ranges)
def test_as_plain_counting_has_it(bounds: list[tuple[int, int]]) -> None:
    found = column_health(blocks_of(bounds), "a")
    pairs = [(i, j) for i in range(len(bounds)) for j in range(len(bounds)) if i != j]

    def overlap(i: int, j: int) -> bool:
        (a, b), (c, d) = bounds[i], bounds[j]
        return max(a, c) < min(b, d) or (a == b and c < a < d) or (c == d and a < c < b)

    assert found.overlap_ratio == pytest.approx(sum(overlap(i, j) for i, j in pairs) / len(pairs))
    depths = [sum(c <= (a + b) / 2 <= d for c, d in bounds) for a, b in bounds]
    assert found.avg_depth == pytest.approx(np.mean(depths))


def test_nulls_other_kinds_and_missing_columns() -> None:
    blocks = blocks_of([(0, 9), (None, None)])
    nulls = replace(blocks.columns["a"], nulls=np.array([0, 100]))
    assert column_health(replace(blocks, columns={"a": nulls}), "a").avg_depth == 1.0  # a file of NULLs holds no value
    assert column_health(blocks, "missing") == module.ColumnHealth("missing", 2.0, 1.0)
    empty = Blocks(np.zeros(0, np.int64), {}, np.zeros(0, np.int64))
    assert health(empty, ["a"], None, MB).overlapping == ()


def between(low: int, high: int) -> Any:
    return And((Compare("a", Op.GE, Kind.INTEGER, low), Compare("a", Op.LE, Kind.INTEGER, high)))


def test_skipping_agrees_with_service_costs_and_counts_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = replace(blocks_of([(0, 9), (10, 19), (20, 29)]), sizes=np.array([1, 1, 2]))
    workload = Workload.of([between(0, 5), between(3, 12), between(25, 26), between(0, 99)])
    found = skipping(blocks, workload)
    assert found.reads.tolist() == [3, 2, 2]
    assert found.rows == pytest.approx(1 - service_costs(workload, blocks).mean())
    assert found.bytes == pytest.approx(1 - (3 * 1 + 2 * 1 + 2 * 2) / 16)
    monkeypatch.setattr(module, "CELLS", 6)
    assert (skipping(blocks, workload).queries, skipping(blocks, workload).judged) == (4, 2)


def test_well_sized_files_that_overlap_are_told() -> None:
    spread = blocks_of([(0, 29), (1, 28), (2, 30)])
    assert health(spread, ["a"], None, 128 * MB).overlapping == ("a",)
    assert health(spread, ["a"], None, 512 * MB).overlapping == ()  # compaction by size has work to do
    chain = blocks_of([(i, i + 11) for i in range(100)])  # a file overlaps up to 20 of 99 others
    assert health(chain, ["a"], None, 128 * MB).overlapping == ("a",)
    assert health(blocks_of([(i, i + 3) for i in range(100)]), ["a"], None, 128 * MB).overlapping == ()
    assert health(blocks_of([(0, 9), (10, 19)]), ["a"], None, 128 * MB).overlapping == ()
    assert health(spread, ["a"], None, 128 * MB).to_json()["well_sized_share"] == 1.0
