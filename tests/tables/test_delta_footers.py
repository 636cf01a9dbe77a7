"""Statistics of staged files from their Parquet footers: what Delta itself would have collected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lake import BID, Modulo, lay_out, run_id, staged_layout, version_of

from oreo_lakehouse.tables.delta import footers

if TYPE_CHECKING:
    from lake import Lake

COLUMNS = (
    "id long, by tinyint, f float, d double, zero double, dec decimal(12,2), big decimal(38,10), s string, c char(5), "
    "v varchar(20), line string, b boolean, bin binary, day date, t timestamp, n timestamp_ntz, allnull int, "
    "st struct<a:int,b:string,c:decimal(10,2),m:map<string,int>>, l array<int>, m map<string,int>, part int"
)
ROWS = """
    id, cast(id % 50 as tinyint), if(id = 5, float('nan'), cast(id as float)), id / 7, -0.0d,
    cast(id as decimal(12,2)) / 7,
    cast(id as decimal(38,10)) / 7,
    if(id % 7 = 0, null, repeat('a', cast(id % 2 as int)) || repeat(decode(unhex('F09D849E'), 'utf-8'), 40)),
    'ab', concat('v', id), decode(unhex('61E280A80A62'), 'utf-8'), id % 2 = 0, cast(cast(id as string) as binary),
    date'0001-01-01' + cast(id as int), timestamp'1500-01-01 00:00:00.123456' + make_dt_interval(cast(id as int)),
    timestamp_ntz'2020-01-01 00:00:00.123456', cast(null as int),
    if(id % 5 = 0, null, named_struct('a', cast(id as int), 'b', if(id = 1, null, 'x'), 'c', cast(id as decimal(10,2)),
        'm', map())),
    if(id % 2 = 0, null, array(1)), map(), cast(id % 3 as int)
"""


@pytest.mark.spark
@pytest.mark.parametrize("properties", ["'delta.enableDeletionVectors'='true'", "'delta.columnMapping.mode'='name'"])
def test_footers_tell_what_delta_collects(delta: Lake, properties: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clause = f"partitioned by (part) tblproperties({properties})"
    name, table = delta.create(COLUMNS, ROWS, rows=60, files=2, clause=clause)
    lay_out(table, Modulo(2))  # the BID column is there now
    nested, text = _nested(table), table.column_keys()["s"]
    collected = _statistics(table)
    monkeypatch.setattr(footers, "ROWS", 0)
    told = _statistics(table)
    assert len(told) == len(collected) > 2
    for key, one in collected.items():
        assert len(one["minValues"]) > 10
        # NULL counts of arrays and maps are left out: footers cannot tell NULL from empty, and all maps here are empty.
        for counts in (one["nullCount"], *(inner for inner in one["nullCount"].values() if isinstance(inner, dict))):
            for column in counts.keys() & nested:
                del counts[column]
        # Both keep 32 characters of a lower bound, but they count those beyond the basic plane differently.
        lower, shorter = (bounds["minValues"].pop(text) for bounds in (one, told[key]))
        assert lower.startswith(shorter)
        assert len(shorter) >= 16
        for part, values in one.items():
            assert told[key][part] == values, part
    lay_out(table, Modulo(3))
    assert delta.certificate(name, "m is not null").rows == 60


@pytest.mark.spark
@pytest.mark.parametrize("least", [0, footers.ROWS])
def test_an_empty_first_block_leaves_no_file_behind(delta: Lake, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footers, "ROWS", least)
    name, table = delta.create("id long, s string", "id, cast(id as string)", rows=40, files=1)
    lay_out(table, Modulo(4))
    laid_out = set(table.blocks().names)
    delta.sql(f"insert into {name} (id, s) select id, 'late' from range(1001, 1081, 4, 1)")
    want = delta.certificate(name)
    staged = table.stage(table.plan(Modulo(4), BID, set(table.blocks().names) - laid_out), run_id())
    assert table.verify(staged).certificate == staged.certificate
    version_of(table.commit(staged, {}))
    assert delta.certificate(name) == want
    ours = {file.name for file in Path(table.identity.location.removeprefix("file:")).rglob("oreo-*.parquet")}
    assert ours == {path.rpartition("/")[2] for path in (*laid_out, *staged.paths)}
    assert len(staged.paths) == 1


def _nested(table: Any) -> set[str]:
    """Physical names of the array and the map, and of the map inside the struct."""
    keys = table.column_keys()
    schema = json.loads(str(table._log.snapshot().schema().json()))["fields"]
    inner = next(field for field in schema if field["name"] == "st")["type"]["fields"]
    physical = {f["name"]: f["metadata"].get("delta.columnMapping.physicalName", f["name"]) for f in inner}
    return {keys["l"], keys["m"], physical["m"]}


def _statistics(table: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """Of staged files, by partition and BID, with numbers as they are written."""
    bid = table.column_keys()[BID]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    staged = staged_layout(table, Modulo(2))
    for add in staged.added:
        told = json.loads(add["stats"], parse_float=str)
        found[json.dumps(add["partitionValues"]), str(told["minValues"][bid])] = told
    table.discard(staged)
    return found
