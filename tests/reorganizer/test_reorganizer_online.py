"""Batches of queries lead to advice, the same whether or not the process was restarted in between."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from oreo_lakehouse.config import DecideSettings, LayoutSettings
from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.layouts.layout import layout_from_json
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.skipping import service_costs
from oreo_lakehouse.predicates.tree import And, Compare, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.reorganizer.online import OnlineOptimizer

DECIDE = {policy: DecideSettings(policy=policy, alpha=10.0, window=50) for policy in ("paper", "planner")}
both = pytest.mark.parametrize("policy", ["paper", "planner"])
LAYOUT = LayoutSettings()
RANDOM = np.random.default_rng(5)
ROWS = pa.table({name: RANDOM.integers(0, 1000, 4000) for name in "abc"})
BLOCKS = Sample(ROWS).blocks_of(np.arange(4000, dtype=np.int32) * 16 // 4000, 16)


def queries(column, count, seed=0):
    starts = np.random.default_rng(seed).integers(0, 950, count)
    return [
        And(
            (
                Compare(column, Op.GE, Kind.INTEGER, int(start)),
                Compare(column, Op.LT, Kind.INTEGER, int(start) + 50),
            )
        )
        for start in starts
    ]


@both
def test_a_selective_workload_leads_to_a_layout_that_serves_it(policy):
    optimizer = OnlineOptimizer(DECIDE[policy], LAYOUT, seed=1)
    advice = optimizer.advise(queries("a", 300), ROWS, BLOCKS, 16, "initial")
    assert advice.target is not None
    assert advice.current_cost > 0.9
    assert advice.target_cost < 0.3
    assert advice.queries == 300
    blocks = Sample(ROWS).blocks(advice.target)
    assert service_costs(Workload.of(queries("a", 100, seed=9)), blocks).mean() < 0.3
    assert {d.kind for d in advice.decisions} >= {"admit", "move"}
    assert optimizer.layouts[advice.target.id] is advice.target


def test_the_one_move_of_a_batch_goes_to_the_best_state():
    """Query by query, a good layout is not left for one that is a little better; but nobody has built either yet."""
    random = np.random.default_rng(1)
    rows = pa.table({"a": RANDOM.integers(0, 10, 4000), "b": RANDOM.integers(0, 1000, 4000)})
    starts = zip(random.integers(0, 10, 240).tolist(), random.integers(0, 900, 240).tolist(), strict=True)
    asked = [
        And(
            (
                Compare("a", Op.EQ, Kind.INTEGER, a),
                Compare("b", Op.GE, Kind.INTEGER, b),
                Compare("b", Op.LT, Kind.INTEGER, b + 100),
            )
        )
        for a, b in starts
    ]
    advice = OnlineOptimizer(DECIDE["planner"], LAYOUT, seed=1).advise(asked, rows, BLOCKS, 16, "initial")
    ended = [decision.state for decision in advice.decisions if decision.moved][-1]
    assert advice.target is not None
    assert advice.target.id != ended
    assert advice.target_cost == min(advice.costs.values()) < advice.costs[ended]
    assert advice.decided is not None
    assert advice.decided.target is not None
    assert (advice.decided.target.id, advice.decided.target_cost) == (ended, advice.costs[ended])


def test_a_steady_mix_of_kinds_is_not_rebuilt_again_and_again():
    """Over fifty queries, the luckiest of many states that are much alike looks better than the present one."""
    random = np.random.default_rng(5)
    rows = pa.table({name: random.integers(0, 1000, 4000) for name in "abcdef"})
    of_kind = [iter(queries(name, 2500, 40 + number)) for number, name in enumerate("abcdef")]
    kinds = np.random.default_rng(4).choice(6, 2500, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05])
    decide = DecideSettings(policy="planner", alpha=40.0, window=50)
    asked = [next(of_kind[kind]) for kind in kinds]
    advice = OnlineOptimizer(decide, LAYOUT, seed=1).advise(asked, rows, BLOCKS, 16, "initial")
    assert 1 <= sum(decision.moved for decision in advice.decisions) <= 5


@pytest.mark.parametrize(
    ("start", "step"),
    [(800, 4), (0, 37)],
    ids=["up to now, where the table ends", "once across the table in 27 queries"],
)
def test_literals_that_slide_to_the_table_s_end_are_served_too(start, step):
    """What lies beyond the end costs nothing in any layout: projecting queries there hid every gain.

    The price is so high that the guard does not move yet: it is the plan that must.
    """
    slid = [
        And(
            (
                Compare("a", Op.GE, Kind.INTEGER, (start + n * step) % 960),
                Compare("a", Op.LT, Kind.INTEGER, (start + n * step) % 960 + 40),
            )
        )
        for n in range(40)
    ]
    dear = DecideSettings(policy="planner", alpha=40.0, window=50)
    advice = OnlineOptimizer(dear, LAYOUT, seed=1).advise(slid, ROWS, BLOCKS, 16, "initial")
    assert advice.target is not None
    assert advice.target_cost < 0.5


@both
def test_no_queries_and_full_scans_change_nothing(policy):
    optimizer = OnlineOptimizer(DECIDE[policy], LAYOUT, seed=1)
    advice = optimizer.advise([], ROWS, BLOCKS, 16, "initial")
    assert advice.target is None
    advice = optimizer.advise([And(())] * 100, ROWS, BLOCKS, 16, "initial")
    assert advice.target is None
    assert advice.current_cost == 1.0


def batches():
    for number, column in enumerate("aabbca"):
        yield queries(column, 70, seed=number)


def sliding():
    """Ten batches whose ranges move on with time, so that the planner projects them."""
    for start in range(0, 1000, 100):
        yield [
            And(
                (
                    Compare("a", Op.GE, Kind.INTEGER, t // 2 + 100 - t % 30),
                    Compare("a", Op.LT, Kind.INTEGER, t // 2 + 130),
                )
            )
            for t in range(start, start + 100)
        ]


def run(policy, restart, stream, document=None, current="initial", weigh=None):
    optimizer = OnlineOptimizer(DECIDE[policy], LAYOUT, seed=3)
    if document is not None:
        optimizer = OnlineOptimizer.from_json(document, DECIDE[policy], LAYOUT)
    out = []
    for batch in stream:
        if restart:
            optimizer = OnlineOptimizer.from_json(json.loads(json.dumps(optimizer.to_json())), DECIDE[policy], LAYOUT)
        layout = optimizer.layouts.get(current)
        blocks = BLOCKS if layout is None else Sample(ROWS).blocks(layout)
        weights = None if weigh is None else weigh(len(batch), len(out))
        advice = optimizer.advise(batch, ROWS, blocks, 16, current, weights=weights)
        if advice.target is not None:
            current = advice.target.id
            optimizer.placed(current)
        out.append((current, advice.decisions, advice.costs))
    return out, optimizer.to_json()


@both
def test_stop_and_resume_equals_an_uninterrupted_run(policy):
    assert run(policy, True, batches()) == run(policy, False, batches())


@both
def test_weights_are_remembered_with_their_queries(policy):
    def weigh(count, batch):
        return np.random.default_rng(batch).uniform(0.01, 0.2, count)

    resumed, whole = (run(policy, restart, batches(), weigh=weigh) for restart in (True, False))
    assert resumed == whole
    assert len(whole[1]["weights"]) == len(whole[1]["queries"])
    assert "weights" not in run(policy, False, batches())[1]


@both
def test_a_cost_is_the_share_that_is_read_times_what_the_query_weighs(policy):
    """Where all weigh the same, only the price of a move changes: at a tenth of it, decisions are the same ones."""
    plain, light = (OnlineOptimizer(DecideSettings(policy=policy, alpha=a, window=50), LAYOUT, 1) for a in (40.0, 4.0))
    one = plain.advise(queries("a", 300), ROWS, BLOCKS, 16, "initial")
    other = light.advise(queries("a", 300), ROWS, BLOCKS, 16, "initial", weights=np.full(300, 0.1))
    assert one.target is not None
    assert other.target is not None
    assert other.target.id == one.target.id
    assert other.weight == pytest.approx(0.1)
    assert [d.query for d in other.decisions if d.kind == "move"] == [
        d.query for d in one.decisions if d.kind == "move"
    ]
    assert other.sums == pytest.approx({state: cost / 10 for state, cost in one.sums.items()})


def test_stop_and_resume_in_the_middle_of_a_drift():
    resumed, whole = (run("planner", restart, sliding()) for restart in (True, False))
    assert resumed == whole
    assert whole[1]["strategy"]["outlook"]["drifting"]


@both
def test_another_process_goes_on_bit_for_bit(policy, tmp_path):
    """Saved in the middle of a phase, taken up by a process that hashes strings otherwise."""
    stream = list(batches())
    first, document = run(policy, False, stream[:3])
    whole, end = run(policy, False, stream)
    (tmp_path / "state.json").write_text(json.dumps(document))
    script = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); import test_reorganizer_online as here\n"
        "out, end = here.run(sys.argv[3], False, list(here.batches())[3:], json.load(open(sys.argv[2])), sys.argv[4])\n"
        "print(json.dumps([[current for current, _, _ in out], [costs for _, _, costs in out], end]))"
    )
    folder, state = str(Path(__file__).parent), str(tmp_path / "state.json")
    done = subprocess.run(
        [sys.executable, "-c", script, folder, state, policy, first[-1][0]],
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = [[current for current, _, _ in whole[3:]], [costs for _, _, costs in whole[3:]], end]
    assert json.loads(done.stdout) == json.loads(json.dumps(expected))


@both
def test_a_move_that_was_not_made_is_told_and_remembered(policy):
    optimizer = OnlineOptimizer(DECIDE[policy], LAYOUT, seed=1)
    optimizer.advise(queries("a", 300), ROWS, BLOCKS, 16, "initial")
    optimizer.placed("initial")
    again = optimizer.advise(queries("a", 20, seed=7), ROWS, BLOCKS, 16, "initial")
    assert again.current_cost > 0.9


def test_states_are_bounded_and_layouts_survive_json():
    optimizer = OnlineOptimizer(DecideSettings(policy="paper", alpha=10, window=20, max_states=3, epsilon=0), LAYOUT, 1)
    for number in range(6):
        optimizer.advise(queries("abc"[number % 3], 60, number), ROWS, BLOCKS, 16, "initial")
    document = optimizer.to_json()
    assert len(document["strategy"]["layouts"]) <= 3
    for layout in document["strategy"]["layouts"]:
        read = layout_from_json(json.loads(json.dumps(layout)))
        assert optimizer.layouts[read.id].to_json() == layout


@both
def test_malformed_and_newer_states_are_named(policy):
    with pytest.raises(StoreError, match="upgrade"):
        OnlineOptimizer.from_json({"version": 99}, DECIDE[policy], LAYOUT)
    with pytest.raises(StoreError, match="malformed state"):
        OnlineOptimizer.from_json({"version": 1, "seed": 1, "queries": []}, DECIDE[policy], LAYOUT)
