"""The planner's parts: change detector, reservoir, augmentation, drift, regimes."""

import json
import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from oreo_lakehouse.layouts.generators import generate
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.predicates.tree import And, Compare, In, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.reorganizer.augment import augmented
from oreo_lakehouse.reorganizer.change import ChangeDetector
from oreo_lakehouse.reorganizer.drift import find_drift, project, room
from oreo_lakehouse.reorganizer.manager import LayoutManager
from oreo_lakehouse.reorganizer.pool import StatePool
from oreo_lakehouse.reorganizer.randomness import new_generator
from oreo_lakehouse.reorganizer.regimes import RegimeLog, tail_value
from oreo_lakehouse.reorganizer.reservoir import Reservoir
from oreo_lakehouse.reorganizer.scout import Scout
from oreo_lakehouse.reorganizer.shares import long_run, weighed
from oreo_lakehouse.reorganizer.states import StateSpace


def signals(stream):
    detector = ChangeDetector()
    return [(number, found) for number, s in enumerate(stream) if (found := detector.observe(s))], detector


def test_a_new_kind_of_query_is_noticed_within_ten_and_a_stationary_mix_never():
    found, detector = signals(["x"] * 100 + ["y"] * 100)
    assert [kind for _, kind in found] == ["change"]
    assert 100 <= found[0][0] < 110
    assert detector.since == 100
    draw = np.random.default_rng(1)
    for kinds in (3, 30):
        mix = [str(k) for k in draw.integers(0, kinds, 3000)]
        assert len(signals(mix)[0]) <= 2


def test_a_burst_that_passes_is_taken_back():
    found, detector = signals(["x"] * 200 + ["y"] * 8 + ["x"] * 60)
    assert [kind for _, kind in found] == ["change", "undo"]
    assert detector.since == 268


def test_a_regime_is_made_of_the_kinds_that_came_often_since_the_change():
    draw = np.random.default_rng(1)
    mix = draw.choice(["y", "z", "seldom"], 150, p=[0.6, 0.37, 0.03])
    _, detector = signals(["x"] * 100 + mix.tolist())
    assert detector.since == 150
    assert detector.kinds() == ["y", "z"]
    assert ChangeDetector.from_json(json.loads(json.dumps(detector.to_json()))).mix() == detector.mix() == "y; z"


def test_a_mix_that_came_back_needs_no_early_candidates_and_another_of_the_same_kinds_does():
    sample = Sample(pa.table({"a": np.arange(1000), "b": np.arange(1000)[::-1]}))
    asked = [Compare("ab"[n % 2], Op.LT, Kind.INTEGER, n) for n in range(200)]
    space = StateSpace(sample, Workload.of(asked), "native")
    scout = Scout(["sort"], 10, seed=1)
    for query in range(199):
        scout.observe(query)

    def made(since, mix):
        return len(list(scout.candidates(space, 199, since, lambda: mix)))

    assert made(60, "a; b") == 1
    assert made(60, "a; b") == made(25, "a; b") == 0
    assert made(60, "a") == 1
    assert made(200, "a; b") == 2
    for number in range(1000):
        made(60, str(number))
    assert len(scout.covered) == 200
    assert made(60, "a") == 1


