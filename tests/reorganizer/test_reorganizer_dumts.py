"""D-UMTS follows Algorithms 1 to 4, resumes bit for bit, and keeps its competitive bound on the classic adversary."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.reorganizer.dumts import DUMTS

STATES = ["a", "b", "c", "d"]
COSTS = st.lists(st.floats(0, 1), min_size=4, max_size=4).map(lambda c: dict(zip(STATES, c, strict=True)))


@settings(max_examples=60, deadline=None)
@given(st.lists(COSTS, min_size=1, max_size=120), st.integers(0, 99), st.floats(0, 3), st.integers(0, 119))
def test_stop_and_resume_equals_an_uninterrupted_run(stream, seed, gamma, stop):
    whole = DUMTS(STATES, 3.0, seed, gamma)
    expected = [whole.observe(costs) for costs in stream]
    first = DUMTS(STATES, 3.0, seed, gamma)
    got = [first.observe(costs) for costs in stream[:stop]]
    second = DUMTS.from_json(json.loads(json.dumps(first.to_json())))
    got += [second.observe(costs) for costs in stream[stop:]]
    assert got == expected
    assert second.to_json() == whole.to_json()


@settings(max_examples=60, deadline=None)
@given(st.lists(COSTS, min_size=1, max_size=150), st.integers(0, 99))
def test_within_a_phase_counters_never_fall_and_the_current_state_is_never_full(stream, seed):
    reorganizer = DUMTS(STATES, 2.5, seed)
    phase, before = reorganizer.phase, reorganizer.counters
    for costs in stream:
        decision = reorganizer.observe(costs)
        if decision.phase == phase:
            assert all(decision.counters[s] >= before[s] for s in STATES)
        assert decision.counters[decision.state] < reorganizer.alpha
        phase, before = decision.phase, decision.counters


def test_a_phase_ends_only_when_every_counter_is_full_and_starts_where_the_last_one_ended():
    reorganizer = DUMTS(["a", "b"], 2.0, 1)
    seen = [reorganizer.observe({"a": 1.0, "b": 0.5}) for _ in range(4)]
    assert [d.state for d in seen] == ["a", "b", "b", "b"]
    assert [d.kind for d in seen] == ["stay", "move", "stay", "phase"]
    assert seen[-1].counters == {"a": 0.0, "b": 0.0}


def test_a_new_state_waits_for_the_next_phase_unless_told_otherwise():
    reorganizer = DUMTS(["a"], 2.0, 1)
    reorganizer.observe({"a": 1.0})
    reorganizer.add_state("new")
    assert reorganizer.active == ("a",)
    reorganizer.observe({"a": 1.0, "new": 0.0})
    assert set(reorganizer.active) == {"a", "new"}
    for activation, counter, expected in (("replayed", 0.25, 0.25), ("median", 0.0, 1.0)):
        other = DUMTS(["a"], 2.0, 1)
        other.observe({"a": 1.0})
        other.add_state("new", activation, counter)
        assert other.counters["new"] == expected
    full = DUMTS(["a"], 2.0, 1)
    full.add_state("new", "replayed", 2.0)
    assert full.active == ("a",)


def test_a_removed_state_does_not_come_back_with_a_reset():
    reorganizer = DUMTS(["a", "b", "c"], 2.0, 1)
    assert reorganizer.remove_state("b") is None
    for _ in range(6):
        reorganizer.observe({"a": 1.0, "c": 1.0})
    assert "b" not in reorganizer.counters
    assert reorganizer.phase > 1


def test_removing_the_current_state_forces_a_move_and_the_last_state_stays():
    reorganizer = DUMTS(["a", "b"], 2.0, 1)
    decision = reorganizer.remove_state("a")
    assert decision is not None
    assert decision.state == "b"
    with pytest.raises(ValueError, match="last state"):
        reorganizer.remove_state("b")


def test_a_changed_alpha_keeps_counters_and_full_states():
    reorganizer = DUMTS(["a", "b"], 2.0, 1)
    reorganizer.observe({"a": 1.5, "b": 1.0})
    reorganizer.observe({"a": 0.6, "b": 0.1})
    reorganizer.alpha = 10.0
    assert reorganizer.active == ("b",)
    assert reorganizer.counters == {"a": 2.1, "b": 1.1}


def test_weighted_jumps_prefer_states_that_skipped_more_but_keep_the_floor():
    def share(gamma):
        hits = 0
        for seed in range(400):
            reorganizer = DUMTS(["here", "good", "bad"], 2.0, seed, gamma)
            while reorganizer.phase == 1:  # so that there is something to predict from
                reorganizer.observe({"here": 0.5, "good": 0.1, "bad": 0.9})
            reorganizer.place("here")
            for _ in range(8):
                decision = reorganizer.observe({"here": 1.0, "good": 0.0, "bad": 0.0})
                if decision.moved:
                    hits += decision.state == "good"
                    break
        return hits / 400

    assert 0.40 < share(0.0) < 0.60
    assert 0.75 < share(3.0) < 0.99


@pytest.mark.parametrize("n", [2, 8])
def test_the_classic_adversary_cannot_beat_twice_the_harmonic_number(n):
    """Cost 1 for one random state a step. Theorem IV.1 bounds the expectation; 40 runs, margin 15%."""
    alpha, steps = 10.0, 4000
    states = [str(i) for i in range(n)]
    online = offline = 0.0
    for seed in range(40):
        draw = random.Random(seed)
        reorganizer = DUMTS(states, alpha, seed)
        work = [0.0] + [alpha] * (n - 1)
        for _ in range(steps // 10):
            hit = draw.choice(states)
            costs = {s: float(s == hit) for s in states}
            online += costs[reorganizer.current]
            online += alpha * reorganizer.observe(costs).moved
            work = [w + costs[s] for w, s in zip(work, states, strict=True)]
            work = [min(w, min(work) + alpha) for w in work]
        offline += min(work)
    harmonic = sum(1 / i for i in range(1, n + 1))
    assert online <= 1.15 * 2 * harmonic * offline + 40 * alpha


def test_malformed_state_is_named():
    with pytest.raises(StoreError, match="malformed state"):
        DUMTS.from_json({"states": ["a"]})
