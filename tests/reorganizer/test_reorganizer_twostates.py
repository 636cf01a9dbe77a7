"""Two states with different prices: at most three times the best schedule, and resumable."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.reorganizer.twostates import TwoStates

COSTS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=300)


def run(costs, there, back, resume_at=-1):
    reorganizer, paid, path = TwoStates("a", "b", there, back), 0.0, []
    for number, (a, b) in enumerate(costs):
        if number == resume_at:
            reorganizer = TwoStates.from_json(json.loads(json.dumps(reorganizer.to_json())))
        here = reorganizer.current
        paid += a if here == "a" else b
        decision = reorganizer.observe({"a": a, "b": b})
        if decision.moved:
            paid += there if here == "a" else back
        path.append(decision.state)
    return paid, path


def optimum(costs, there, back):
    a, b = 0.0, there
    for cost_a, cost_b in costs:
        a, b = min(a, b + back) + cost_a, min(b, a + there) + cost_b
    return min(a, b)


@settings(max_examples=150, deadline=None)
@given(COSTS, st.floats(0.5, 8), st.floats(0, 8))
def test_three_times_the_optimum_and_a_round_trip(costs, there, back):
    paid, _ = run(costs, there, back)
    assert paid <= 3 * optimum(costs, there, back) + 2 * (there + back) + 1


def test_an_adversary_who_always_hits_the_current_state_gains_no_more():
    reorganizer, costs = TwoStates("a", "b", 5.0, 1.0), []
    for _ in range(2000):
        hit = {"a": float(reorganizer.current == "a"), "b": float(reorganizer.current == "b")}
        costs.append((hit["a"], hit["b"]))
        reorganizer.observe(hit)
    paid, _ = run(costs, 5.0, 1.0)
    assert paid <= 3 * optimum(costs, 5.0, 1.0) + 12 + 1


def test_a_resumed_run_is_the_same():
    costs = [(1.0, 0.2)] * 20 + [(0.0, 0.9)] * 30
    assert run(costs, 4.0, 2.0, resume_at=17) == run(costs, 4.0, 2.0)
    with pytest.raises(StoreError, match="malformed"):
        TwoStates.from_json({})
