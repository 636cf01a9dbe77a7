"""Generators make valid, balanced layouts that round-trip, whatever the sample looks like."""

import json
from decimal import Decimal
from importlib.metadata import EntryPoint, EntryPoints

import numpy as np
import pyarrow as pa
import pytest

from oreo_lakehouse.config import DecideSettings, LayoutSettings
from oreo_lakehouse.errors import ConfigError, StoreError, TableError
from oreo_lakehouse.layouts import generators
from oreo_lakehouse.layouts.generators import GROUP, generate
from oreo_lakehouse.layouts.layout import layout_from_json
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.skipping import might_match, service_costs
from oreo_lakehouse.layouts.sort import sort_layout
from oreo_lakehouse.predicates.encoded import EncodedRows
from oreo_lakehouse.predicates.rowtest import holds
from oreo_lakehouse.predicates.tree import TRUE, And, Compare, CompareColumns, In, IsNull, Like, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.reorganizer.online import OnlineOptimizer

GENERATORS = ["sort", "qdtree", "zorder", "hilbert"]
every = pytest.mark.parametrize("name", GENERATORS)
RANDOM = np.random.default_rng(7)
N = 6000
ROWS = pa.table(
    {
        "day": pa.array(RANDOM.integers(0, 2000, N)),
        "late": pa.array(RANDOM.integers(0, 2000, N)),
        "price": pa.array(RANDOM.exponential(50, N)),
        "city": pa.array(RANDOM.choice([f"c{i:02d}" for i in range(30)], N, p=RANDOM.dirichlet(np.ones(30)))),
        "amount": pa.array([Decimal(int(x)) / 100 for x in RANDOM.integers(0, 10**6, N)], pa.decimal128(12, 2)),
        "hole": pa.array([None if x < 0.3 else x for x in RANDOM.random(N)]),
    }
)


def queries(count=200, seed=1):
    random = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        day = int(random.integers(0, 1900))
        days = (Compare("day", Op.GE, Kind.INTEGER, day), Compare("day", Op.LT, Kind.INTEGER, day + 100))
        city = Compare("city", Op.EQ, Kind.STRING, f"c{int(random.integers(30)):02d}")
        out.append(And((*days, city)))
    return out


WORKLOAD = Workload.of(queries())


@every
@pytest.mark.parametrize("mode", ["native", "bid"])
def test_layouts_divide_all_rows_into_about_k_blocks_and_serve_the_workload(name, mode):
    sample = Sample(ROWS)
    layout = generate(name, sample, WORKLOAD, 16, mode)
    sizes = np.bincount(layout.assign(ROWS), minlength=layout.blocks)
    assert 22 <= layout.blocks <= 34 if name == "qdtree" else layout.blocks == 16
    assert sizes.sum() == N
    costs = service_costs(Workload.of(queries(seed=2)), sample.blocks(layout), mode)
    assert costs.mean() < 0.35


def uneven(random, count):
    """Skewed columns, some of which follow each other, with few values or many; `x` has no value twice."""
    x = random.exponential(1, count)
    return pa.table(
        {
            "x": x,
            "follows": x * random.choice([0, 1]) + random.lognormal(0, random.uniform(0.2, 2), count),
            "hole": [None if missing else float(v) for missing, v in zip(random.random(count) < 0.2, x, strict=True)],
            "often": np.minimum(random.zipf(random.uniform(1.2, 2), count), 300),
            "few": random.integers(0, random.integers(2, 12), count),
        }
    )


def asked(random, rows, count):
    out = []
    for _ in range(count):
        column = str(random.choice(["x", "follows", "hole"], p=[0.5, 0.3, 0.2]))
        start = float(random.choice(rows["x"].to_numpy()))
        bounds = ((Op.GE, start), (Op.LT, start + float(random.uniform(0, 0.5))))
        leaves = [Compare(column, op, Kind.FLOAT, value) for op, value in bounds]
        also = [other for other in ("often", "few") if random.random() < 0.5]
        leaves += [Compare(other, Op.EQ, Kind.INTEGER, int(random.choice(rows[other].to_numpy()))) for other in also]
        out.append(And(tuple(leaves)))
    return out


@every
@pytest.mark.parametrize("mode", ["native", "bid"])
def test_the_largest_block_has_at_most_one_and_a_half_times_the_rows_of_the_smallest(name, mode):
    """Each is within 20% of one size then, a row more or less apart; and that size is near a k-th of the rows."""
    for seed in range(12):
        random = np.random.default_rng(seed)
        rows = uneven(random, int(random.integers(3000, 8000)))
        k = int(random.integers(2, 40))
        layout = generate(name, Sample(rows), Workload.of(asked(random, rows, 120)), k, mode)
        sizes = np.bincount(layout.assign(rows), minlength=layout.blocks)
        assert sizes.max() - 1 <= 1.5 * (sizes.min() + 1), (seed, k, sizes)
        assert 1.3 * k <= layout.blocks <= 2.1 * k if name == "qdtree" else layout.blocks == k


