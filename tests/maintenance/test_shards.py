"""Where shards begin, which files are in them, and which queries have a say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oreo_lakehouse.config import LayoutSettings
from oreo_lakehouse.errors import LedgerError
from oreo_lakehouse.layouts.blocks import Blocks, ColumnStats
from oreo_lakehouse.layouts.skipping import might_match
from oreo_lakehouse.maintenance.shardledgers import find_shard, shard_ledgers, shard_with_decision
from oreo_lakehouse.maintenance.shards import ShardBook, beginnings, hull, shards_of
from oreo_lakehouse.predicates.tree import Compare, IsNull, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.predicates.workload import Workload
from oreo_lakehouse.store import LocalStore
from oreo_lakehouse.tables.iceberg.partitions import partition_texts

SETTINGS = LayoutSettings(shards=4, target_file_size="1MB")
MB = 1 << 20


def table(**sizes: int) -> Blocks:
    """One file a partition `day=N`, of so many megabytes."""
    names = tuple(f"f{name}" for name in sizes)
    parts = tuple(f"day={name.removeprefix('d')}" for name in sizes)
    bytes_ = np.array(list(sizes.values())) * MB
    return Blocks(np.full(len(sizes), 100), {}, bytes_, names=names, partitions=parts)


def test_large_partitions_are_shards_and_small_neighbours_share_one() -> None:
    blocks = table(d1=40, d2=3, d9=3, d10=3, d11=3, d20=40)
    firsts = beginnings(blocks, [], SETTINGS, ())
    assert firsts == ["day=1", "day=2"]  # four days of 3 MB are no fair share of 92 MB, which is 23
    shards = shards_of(blocks, firsts)
    assert [shard.label for shard in shards] == ["day=1", "day=2 … day=20"]  # day 10 comes after day 9
    assert [list(shard.files) for shard in shards] == [[0], [1, 2, 3, 4, 5]]
    assert beginnings(blocks, [], LayoutSettings(shards=0), ()) == []
    assert shards_of(table(d1=1, d2=1), beginnings(table(d1=1, d2=1), [], SETTINGS, ())) == []  # too small for two


def test_a_table_that_grows_gets_shards_at_its_end_and_only_there() -> None:
    known = ["day=1", "day=5"]
    grown = table(d1=10, d3=10, d5=10, d6=10, d7=10, d8=10)  # 15 MB are a fair share
    assert beginnings(grown, known, SETTINGS, ()) == ["day=1", "day=5", "day=7"]
    # A partition that a layout of ours has touched stays with the shard that it was laid out in.
    assert beginnings(grown, known, SETTINGS, {"fd7"}) == ["day=1", "day=5", "day=8"]
    shards = shards_of(grown, known)
    assert [shard.label for shard in shards] == ["day=1 … day=3", "day=5 … day=8"]
    # Partitions come and go: one before all others joins the first shard, a shard without any is passed over.
    assert [shard.label for shard in shards_of(table(d0=1, d5=1), ["day=1", "day=3", "day=5"])] == ["day=0", "day=5"]


def test_a_query_that_misses_the_hull_misses_every_block() -> None:
    rng = np.random.default_rng(7)
    lows = rng.integers(0, 100, 20)
    highs = lows + rng.integers(0, 30, 20)
    stats = ColumnStats.of(Kind.INTEGER, [*lows.tolist(), None], [*highs.tolist(), None], [*[0] * 20, 50])
    blocks = Blocks(np.full(21, 50), {"a": stats})
    queries = [Compare("a", op, Kind.INTEGER, value) for op in (Op.LT, Op.EQ, Op.GT) for value in range(-5, 140, 3)]
    everything = Workload.of([*queries, IsNull("a", False), IsNull("a", True)])
    around = might_match(everything, hull(blocks))[:, 0]
    assert (around >= might_match(everything, blocks).any(axis=1)).all()
    assert not around.all()
    unknown = Blocks(np.array([5, 5]), {"a": ColumnStats.of(Kind.INTEGER, [1, None], [2, None], [0, None])})
    assert might_match(everything, hull(unknown)).all()


class _File:
    def __init__(self, spec_id: int, *partition: Any) -> None:
        self.spec_id, self.partition = spec_id, partition


def test_iceberg_partitions_in_words() -> None:
    fields = [
        {"name": "region", "transform": "identity", "source-id": 1},
        {"name": "gone", "transform": "void", "source-id": 2},
        {"name": "at_day", "transform": "day", "source-id": 3},
        {"name": "at_month", "transform": "month", "source-id": 3},
        {"name": "born", "transform": "identity", "source-id": 4},
        {"name": "id_bucket", "transform": "bucket[8]", "source-id": 5},
    ]
    metadata = {
        "default-spec-id": 1,
        "partition-specs": [{"spec-id": 0, "fields": []}, {"spec-id": 1, "fields": fields}],
        "schemas": [{"fields": [{"id": 4, "type": "date"}, {"id": 1, "type": "string"}]}],
    }
    files: list[Any] = [_File(1, "EU", None, 20_454, 674, 1, 7), _File(1, None, None, None, None, None, 0)]
    assert partition_texts(metadata, files) == (
        "region=EU/at_day=2026-01-01/at_month=2026-03/born=1970-01-02/id_bucket=7",
        "region=null/at_day=null/at_month=null/born=null/id_bucket=0",
    )
    old: list[Any] = [*files, _File(0)]  # a rewrite would move its rows to another partition
    assert partition_texts(metadata, old) == ()


def test_a_shard_is_found_by_its_name_or_told_what_there_is(tmp_path: Any) -> None:
    store = LocalStore(str(tmp_path))
    assert shard_ledgers(store, "u") == []
    with pytest.raises(LedgerError, match="t has no shards: it is decided about as a whole"):
        find_shard([], "day=1", "t")
    book = ShardBook(store, "u")
    book.add(["day=10", "day=9"])
    book.add(["day=9"])
    found = shard_ledgers(store, "u")
    assert [shard.label for shard in found] == ["day=9", "day=10"]
    assert find_shard(found, found[0].id, "t") == found[0]
    with pytest.raises(LedgerError, match="t has no shard 'day=1'; its shards are day=9, day=10"):
        find_shard(found, "day=1", "t")
    with pytest.raises(LedgerError, match="no shard has one that begins with 'ab'"):
        shard_with_decision(found, "ab", "t")
