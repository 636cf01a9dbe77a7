"""A block that is skipped holds no matching row, whatever the predicate and the data."""

import sys
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent.parent / "predicates"))
from reference import predicates, random_predicate, random_rows, rows, truth

from oreo_lakehouse.layouts.blocks import Blocks, ColumnStats
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.skipping import might_match, service_costs
from oreo_lakehouse.predicates.encoded import EncodedRows
from oreo_lakehouse.predicates.relax import relax
from oreo_lakehouse.predicates.rowtest import holds
from oreo_lakehouse.predicates.tree import TRUE, And, Compare, In, IsNull, Like, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.predicates.workload import Workload

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("j", pa.int32()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("d", pa.decimal128(20, 2)),
        ("b", pa.bool_()),
        ("t", pa.int32()),
    ]
)


def table(data):
    plain = pa.Table.from_pylist(data, schema=SCHEMA)
    return plain.set_column(plain.schema.get_field_index("t"), "t", plain["t"].cast(pa.date32()))


@settings(max_examples=150, deadline=None)
@given(st.lists(predicates(), min_size=1, max_size=4), rows(), st.integers(1, 5), st.sampled_from(["native", "bid"]))
def test_a_skipped_block_holds_no_matching_row(queries, data, count, mode):
    bids = np.arange(len(data), dtype=np.int32) % count
    blocks = Sample(table(data)).blocks_of(bids, count)
    stored = [relax(query)[0] for query in queries]
    found = might_match(Workload.of(stored), blocks, mode)
    for q, query in enumerate(stored):
        for row, bid in zip(data, bids, strict=True):
            if truth(query, row):
                assert found[q, bid], (query, row)


@pytest.mark.parametrize("mode", ["native", "bid"])
@pytest.mark.parametrize("seed", range(6))
def test_thousands_of_random_predicates_skip_no_matching_row(seed, mode):
    random = Random(seed)
    data = random_rows(random, 60)
    bids = np.array([random.randrange(12) for _ in data], np.int32)
    blocks = Sample(table(data)).blocks_of(bids, 12)
    queries = [relax(random_predicate(random))[0] for _ in range(400)]
    found = might_match(Workload.of(queries), blocks, mode)
    matching = np.zeros_like(found)
    for q, query in enumerate(queries):
        for row, bid in zip(data, bids, strict=True):
            matching[q, bid] |= truth(query, row) is True
    assert not (matching & ~found).any()
    assert (~found).any()


@settings(max_examples=100, deadline=None)
@given(predicates(), rows(), st.data())
def test_unknown_or_loose_statistics_never_hide_a_row(query, data, draw):
    blocks = Sample(table(data)).blocks_of(np.zeros(len(data), np.int32), 1)
    columns = {}
    for name, stats in blocks.columns.items():
        if draw.draw(st.booleans()):
            continue
        low_known, high_known = (known & draw.draw(st.booleans()) for known in (stats.lower_known, stats.upper_known))
        nulls = stats.nulls if (low_known | high_known).all() else np.array([-1])
        columns[name] = ColumnStats(stats.kind, stats.lower, stats.upper, low_known, high_known, nulls)
    found = might_match(Workload.of([relax(query)[0]]), Blocks(blocks.rows, columns))
    assert found[0, 0] or not any(truth(query, row) for row in data)


@settings(max_examples=100, deadline=None)
@given(predicates(), rows())
def test_row_test_agrees_with_three_valued_logic(query, data):
    found = holds(query, EncodedRows(table(data)))
    assert found.tolist() == [truth(query, row) is True for row in data]


@settings(max_examples=60, deadline=None)
@given(st.lists(predicates(), min_size=1, max_size=12), rows(min_size=3), st.data())
def test_takes_and_concatenations_keep_each_query_s_costs(queries, data, draw):
    blocks = Sample(table(data)).blocks_of(np.arange(len(data), dtype=np.int32) % 3, 3)
    workload = Workload.of(queries)
    costs = service_costs(workload, blocks)
    assert np.allclose(costs, [service_costs(Workload.of([query]), blocks)[0] for query in queries])
    order = draw.draw(st.lists(st.integers(0, len(queries) - 1), max_size=20))
    assert np.array_equal(service_costs(workload.take(order), blocks), costs[order])
    half = len(queries) // 2
    joined = Workload.concat([Workload.of(queries[:half]), Workload.of(queries[half:]), workload.take(order)])
    assert np.array_equal(service_costs(joined, blocks), np.concatenate([costs, costs[order]]))


