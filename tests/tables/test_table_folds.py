"""Rewriting some files of a table only, and undoing with such commits in between; run over every format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from lake import BID, Modulo, lay_out, run_id, staged_layout, version_of

from oreo_lakehouse.errors import ConflictError, RollbackError, TableError
from oreo_lakehouse.maintenance.dossier import live_layout
from oreo_lakehouse.tables.contract import Conflicted

if TYPE_CHECKING:
    from collections.abc import Collection

    from lake import Lake

    from oreo_lakehouse.tables.contract import Table


def append(lake: Lake, name: str, start: int, rows: int = 30, step: int = 1) -> None:
    """One file more, by somebody else."""
    ids = f"range({start}, {start + rows * step}, {step}, 1)"
    lake.sql(f"insert into {name} (id, v, s) select id, cast(id % 7 as int), cast(id as string) from {ids}")


def names_of(table: Table) -> set[str]:
    names = table.blocks().names
    assert len(names) == len(set(names)) == len(table.blocks())
    return set(names)


def fold(table: Table, only: Collection[str], layout: Modulo | None = None) -> int:
    staged = table.stage(table.plan(layout or Modulo(), BID, only), run_id())
    assert table.verify(staged).certificate == staged.certificate
    return version_of(table.commit(staged, {}))


def assert_every_row_is_in_its_block(lake: Lake, name: str) -> None:
    assert lake.sql(f"select * from {name} where {BID} is null or {BID} != id % 4").count() == 0


def test_a_tail_is_folded_into_the_layout_and_unfolded_again(lake: Lake) -> None:
    name, table = lake.create()
    original = names_of(table)
    lay_out(table)
    (layout,) = table.layout_commits()
    laid_out = names_of(table)
    append(lake, name, 1000)
    append(lake, name, 2000, step=4)
    want = lake.certificate(name)
    tail = names_of(table) - laid_out
    plan = table.plan(Modulo(), BID, tail)
    sizes = dict(zip(table.blocks().names, table.blocks().sizes, strict=True))
    assert (plan.rows, plan.files, plan.bytes) == (60, 2, sum(sizes[file] for file in tail))
    assert (plan.only, plan.action, plan.table_rows) == (tuple(sorted(tail)), "fold", 460)
    folded = fold(table, tail)
    assert lake.certificate(name) == want
    assert_every_row_is_in_its_block(lake, name)
    assert names_of(table) > laid_out
    assert not names_of(table) & tail
    assert len(table.blocks()) == 8
    newest = table.layout_commits()[0]
    assert (newest.version, newest.action, newest.layout_id) == (folded, "fold", layout.layout_id)
    assert live_layout(table) == layout

    version_of(table.revert(newest, run_id()))
    assert (names_of(table), lake.certificate(name)) == (laid_out | tail, want)
    assert live_layout(table) == layout
    fold(table, tail)
    folds = names_of(table) - laid_out
    version_of(table.revert(layout, run_id()))
    assert (names_of(table), lake.certificate(name)) == (original | folds, want)
    assert live_layout(table) is None
    version_of(table.revert(table.layout_commits()[0], run_id()))
    assert (names_of(table), lake.certificate(name)) == (laid_out | folds, want)
    assert live_layout(table) == layout


def test_a_fold_that_touches_few_blocks_makes_few_files(lake: Lake) -> None:
    name, table = lake.create()
    lay_out(table, Modulo(40))
    laid_out = names_of(table)
    for start in (1000, 2000, 3000):
        append(lake, name, start, rows=3, step=40)
    want = lake.certificate(name)
    fold(table, names_of(table) - laid_out, Modulo(40))
    assert lake.certificate(name) == want
    assert len(names_of(table) - laid_out) == 1
    new = [i for i, file in enumerate(table.blocks().names) if file not in laid_out]
    assert table.blocks().columns[BID].lower[new].tolist() == [0]


def test_one_partition_is_rewritten_alone(lake: Lake) -> None:
    name, table = lake.create(select="id, cast(id % 3 as int), cast(id as string)", clause="partitioned by (v)")
    want, blocks = lake.certificate(name), table.blocks()
    inside = {file for file, v in zip(blocks.names, blocks.columns["v"].lower, strict=True) if v == 1}
    assert 0 < len(inside) < len(blocks)
    fold(table, inside, Modulo(2))
    assert lake.certificate(name) == want
    after = table.blocks()
    assert set(after.names) > set(blocks.names) - inside
    new = np.array([file not in blocks.names for file in after.names])
    assert new.sum() == 2
    assert after.columns["v"].lower[new].tolist() == after.columns["v"].upper[new].tolist() == [1, 1]


def test_only_a_change_of_the_named_files_stands_in_the_way(lake: Lake) -> None:
    name, table = lake.create()
    lay_out(table)
    laid_out = names_of(table)
    append(lake, name, 1000)
    tail = names_of(table) - laid_out
    staged = table.stage(table.plan(Modulo(), BID, tail), run_id())
    append(lake, name, 2000)
    lake.sql(f"delete from {name} where id = 7")
    want = lake.certificate(name)
    version_of(table.commit(staged, {}))
    assert lake.certificate(name) == want
    assert want.rows == 459

    late = names_of(table) - laid_out - set(staged.paths)
    late = {file for file in late if table.blocks().rows[table.blocks().names.index(file)] == 30}
    staged = table.stage(table.plan(Modulo(), BID, late), run_id())
    lake.sql(f"update {name} set v = 99 where id = 2005")
    want = lake.certificate(name)
    assert isinstance(table.commit(staged, {}), Conflicted)
    assert table.discard(staged) == len(staged.paths)
    assert lake.certificate(name) == want
    with pytest.raises(ConflictError, match=r"files to rewrite are not in .* run again"):
        table.plan(Modulo(), BID, [*late, "no-such-file.parquet"])


def test_naming_every_file_is_a_whole_layout_and_naming_none_is_nothing(lake: Lake) -> None:
    _, table = lake.create()
    layout = Modulo()
    assert table.plan(layout, BID, table.blocks().names) == table.plan(layout, BID)
    nothing = table.plan(Modulo(), BID, [])
    assert (nothing.only, nothing.files, nothing.rows, nothing.bytes) == ((), 0, 0, 0)
    with pytest.raises(TableError):
        table.stage(nothing, run_id())


def test_an_earlier_layout_comes_back_whatever_was_folded_since(lake: Lake) -> None:
    name, table = lake.create()
    lay_out(table)
    first, files_of_first = table.layout_commits()[0], names_of(table)
    now = table.returnable(first)
    assert (now.possible, now.until) == (True, None)
    append(lake, name, 1000)
    tail = names_of(table) - files_of_first
    fold(table, tail)
    folded, files_of_fold = table.layout_commits()[0], names_of(table)
    lay_out(table, Modulo(3))
    files_of_second = names_of(table)
    append(lake, name, 2000)
    late = names_of(table) - files_of_second
    want = lake.certificate(name)
    kept = table.returnable(first)
    assert kept.possible
    assert kept.until is not None
    assert kept.until > first.time
    with pytest.raises(RollbackError, match="oreo-maintain"):
        table.revert(folded, run_id())

    version = version_of(table.return_to(first, run_id()))
    assert (names_of(table), lake.certificate(name)) == (files_of_first | tail | late, want)
    back = live_layout(table)
    assert back == table.layout_commits()[0]
    assert back is not None
    assert (back.version, back.action, back.layout_id) == (version, "return", first.layout_id)
    assert back.layout_run_id == first.run_id
    assert version_of(table.return_to(first, run_id())) == version  # nothing to do

    version_of(table.return_to(folded, run_id()))
    assert (names_of(table), lake.certificate(name)) == (files_of_fold | late, want)
    lake.sql(f"delete from {name} where id = 7")
    want = lake.certificate(name)
    assert "oreo-maintain" in (gone := table.returnable(first)).reason
    assert not gone.possible
    with pytest.raises(RollbackError, match="oreo-maintain"):
        table.return_to(first, run_id())
    assert lake.certificate(name) == want


def test_what_others_did_to_our_files_is_found_in_the_history(lake: Lake) -> None:
    name, table = lake.create()
    lay_out(table)
    (layout,) = table.layout_commits()
    laid_out = names_of(table)
    append(lake, name, 1000)
    fold(table, names_of(table) - laid_out)
    append(lake, name, 2000)
    ours = names_of(table)
    assert table.foreign_rewrites(layout) == []
    lake.sql(f"delete from {name} where id in (5, 1005)")
    (found,) = table.foreign_rewrites(layout)
    assert found.version == table.version()
    assert found.operation == {"delta": "DELETE", "iceberg": "overwrite"}[lake.format]
    assert set(found.files) == ours - names_of(table)
    assert len(found.files) == 2
    assert found.time >= layout.time
    left = names_of(table) & ours
    if lake.format == "delta":
        lake.sql(f"optimize {name}")
    else:
        catalog, _, plain = name.partition(".")
        lake.sql(f"call {catalog}.system.rewrite_data_files(table => '{plain}', options => map('rewrite-all', 'true'))")
    (again, rewritten) = table.foreign_rewrites(layout)
    assert again == found
    assert rewritten.operation == {"delta": "OPTIMIZE", "iceberg": "replace"}[lake.format]
    assert len(rewritten.files) == 6
    assert left > set(rewritten.files)
    assert staged_layout(table).action == "layout"