def test_the_reservoir_is_bounded_and_prefers_the_young():
    counts = Counter()
    for seed in range(60):
        reservoir = Reservoir(50, 1 / 100, seed)
        for item in range(1000):
            reservoir.add(item)
            assert len(reservoir.all_items) <= 51
        counts.update(reservoir.items)
    young, older = (sum(counts[i] for i in part) for part in (range(900, 1000), range(800, 900)))
    assert 0.6 * math.exp(-1) < older / young < 1.5 * math.exp(-1)
    uniform = Counter(i // 500 for seed in range(60) for i in filled(Reservoir(50, 0.0, seed)).items)
    assert 0.8 < uniform[0] / uniform[1] < 1.25


def filled(reservoir, count=1000):
    for item in range(count):
        reservoir.add(item)
    return reservoir


def test_a_resumed_reservoir_goes_on_alike():
    whole = filled(Reservoir(20, 0.01, 5))
    half = filled(Reservoir(20, 0.01, 5), 400)
    half = Reservoir.from_json(json.loads(json.dumps(half.to_json())))
    for item in range(400, 1000):
        half.add(item)
    assert half.to_json() == whole.to_json()


ROWS = pa.table({"day": pa.array(range(1000)), "name": pa.array([f"n{i % 40:02d}" for i in range(1000)])})


def ranged(start, name):
    bounds = (Compare("day", Op.GE, Kind.INTEGER, start), Compare("day", Op.LT, Kind.INTEGER, start + 20))
    return And((*bounds, Compare("name", Op.EQ, Kind.STRING, name)))


def test_made_queries_keep_the_width_and_stay_near_what_was_seen():
    seen = Workload.of([ranged(500 + 10 * i, f"n{i:02d}") for i in range(10)])
    made = augmented(seen, Sample(ROWS), 300, new_generator(1))
    low, high, name = made.values(made.groups[0])
    assert len(made) == 300
    assert set(high - low) == {20}
    assert low.min() >= 480
    assert high.max() <= 640
    assert len(set(name)) > 20  # all ten were seen once, so there must be more
    spread = augmented(seen, Sample(ROWS), 300, new_generator(1), spread=True)
    assert spread.values(spread.groups[0])[0].min() < 100


def test_made_ranges_begin_where_round_ones_do():
    epoch = np.datetime64("1970-01-01", "D")
    days = pa.table({"on": pa.array(range(8000, 10_000), pa.int32()).cast(pa.date32())})

    def months(first):
        low, high = (
            int((np.datetime64("1994-01", "M") + m).astype("datetime64[D]").astype(int)) for m in (first, first + 1)
        )
        return And((Compare("on", Op.GE, Kind.DATE, low), Compare("on", Op.LT, Kind.DATE, high)))

    seen = Workload.of([months(m) for m in (0, 3, 4, 7, 11, 14, 16, 20)])
    made = augmented(seen, Sample(days), 200, new_generator(1))
    low, high = ((epoch + bound).astype("datetime64[D]") for bound in made.values(made.groups[0]))
    assert (low.astype("datetime64[M]").astype("datetime64[D]") == low).all()
    assert (low.astype("datetime64[M]") + 1 == high.astype("datetime64[M]")).all()
    assert len(np.unique(low)) > 12  # more than the eight that were seen
    hundreds = Workload.of([ranged(100 * i, "n01") for i in range(8)])
    made = augmented(hundreds, Sample(ROWS), 100, new_generator(1))
    assert set(made.values(made.groups[0])[0] % 20) == {0}


def test_literals_seen_often_are_not_redrawn():
    same = Workload.of([In("name", Kind.STRING, ("n01", "n02"))] * 20)
    made = augmented(same, Sample(ROWS), 50, new_generator(1))
    assert {tuple(row) for row in made.values(made.groups[0])[0]} == {("n01", "n02")}
    assert len(augmented(same.take([]), Sample(ROWS), 5, new_generator(1))) == 0


def test_a_sliding_range_is_found_and_projected():
    noise = np.random.default_rng(2).integers(0, 300, 400)
    sliding = Workload.of(
        [
            And((Compare("day", Op.GE, Kind.INTEGER, 5 * t - int(w)), Compare("day", Op.LT, Kind.INTEGER, 5 * t)))
            for t, w in enumerate(noise)
        ]
    )
    drift = find_drift(sliding)
    assert drift
    future = project(sliding, drift, 100.0, 200, new_generator(1))
    until = future.values(future.groups[0])[1]
    assert until.min() >= 5 * 395
    assert until.max() <= 5 * 505
    still = Workload.of([ranged(int(s), "n01") for s in np.random.default_rng(3).integers(0, 900, 400)])
    assert not find_drift(still)


def test_a_few_queries_that_end_now_show_a_drift_which_rarer_shapes_share_and_chance_does_not():
    draw = np.random.default_rng(4)

    def until(end, shop=()):
        start = end - int(draw.integers(1, 300))
        return And((Compare("day", Op.GE, Kind.INTEGER, start), Compare("day", Op.LT, Kind.INTEGER, end), *shop))

    shop = (Compare("name", Op.EQ, Kind.STRING, "n01"),)
    drift = find_drift(Workload.of([until(7 * t, shop if t == 3 else ()) for t in range(6)]))
    assert [slope for slopes in drift.slopes.values() for slope in slopes.values()] == pytest.approx([7] * 4)
    assert len(drift.slopes) == 2
    false = sum(bool(find_drift(Workload.of([until(int(e)) for e in draw.integers(0, 900, 8)]))) for _ in range(500))
    assert false <= 1


def test_states_that_have_become_alike_are_pruned_but_never_the_current_one():
    by_day = [ranged(start, "n01") for start in range(0, 900, 3)]
    elsewhere = [Compare("name", Op.EQ, Kind.STRING, "n01")] * 60
    sample = Sample(ROWS)
    space = StateSpace(sample, Workload.of(by_day + elsewhere), "native")
    space.add_blocks(
        "initial", sample.blocks_of(np.random.default_rng(6).integers(0, 8, len(sample)).astype(np.int32), 8)
    )
    layout = generate("sort", sample, Workload.of(by_day), 8)
    space.add(layout.id, space.source_of(layout))
    states = ["initial", layout.id]
    for current, other in (states, states[::-1]):
        manager = LayoutManager([], 8, 50, 0.08, 24)
        for query in range(50):
            manager.observe(query)
        assert not list(manager.changes(space, states, current))
        manager.reservoir.items = list(range(len(by_day), len(by_day) + 60))
        assert [change.evict for change in manager.changes(space, states, current)] == [other]


def test_a_layout_for_the_way_ahead_is_admitted_by_the_way_ahead():
    """Nearly as good as the present one on what was asked so far, it would be refused by that."""
    sample = Sample(pa.table({"day": np.arange(20_000)}))

    def of_days(first, last):
        starts = np.linspace(first, last, 400).astype(int).tolist()
        return [
            And((Compare("day", Op.GE, Kind.INTEGER, s), Compare("day", Op.LT, Kind.INTEGER, s + 50))) for s in starts
        ]

    past, future = of_days(0, 1000), Workload.of(of_days(1000, 9000))
    assert room(Workload.of(past), find_drift(Workload.of(past)), sample) == pytest.approx(18_949 / 2.5, rel=0.01)
    space = StateSpace(sample, Workload.of(past), "native")
    layout = generate("qdtree", sample, future, 100)
    space.add_blocks("initial", sample.blocks(generate("sort", sample, future, layout.blocks)))
    told = space, "ahead", layout, "day", list(range(400)), 399, "initial"
    assert StatePool(24).admit(*told) is None
    found = StatePool(24).admit(*told, ahead=future)
    assert found is not None
    assert found.state == layout.id


def log_of(lengths):
    log, query = RegimeLog(), 0
    for length in lengths:
        for _ in range(length):
            log.observe(query)
            query += 1
        log.change(0)
    return log


def test_regimes_remember_length_and_queries_and_an_undone_change_goes_on():
    log = log_of([100, 300])
    assert [r.length for r in log.past] == [100, 300]
    assert all(0 <= q < 100 for q in log.past[0].queries)
    assert len(log.past[1].queries) <= 32
    log.undo()
    assert [r.length for r in log.past] == [100]
    assert log.age == 300
    copy = RegimeLog.from_json(json.loads(json.dumps(log.to_json())))
    assert copy.to_json() == log.to_json()


def test_long_regimes_are_expected_to_last():
    short, long = log_of([80] * 10), log_of([3000] * 10)
    assert short.residual_life() < 200
    assert long.residual_life() > 2000


@pytest.mark.parametrize("alpha", [40.0, 80.0])
def test_a_state_that_serves_all_regimes_is_worth_more_than_a_specialist(alpha):
    log = log_of([60] * 12)
    costs = np.array([[0.3] * 12, [0.05, 0.9] * 6, [0.9, 0.05] * 6])
    value = tail_value(log, costs, alpha)
    assert value.min() == 0
    assert int(np.argmin(value)) == 0
    assert value[1] <= alpha * 1.01 + 15


def test_few_regimes_say_less_about_those_to_come():
    costs = np.array([[0.05] * 12, [0.9] * 12])
    few, many = (tail_value(log_of([600] * n), costs[:, :n], 80.0)[1] for n in (2, 12))
    assert 0 < few < (80 + 15) / 3 + 1
    assert many > 2 * few


def kinds_in_order(columns):
    return Workload.of([Compare(column, Op.EQ, Kind.INTEGER, 1) for column in columns])


def test_kinds_that_come_in_runs_count_much_the_same_and_a_steady_mix_keeps_its_shares():
    draw = np.random.default_rng(1)
    errors = []
    for _ in range(20):
        runs = kinds_in_order(str(k) for k in draw.permutation([*range(6), *draw.integers(0, 6, 6)]) for _ in range(50))
        weights = weighed(runs, long_run(runs))
        assert weights.mean() == pytest.approx(1)
        shares = np.array([[len(g.queries), weights[g.queries].sum()] for g in runs.groups]) / len(runs)
        errors.append(((shares - 1 / 6) ** 2).sum(axis=0))
    seen, expected = np.mean(errors, axis=0)
    assert expected < 0.25 * seen
    steady = kinds_in_order(draw.choice(["a", "b", "c"], 600, p=[0.7, 0.25, 0.05]))
    assert max(abs(count - 1) for count in long_run(steady).values()) < 0.2
    # Many kinds that were asked for once do not outweigh the one that everybody asks for.
    rare = iter(range(600))
    mix = kinds_in_order("often" if draw.random() < 0.8 else f"once {next(rare)}" for _ in range(600))
    assert long_run(mix)["often ="] == pytest.approx(1, abs=0.02)


def test_little_of_the_past_keeps_its_shares():
    assert long_run(kinds_in_order([])) == {}
    assert long_run(kinds_in_order("a")) == {"a =": 1.0}
    assert long_run(kinds_in_order("aaa")) == {"a =": 1.0}
    assert weighed(kinds_in_order("ab"), {"a =": 2.0}).tolist() == [2.0, 1.0]
