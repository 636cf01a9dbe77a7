"""The behaviour of a table, written once against the contract and run over every format."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from lake import BID, Modulo, lay_out, run_id, staged_layout, version_of

from oreo_lakehouse.errors import RollbackError, TableError, UnsupportedTableError, VerificationError
from oreo_lakehouse.layouts.curve import ZOrderLayout
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.layouts.sort import sort_layout
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.tables.contract import Conflicted

if TYPE_CHECKING:
    from lake import Lake


def test_a_layout_from_plan_to_rollback(lake: Lake) -> None:
    name, table = lake.create()
    assert table.layout_commits() == []
    files = sorted(table.blocks().sizes)
    want, before = lake.certificate(name), table.version()
    plan = table.plan(Modulo(), BID)
    assert (plan.base_version, plan.rows, plan.files, plan.adds_bid_column) == (before, 400, 4, True)
    staged = table.stage(plan, run_id())
    assert staged.certificate == table.verify(staged).certificate == want
    assert lake.certificate(name) == want
    version = version_of(table.commit(staged, {"why": "a test"}))
    assert version == table.version() != before
    assert lake.certificate(name) == want
    bids = table.blocks().columns[BID]
    assert sorted(bids.lower) == sorted(bids.upper) == [0, 1, 2, 3]
    assert lake.sql(f"select * from {name} where {BID} != id % 4 or {BID} is null").count() == 0
    assert sorted(table.blocks(before).sizes) == files  # an older version's blocks are those that it had

    # The same staged files, committed again, are found; and what was committed is never discarded.
    assert version_of(table.commit(staged, {})) == table.version() == version
    assert table.discard(staged) == 0

    # Rows appended since stay when the layout is undone, and both are found in the table's own history.
    lake.sql(f"insert into {name} (id, v, s) values (1000, 1, 'late')")
    want = lake.certificate(name)
    (found,) = table.layout_commits()
    assert (found.version, found.layout_id, found.run_id) == (version, staged.layout_id, staged.run_id)
    assert (found.action, found.base_version) == ("layout", staged.base_version)
    reverted = version_of(table.revert(found, "undo-1"))
    assert lake.certificate(name) == want
    assert np.isin(files, table.blocks().sizes).all()
    assert len(table.blocks()) == 5
    assert [(c.version, c.action, c.run_id) for c in table.layout_commits()] == [
        (reverted, "rollback", "undo-1"),
        (version, "layout", staged.run_id),
    ]


def test_a_second_layout_replaces_the_first(lake: Lake) -> None:
    name, table = lake.create()
    want = lake.certificate(name)
    first = staged_layout(table)
    version_of(table.commit(first, {}))
    assert not table.plan(Modulo(3), BID).adds_bid_column

    # Staging alone changes nothing that readers see, and is taken back without a trace.
    version = table.version()
    given_up = staged_layout(table, Modulo(3))
    assert (lake.certificate(name), table.version(), len(table.blocks())) == (want, version, 4)
    with pytest.raises(VerificationError, match="nothing was committed"):
        table.verify(replace(given_up, added=given_up.added[1:], paths=given_up.paths[1:]))
    assert table.discard(given_up) == 3
    assert table.discard(given_up) == 0

    # Of two runs over the same files one lands.
    one, other = staged_layout(table, Modulo(3)), staged_layout(table, Modulo(5))
    version_of(table.commit(one, {}))
    assert isinstance(table.commit(other, {}), Conflicted)
    assert lake.certificate(name) == want
    assert len(table.blocks()) == 3

    # The first layout's files are no longer current, but its version is still read; only the newest can be undone.
    assert table.discard(first) == 0
    with pytest.raises(RollbackError):
        table.revert(table.layout_commits()[1], run_id())
    version_of(table.revert(table.layout_commits()[0], run_id()))
    assert lake.certificate(name) == want
    assert len(table.blocks()) == 4


def test_without_a_bid_column_the_schema_stays_as_it_was(lake: Lake) -> None:
    name, table = lake.create()
    want, schema = lake.certificate(name), table.schema()
    lay_out(table, bid_column="")
    assert lake.certificate(name) == want
    assert table.schema() == schema
    assert len(table.blocks()) == 4


def test_rows_stay_within_their_table_partition(lake: Lake) -> None:
    name, table = lake.create(select="id, cast(id % 3 as int), cast(id as string)", clause="partitioned by (v)")
    want = lake.certificate(name)
    assert table.plan(Modulo(), BID).partition_columns == ("v",)
    lay_out(table)
    assert lake.certificate(name) == want
    blocks = table.blocks()
    assert len(blocks) == 12
    assert (blocks.columns["v"].lower == blocks.columns["v"].upper).all()


CHANGES = (
    "delete from {} where id = 5",
    "update {} set v = 99 where id = 6",
    "merge into {} t using (select 7L id) u on t.id = u.id when matched then update set v = 77",
    "insert overwrite {} (id, v, s) values (1, 1, 'only')",
)


def test_a_change_of_the_input_between_stage_and_commit_wins(lake: Lake) -> None:
    name, table = lake.create()
    for change in CHANGES:
        staged = table.stage(table.plan(Modulo(), BID), run_id())
        lake.sql(change.format(name))
        want, version = lake.certificate(name), table.version()
        result = table.commit(staged, {})
        assert isinstance(result, Conflicted), change
        assert result.reason.endswith(".")
        assert table.discard(staged) == len(staged.paths)
        assert (lake.certificate(name), table.version()) == (want, version)


def test_rows_appended_between_stage_and_commit_are_kept_and_changed_ones_not_undone(lake: Lake) -> None:
    name, table = lake.create()
    staged = staged_layout(table)
    lake.sql(f"insert into {name} (id, v, s) values (1000, 1, 'late'), (1001, null, null)")
    want = lake.certificate(name)
    version_of(table.commit(staged, {}))
    assert lake.certificate(name) == want
    assert want.rows == 402
    lake.sql(f"delete from {name} where id = 7")
    want = lake.certificate(name)
    with pytest.raises(RollbackError, match="oreo-maintain"):
        table.revert(table.layout_commits()[0], run_id())
    assert lake.certificate(name) == want


def test_the_schema_names_kinds_by_logical_column(lake: Lake) -> None:
    columns = "id long, i int, d double, e decimal(20,3), s string, b binary, f boolean, a date, t timestamp"
    _, table = lake.create(columns=f"{columns}, n timestamp_ntz, l array<int>, m struct<x:int>", rows=0)
    kinds = [Kind.INTEGER, Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.STRING, Kind.BINARY, Kind.BOOLEAN, Kind.DATE]
    kinds += [Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.OTHER, Kind.OTHER]
    assert list(table.schema().values()) == kinds


def test_columns_weigh_what_they_take_on_storage(lake: Lake) -> None:
    name, table = lake.create()
    before = table.column_bytes()
    assert before.keys() == table.schema().keys()
    assert all(size > 0 for size in before.values())
    lake.sql(f"alter table {name} add column wide struct<text: string, number: int>")
    lake.sql(f"insert into {name} (id, wide) select id + 5000, struct(repeat(uuid(), 20), 1) from {name}")
    after = table.column_bytes()
    assert after["wide"] > sum(size for column, size in after.items() if column != "wide")


def test_fixed_text_is_never_compared_where_blanks_fill_it_up(lake: Lake) -> None:
    """Iceberg has no CHAR: what is declared so is plain text there, and nothing is filled up."""
    name, table = lake.create("id long, c char(5), w varchar(5)", "id, 'a', 'a'", rows=4)
    lake.sql(f"insert into {name} values (9, 'a  ', 'a  ')")
    kinds = {"delta": Kind.OTHER, "iceberg": Kind.STRING}
    assert table.schema() == {"id": Kind.INTEGER, "c": kinds[lake.format], "w": Kind.STRING}
    assert ("c" in table.blocks().columns) is (lake.format == "iceberg")
    assert lake.sql(f"select * from {name} where c = 'a'").count() == {"delta": 5, "iceberg": 4}[lake.format]
    assert lake.sql(f"select * from {name} where w = 'a'").count() == 4


def test_blocks_of_a_layout_are_of_about_equal_size(lake: Lake) -> None:
    """Equal within 20%, from a sample, also where half of all rows lie in a tenth of the values."""
    rows = "id, cast(if(id % 2 = 0, pow(id % 1000, 2) / 1000, id) as int), sha2(cast(id as string), 256)"
    _, table = lake.create(select=rows, rows=20_000)
    sample = Sample(table.sample(4000, seed=1))
    made = [sort_layout(sample, ["v"], 8), ZOrderLayout.of(sample, ["v", "id"], 8)]
    for layout in made:
        assert layout is not None
        lay_out(table, layout)
        blocks = table.blocks()
        assert len(blocks) == 8
        for share in (blocks.rows / blocks.rows.mean(), blocks.sizes / blocks.sizes.mean()):
            assert 0.8 < share.min() <= share.max() < 1.2, layout.describe()


def test_a_sample_is_repeatable_and_about_as_large_as_asked(lake: Lake) -> None:
    _, table = lake.create(rows=4000)
    drawn = table.sample(400, seed=1)
    assert drawn.column_names == ["id", "v", "s"]
    assert 300 < len(drawn) < 500
    assert len(set(drawn["id"].to_pylist())) == len(drawn)
    assert table.sample(400, seed=1).equals(drawn)
    assert not table.sample(400, seed=2).equals(drawn)
    everything = table.sample(10_000, seed=1, columns=["v", "id"])
    assert (everything.column_names, len(everything)) == (["v", "id"], 4000)
    spread = np.histogram(drawn["id"].to_numpy(), bins=4, range=(0, 4000))[0]
    assert spread.min() > 60


def test_a_table_without_rows_can_be_planned_and_what_cannot_be_is_named(lake: Lake) -> None:
    _, table = lake.create(rows=0)
    assert len(table.blocks()) == 0
    assert len(table.sample(10, seed=1)) == 0
    assert table.plan(Modulo(), BID).files == 0
    with pytest.raises(TableError, match="nothere"):
        table.plan(Modulo(4, "nothere"), BID)
    with pytest.raises(UnsupportedTableError, match="bid_column"):
        table.plan(Modulo(), "s")
