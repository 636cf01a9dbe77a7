"""The guard's bill stays near its comparator's on every path, and the comparator's near the best expert's."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oreo_lakehouse.reorganizer.guard import Comparator, Guard

STATES = ["a", "b", "c"]
COSTS = st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=3, max_size=3)
STEPS = st.lists(st.tuples(COSTS, st.sampled_from(STATES)), min_size=1, max_size=400)


def follow(guard, current, costs, wanted):
    """One query under the guard, as the planner lives it: serve, then ask where to go."""
    guard.observe(current, costs)
    allowed = guard.allowed(wanted)
    if allowed != current:
        guard.moved()
    return allowed


def within(guard):
    return guard.paid <= 1.25 * guard.comparator.paid + 5 * guard.alpha + 1


@settings(max_examples=60, deadline=None)
@given(STEPS, st.floats(1.5, 20), st.integers(0, 99))
def test_any_plan_stays_within_the_path_wise_bound(steps, alpha, seed):
    guard, current = Guard(STATES, alpha, seed), "a"
    for costs, wanted in steps:
        current = follow(guard, current, dict(zip(STATES, costs, strict=True)), wanted)
        assert within(guard)


@pytest.mark.parametrize("seed", range(5))
def test_a_planner_that_always_moves_into_the_next_blow_is_stopped(seed):
    alpha, guard, current = 5.0, Guard(STATES, 5.0, seed), "a"
    draw = random.Random(seed)
    for _ in range(3000):
        costs = {s: float(s == current) for s in STATES}  # whoever is there pays
        current = follow(guard, current, costs, draw.choice([s for s in STATES if s != current]))
        assert within(guard)
    assert guard.paid < 3000 / 2 * alpha  # unguarded it would have paid alpha a query


def test_states_that_come_and_go_keep_the_bound():
    guard, current = Guard(["a"], 4.0, 1), "a"
    draw = random.Random(3)
    alive = ["a"]
    for number in range(2000):
        if number % 50 == 10:
            alive.append(f"s{number}")
            guard.add_state(alive[-1])
        if number % 70 == 30:
            victim = next((s for s in alive if s != current), None)
            if victim is not None and len(alive) > 1:
                alive.remove(victim)
                guard.remove_state(victim)
        costs = {s: draw.random() for s in alive}
        current = follow(guard, current, costs, draw.choice(alive))
        assert within(guard)


@pytest.mark.parametrize("best", ["a", "b", "c"])
def test_the_comparator_follows_the_best_fixed_state(best):
    """Expected: 1.2 times the best plus 10 alpha ln N; the mean of 20 runs is compared, margin 10%."""
    alpha, paid = 10.0, 0.0
    for seed in range(20):
        comparator = Comparator(STATES, alpha, seed)
        for _ in range(3000):
            comparator.observe({s: 0.1 if s == best else 0.6 for s in STATES})
        paid += comparator.paid / 20
    assert paid <= 1.1 * (1.2 * 300 + 10 * alpha * 1.39)


@settings(max_examples=20, deadline=None)
@given(STEPS, st.integers(0, 400))
def test_a_resumed_guard_decides_alike(steps, stop):
    def run(interrupt):
        guard, current, seen = Guard(STATES, 3.0, 7), "a", []
        for number, (costs, wanted) in enumerate(steps):
            if interrupt and number == stop:
                guard = Guard.from_json(json.loads(json.dumps(guard.to_json())), 3.0)
            current = follow(guard, current, dict(zip(STATES, costs, strict=True)), wanted)
            seen.append(current)
        return seen, guard.to_json()

    assert run(True) == run(False)