def blocks_of(lower, upper, nulls, kind=Kind.STRING, rows=10):
    return Blocks(np.full(len(lower), rows), {"c": ColumnStats.of(kind, lower, upper, nulls)})


def kept(predicate, blocks, mode="native"):
    return might_match(Workload.of([predicate]), blocks, mode)[0].tolist()


def test_prefix_like_is_judged_by_bounds():
    blocks = blocks_of(["aa", "ab", "b"], ["az", "abz", "c"], [0, 0, 0])
    assert kept(Like("c", "ab%"), blocks) == [True, True, False]
    assert kept(Like("c", "ab%", negated=True), blocks) == [True, False, True]
    assert kept(Like("c", "%b"), blocks) == [True, True, True]


def test_inequality_skips_only_a_block_of_that_one_value_and_no_engine_is_trusted_with_it():
    blocks = blocks_of([5, 5, 5, None], [5, 6, None, None], [0, 0, 0, 10], Kind.INTEGER)
    for query in (Compare("c", Op.NE, Kind.INTEGER, 5), In("c", Kind.INTEGER, (4, 5), negated=True)):
        assert kept(query, blocks, "bid") == [False, True, True, False]
        assert kept(query, blocks, "native") == [True, True, True, False]


def test_a_list_is_a_range_for_engines_and_judged_literal_by_literal_by_our_own_pruning():
    blocks = blocks_of([0, 4, 9, None], [3, 6, 12, None], [0, 0, 0, 10], Kind.INTEGER)
    ends = In("c", Kind.INTEGER, (2, 9))
    assert kept(ends, blocks, "bid") == [True, False, True, False]
    assert kept(ends, blocks, "native") == [True, True, True, False]
    assert kept(In("c", Kind.INTEGER, (4, 5, 6)), blocks, "native") == [False, True, False, False]


def test_engines_read_everything_for_a_very_long_list():
    blocks = blocks_of([0, 5000, None], [400, 5001, None], [0, 0, 10], Kind.INTEGER)
    short, long = (In("c", Kind.INTEGER, tuple(range(count))) for count in (200, 201))
    assert kept(short, blocks, "native") == [True, False, False]
    assert kept(long, blocks, "native") == [True, True, False]
    assert kept(long, blocks, "bid") == [True, False, False]


def test_null_counts_decide_is_null_and_blocks_of_nulls_match_nothing_else():
    blocks = blocks_of([None, 1, 1], [None, 2, 2], [10, 0, None], Kind.INTEGER)
    assert kept(IsNull("c"), blocks) == [True, False, True]
    assert kept(IsNull("c", negated=True), blocks) == [False, True, True]
    assert kept(Compare("c", Op.NE, Kind.INTEGER, 9), blocks) == [False, True, True]


def test_what_is_not_known_might_match():
    blocks = blocks_of([1], [2], [0], Kind.INTEGER)
    assert kept(Compare("missing", Op.EQ, Kind.INTEGER, 9), blocks) == [True]
    assert kept(Compare("c", Op.EQ, Kind.FLOAT, 9.0), blocks) == [True]
    assert kept(Compare("c", Op.EQ, Kind.INTEGER, 2**70), blocks) == [True]
    assert kept(And((TRUE, Compare("c", Op.EQ, Kind.INTEGER, 9))), blocks) == [False]


def test_an_empty_table_costs_nothing_and_costs_are_shares_of_rows():
    none = Blocks(np.zeros(0, np.int64), {})
    assert service_costs(Workload.of([TRUE]), none).tolist() == [0.0]
    assert service_costs(Workload.of([]), none).tolist() == []