@every
def test_blocks_of_a_table_are_as_even_as_those_of_its_sample(name):
    """A thousand sampled rows a block: within 20% of one size, two standard errors of the sample included."""
    random = np.random.default_rng(2)
    rows = uneven(random, 120_000)
    sample = Sample(rows.take(np.sort(random.choice(len(rows), 10_000, replace=False))), len(rows))
    layout = generate(name, sample, Workload.of(asked(random, rows, 120)), 10)
    sizes = np.bincount(layout.assign(rows), minlength=layout.blocks)
    assert sizes.max() <= 1.5 * sizes.min()


def test_few_values_are_divided_by_the_next_column_and_equal_rows_stay_together():
    """Eleven blocks for two values of the column asked for; the ties of one column are broken by another."""
    rows = pa.table({"flag": [0, 1] * 3000, "a": [i // 100 for i in range(6000)], "b": [i % 100 for i in range(6000)]})
    flags = Workload.of([Compare("flag", Op.EQ, Kind.INTEGER, i % 2) for i in range(40)])
    for name in ("sort", "qdtree"):
        layout = generate(name, Sample(rows), flags, 11)
        sizes = np.bincount(layout.assign(rows), minlength=layout.blocks)
        assert layout.blocks >= 11
        assert sizes.max() - 1 <= 1.5 * (sizes.min() + 1), (name, sizes)
        same = pa.table({"flag": [0, 1] * 3000})
        assert generate(name, Sample(same), flags, 11).blocks == 2


def test_a_user_s_own_generator_is_one_class_and_one_entry_point(monkeypatch):
    """Installed packages announce generators; one is announced here as an installed package would."""
    point = EntryPoint("by-city", "tests.layouts.own_generator:by_city", GROUP)
    monkeypatch.setattr(generators, "entry_points", lambda **named: EntryPoints([point]).select(**named))
    layout = generate("by-city", Sample(ROWS), WORKLOAD, 16)
    assert layout.blocks == 2
    assert layout_from_json(json.loads(json.dumps(layout.to_json()))).id == layout.id
    costs = service_costs(WORKLOAD, Sample(ROWS).blocks(layout))
    assert costs.mean() < 1
    decide = DecideSettings(alpha=10.0)
    optimizer = OnlineOptimizer(decide, LayoutSettings(generators=("by-city",)), seed=1)
    blocks = Sample(ROWS).blocks_of(np.zeros(N, np.int32), 1)
    cities = [Compare("city", Op.EQ, Kind.STRING, "c03")] * 200
    assert optimizer.advise(cities, ROWS, blocks, 16, "initial").target.kind == "by-city"
    with pytest.raises(ConfigError, match="known are by-city, hilbert"):
        generate("by-town", Sample(ROWS), WORKLOAD, 16)


@every
def test_json_keeps_the_id_and_the_assignment(name):
    layout = generate(name, Sample(ROWS), WORKLOAD, 16, "bid")
    read = layout_from_json(json.loads(json.dumps(layout.to_json())))
    assert read.id == layout.id
    assert read.describe() == layout.describe()
    assert np.array_equal(read.assign(ROWS), layout.assign(ROWS))
    assert generate(name, Sample(ROWS), WORKLOAD, 16, "bid").id == layout.id


@every
@pytest.mark.parametrize("k", [1, 2, 50])
@pytest.mark.parametrize(
    "rows",
    [
        ROWS.slice(0, 0),
        ROWS.slice(0, 1),
        pa.table({"day": [5] * 40, "city": ["x"] * 40}),
        pa.table({"day": pa.nulls(40, pa.int64()), "city": pa.nulls(40, pa.string())}),
        pa.table({"other": [1, 2, 3]}),
        pa.table({"day": [1.5, float("nan"), None], "city": [b"a", b"b", None]}),
    ],
)
def test_odd_samples_still_give_a_layout(name, k, rows):
    layout = generate(name, Sample(rows), WORKLOAD, k)
    bids = layout.assign(rows)
    assert len(bids) == rows.num_rows
    assert layout.blocks >= 1
    assert ((bids >= 0) & (bids < layout.blocks)).all()
    assert layout_from_json(layout.to_json()).id == layout.id


@every
def test_a_workload_without_conditions_gives_one_block_or_a_plain_division(name):
    layout = generate(name, Sample(ROWS), Workload.of([TRUE] * 5), 8)
    assert 1 <= layout.blocks <= 8


def test_sort_puts_nulls_last_and_breaks_ties_by_the_next_column():
    layout = sort_layout(Sample(ROWS), ["hole"], 10)
    bids, nulls = layout.assign(ROWS), np.array(ROWS["hole"].is_null().to_pylist())
    assert bids[nulls].min() >= bids[~nulls].max()
    tied = pa.table({"a": [1] * 100, "b": list(range(100))})
    sizes = np.bincount(sort_layout(Sample(tied), ["a", "b"], 4).assign(tied))
    assert sizes.tolist() == [25, 25, 25, 25]


def test_bid_mode_cuts_by_comparison_and_category_and_knows_it():
    late = CompareColumns("day", Op.LT, "late")
    early = CompareColumns("day", Op.GE, "late")
    found = Workload.of([late, early] * 50)
    sample = Sample(ROWS)
    layout = generate("qdtree", sample, found, 8, "bid")
    blocks = sample.blocks(layout, comparisons=[late, early])
    assert service_costs(found, blocks, "bid").mean() < 0.6
    assert service_costs(found, blocks, "native").mean() == 1.0
    kept = might_match(Workload.of([late]), blocks, "bid")[0]
    assert not kept[np.setdiff1d(np.arange(layout.blocks), layout.assign(ROWS)[holds(late, EncodedRows(ROWS))])].any()
    middle = Workload.of([Compare("city", Op.EQ, Kind.STRING, "c11"), In("city", Kind.STRING, ("c03", "c20"))] * 40)
    apart = generate("qdtree", sample, middle, 8, "bid")
    costs = {mode: service_costs(middle, sample.blocks(apart), mode).mean() for mode in ("native", "bid")}
    assert costs["bid"] <= costs["native"]


def test_like_prefixes_and_is_null_are_cut_for():
    sample = Sample(ROWS)
    likes = Workload.of([Like("city", "c0%"), Like("city", "c2%")] * 30)
    assert service_costs(likes, sample.blocks(generate("qdtree", sample, likes, 8))).mean() < 0.75
    nulls = Workload.of([IsNull("hole"), Compare("hole", Op.LT, Kind.FLOAT, 0.5)] * 30)
    blocks = sample.blocks(generate("qdtree", sample, nulls, 8))
    assert service_costs(nulls, blocks).mean() < 0.9


def skewed(count):
    random = np.random.default_rng(3)
    x = random.exponential(1, count)
    return pa.table(
        {
            "x": x,
            "y": x + random.normal(0, 0.3, count),
            "z": random.lognormal(0, 2, count),
            "c": np.minimum(random.zipf(1.3, count), 200),
        }
    )


def ranges(rows, count):
    random = np.random.default_rng(4)
    out = []
    for name in "xyz":
        for value in random.choice(rows[name].to_numpy(), count):
            bounds = ((Op.GE, float(value)), (Op.LT, float(value) * 1.1 + 0.01))
            out.append(And(tuple(Compare(name, op, Kind.FLOAT, v) for op, v in bounds)))
    cities = random.choice(rows["c"].to_numpy(), count)
    return out + [Compare("c", Op.EQ, Kind.INTEGER, int(value)) for value in cities]


@every
@pytest.mark.parametrize("mode", ["native", "bid"])
def test_a_hundred_sampled_rows_a_block_estimate_costs_within_five_percent(name, mode):
    rows = skewed(200_000)
    workload = Workload.of(ranges(rows, 150))
    at = np.sort(np.random.default_rng(5).choice(rows.num_rows, 4000, replace=False))
    sample = Sample(rows.take(at), rows.num_rows)
    layout = generate(name, sample, workload, 40, mode)
    truth = service_costs(workload, Sample(rows).blocks(layout), mode).mean()
    estimate = service_costs(workload, sample.blocks(layout), mode).mean()
    assert estimate / truth == pytest.approx(1, abs=0.05)


def test_mistakes_are_named():
    with pytest.raises(ConfigError, match="no layout generator 'zroder'"):
        generate("zroder", Sample(ROWS), WORKLOAD, 4)
    layout = generate("qdtree", Sample(ROWS), WORKLOAD, 8)
    with pytest.raises(TableError, match="missing"):
        layout.assign(pa.table({"nothing": [1]}))
    document = layout.to_json()
    for broken in ({"tree": {"cut": 1}}, {"columns": 3}, {"kind": "ours"}, {"version": 9}):
        with pytest.raises(StoreError):
            layout_from_json({**document, **broken})
    curve = generate("zorder", Sample(ROWS), WORKLOAD, 8).to_json()
    for broken in ({"edges": []}, {"starts": [3]}, {"bits": 99}, {"edges": [["day", "integer", ["x"]]]}):
        with pytest.raises(StoreError):
            layout_from_json({**curve, **broken})
