"""Baselines, optimum and simulator agree with what can be computed by hand or by trying everything."""

import itertools
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oreo_lakehouse.backtest.optimum import optimal_schedule
from oreo_lakehouse.backtest.run import POLICIES, run
from oreo_lakehouse.errors import ConfigError, HistoryError
from oreo_lakehouse.predicates.tree import TRUE, And, Compare, Op
from oreo_lakehouse.predicates.values import Kind

RANDOM = np.random.default_rng(1)
ROWS = pa.table({name: RANDOM.integers(0, 1000, 3000) for name in "abc"})


def queries(column, count, seed):
    starts = np.random.default_rng(seed).integers(0, 960, count)
    return [
        And(
            (
                Compare(column, Op.GE, Kind.INTEGER, int(s)),
                Compare(column, Op.LT, Kind.INTEGER, int(s) + 40),
            )
        )
        for s in starts
    ]


STREAM = [q for seed, column in enumerate("abac") for q in queries(column, 400, seed)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=6),
    st.floats(0.1, 3),
)
def test_the_optimum_is_that_of_trying_every_schedule(costs, alpha):
    matrix = np.array(costs).T
    found = optimal_schedule(matrix, alpha)

    def price(path):
        moves = sum(a != b for a, b in itertools.pairwise((0, *path)))
        return sum(matrix[s, t] for t, s in enumerate(path)) + alpha * moves

    best = min(price(path) for path in itertools.product(range(3), repeat=len(costs)))
    assert found.total == pytest.approx(best)
    assert found.cumulative()[-1] == pytest.approx(found.total)


@pytest.fixture(scope="module")
def result():
    return run(ROWS, STREAM, alpha=20, blocks=12, seed=1)


def test_all_policies_are_reported_as_documented(result):
    document = json.loads(json.dumps(result.to_json()))
    assert document["queries"] == 1600
    assert set(document["policies"]) == set(POLICIES)
    for numbers in document["policies"].values():
        assert numbers["total"] == pytest.approx(numbers["query"] + numbers["movement"])
        assert numbers["movement"] == pytest.approx(20 * numbers["moves"])
    assert "saved" in result.advice()


def test_nobody_beats_the_optimum_and_ours_beats_doing_nothing(result):
    totals = {name: outcome.total for name, outcome in result.outcomes.items()}
    assert all(totals["optimum"] <= total + 1e-9 for name, total in totals.items() if name != "static")
    assert totals["never"] == pytest.approx(1600, rel=0.01)
    assert totals["oreo"] < 0.5 * totals["never"]
    assert result.outcomes["offline-optimal"].query <= result.outcomes["paper"].query


def test_the_same_seed_gives_the_same_bill():
    again = [run(ROWS, STREAM[:700], alpha=20, blocks=12, policies=["oreo", "paper"], seed=3) for _ in range(2)]
    assert again[0].to_json()["policies"] == again[1].to_json()["policies"]


def test_times_put_queries_in_order():
    times = list(range(len(STREAM)))
    backwards = run(ROWS, STREAM[::-1], times[::-1], alpha=20, blocks=12, policies=["paper"])
    forwards = run(ROWS, STREAM, times, alpha=20, blocks=12, policies=["paper"])
    assert backwards.to_json()["policies"] == forwards.to_json()["policies"]


def test_a_delay_costs_queries_but_no_moves():
    plain, late = (run(ROWS, STREAM, alpha=20, blocks=12, policies=["paper"], delay=d) for d in (0, 40))
    assert late.outcomes["paper"].query > plain.outcomes["paper"].query
    assert len(late.outcomes["paper"].moves) == len(plain.outcomes["paper"].moves)


def test_a_template_of_several_shapes_is_one_template():
    """`b < 500 or b >= 500, by turns` is one template to whoever knows them: it moves when `a` gives way to it."""
    halves = [
        And((Compare("c", Op.GE, Kind.INTEGER, i % 900), Compare("b", Op.LT if i % 3 else Op.GE, Kind.INTEGER, 500)))
        for i in range(300)
    ]
    found = run(ROWS, queries("a", 300, 6) + halves, alpha=10, blocks=12, policies=["offline-optimal"])
    assert found.outcomes["offline-optimal"].moves == (0, 300)


def test_another_kind_of_range_on_the_same_column_is_noticed_at_once():
    everything = [Compare("a", Op.LE, Kind.INTEGER, 990 + i % 9) for i in range(300)]
    found = run(ROWS, everything + queries("a", 100, 6), alpha=10, blocks=12, policies=["oreo"]).outcomes["oreo"]
    assert any(300 <= move < 330 for move in found.moves)


@pytest.mark.parametrize(
    "rows",
    [
        ROWS.slice(0, 0),
        ROWS.slice(0, 1),
        pa.table({"a": [7] * 500}),
        pa.table({"a": pa.nulls(500, pa.int64())}),
        pa.table({"other": [1, 2, 3]}),
    ],
)
@pytest.mark.parametrize("blocks", [1, 12])
def test_odd_tables_give_a_bill_and_no_crash(rows, blocks):
    found = run(rows, [*queries("a", 250, 1), TRUE], alpha=5, blocks=blocks)
    assert all(np.isfinite(outcome.total) for outcome in found.outcomes.values())


def test_bad_requests_are_named():
    with pytest.raises(HistoryError, match="no queries"):
        run(ROWS, [])
    with pytest.raises(ConfigError, match="no policy 'oero'"):
        run(ROWS, STREAM, policies=["oero"])
