"""Storage that fills up or refuses to be written: a clear error, the table untouched, nothing left behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from faultystorage import METADATA, ROOM, files_below
from lake import BID, Modulo, lay_out, run_id, staged_layout

from oreo_lakehouse.errors import TableError

if TYPE_CHECKING:
    from lake import Lake


def test_a_full_or_closed_storage_leaves_the_table_as_it_was(lake: Lake, storage: Any, tmp_path: Path) -> None:
    name, table = lake.create(clause=f"location 'faulty://{tmp_path}/t'", rows=4000)
    assert table.blocks().names[0]
    lay_out(table)
    want, version, before = lake.certificate(name), table.version(), files_below(tmp_path)
    plan = table.plan(Modulo(5), BID)

    storage.fault(plan.bytes // 2, None)
    with pytest.raises(TableError, match="No space left on device") as full:
        table.stage(plan, run_id())
    storage.fault(ROOM, None)
    assert name in str(full.value)
    assert files_below(tmp_path) == before
    assert (lake.certificate(name), table.version()) == (want, version)

    staged = staged_layout(table, Modulo(5))
    assert len(files_below(tmp_path)) > len(before)
    storage.fault(ROOM, METADATA[lake.format])
    with pytest.raises(TableError, match=r"may not be written by this user, nothing was changed: .*Permission denied"):
        table.commit(staged, {})
    with pytest.raises(TableError, match="Permission denied"):
        table.revert(table.layout_commits()[0], run_id())
    storage.fault(ROOM, None)
    assert files_below(tmp_path) == before
    assert (lake.certificate(name), table.version()) == (want, version)
    lay_out(table, Modulo(3))
    assert lake.certificate(name) == want
