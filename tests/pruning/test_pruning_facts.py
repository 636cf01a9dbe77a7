"""Facts say exactly what the rows of each file show, survive their document, and make `bid` costs real."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from oreo_lakehouse.layouts.skipping import might_match
from oreo_lakehouse.maintenance.facts import decode, encode
from oreo_lakehouse.predicates.tree import Compare, CompareColumns, In, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.predicates.workload import Workload

if TYPE_CHECKING:
    from maintained import Maintained

    from oreo_lakehouse.layouts.blocks import ColumnStats
    from oreo_lakehouse.tables.filefacts import FileFacts

COLUMNS = (
    "id long, v int, few int, s string, url string, d double, e decimal(20,3), f boolean, a date, t timestamp, "
    "n timestamp_ntz, b binary, l array<int>, x int, y int, gone int"
)
URL = "'https://www.example.com/a/very/long/common/prefix/', lpad(cast(id as string), 9, '0')"
SELECT = f"""select id, if(id % 11 = 0, null, cast(id as int)), if(id % 40 < 20, 7, cast(id % 40 as int)),
  if(id % 40 = 3, 'ärger', concat('s', cast(id % 5 as string))), concat({URL}),
  case when id % 40 = 1 then double('NaN') when id % 40 = 2 then -0.0d else id / 4 end,
  cast(id as decimal(20,3)) / 8, id % 4 = 1, date_add(date'0999-12-31', cast(id as int)),
  timestamp_micros(id * 1000001), cast(timestamp_micros(id * 1000001) as timestamp_ntz),
  cast(cast(id as string) as binary), array(1), cast(id % 7 as int), if(id % 4 = 2, cast(id % 7 as int), 7),
  cast(null as int) from range(2000)"""
NAMES = ", ".join(part.split()[0] for part in COLUMNS.split(", "))


def _of(stats: ColumnStats, at: int) -> tuple[Any, Any, int]:
    return stats.lower[at], stats.upper[at], int(stats.nulls[at])


def test_facts_are_what_the_rows_of_each_file_show(table: Maintained) -> None:
    table.create(COLUMNS)
    table.insert(NAMES, SELECT)
    late = CompareColumns("y", Op.GT, "x")
    run = table.lay_out("cast(id % 4 as int)", 4, queries=[late])
    dossier = table.dossier()
    assert dossier.facts.names() == set(dossier.table.blocks().names)
    queried = table.facts()
    assert set(queried.columns) <= set(dossier.table.column_keys().values())
    table.lay_out("cast(id % 4 as int)", 4)  # without queries every column gets facts
    dossier = table.dossier()
    assert dossier.facts.tidy(dossier.table.blocks().names, [run]) == 0
    assert dossier.facts.tidy(dossier.table.blocks().names) == 1
    facts, keys = table.facts(), dossier.table.column_keys()
    assert sorted(facts.bids) == [0, 1, 2, 3]
    assert facts.rows.tolist() == [500] * 4
    assert keys["l"] not in facts.columns
    file = "input_file_name()" if table.format == "delta" else "_file"
    sides = ", ".join(
        f"min({c}) {c}0, max({c}) {c}1, count_if({c} is null) {c}2"
        for c in NAMES.split(", ")
        if c not in ("l", "t", "n")
    )
    rows = table.spark.sql(
        f"select *, unix_micros(t0) t0_, unix_micros(t1) t1_ from (select element_at(split({file}, '/'), -1) file, "
        f"{sides}, min(t) t0, max(t) t1 from {table.name} group by 1)"
    ).collect()
    place = {name.rpartition("/")[2]: at for at, name in enumerate(facts.names)}
    for row in rows:
        at = place[row["file"]]
        for name in ("id", "v", "few", "s", "url", "e", "f", "x", "y"):
            low, high, nulls = _of(facts.columns[keys[name]], at)
            assert (low, high, nulls) == (row[f"{name}0"], row[f"{name}1"], row[f"{name}2"]), name
        days = [row[f"a{side}"].toordinal() - 719163 for side in (0, 1)]
        assert _of(facts.columns[keys["a"]], at) == (*days, 0)
        assert _of(facts.columns[keys["t"]], at) == (row["t0_"], row["t1_"], 0)
        assert _of(facts.columns[keys["b"]], at) == (bytes(row["b0"]), bytes(row["b1"]), 0)
        assert facts.columns[keys["gone"]].nulls[at] == 500
        assert not facts.columns[keys["gone"]].lower_known[at]
    bid = {int(b): at for at, b in enumerate(facts.bids)}
    assert math.isnan(facts.columns[keys["d"]].upper[bid[1]])
    assert facts.columns[keys["d"]].distinct is facts.columns[keys["url"]].distinct is None
    few, text = facts.columns[keys["few"]].distinct, facts.columns[keys["s"]].distinct
    assert few is not None
    assert text is not None
    assert few.values[few.present[bid[0]]].tolist() == [7, 20, 24, 28, 32, 36]
    assert text.values[text.present[bid[3]]].tolist() == ["s0", "s1", "s2", "s3", "s4", "ärger"]
    assert "ärger" not in text.values[text.present[bid[2]]].tolist()
    assert isinstance(facts.columns[keys["e"]].lower[0], Decimal)
    _assert_equal(facts, decode(encode(facts)))


def test_enriched_blocks_skip_by_sets_and_by_comparisons(table: Maintained) -> None:
    table.create(COLUMNS)
    table.insert(NAMES, SELECT)
    table.lay_out("cast(id % 4 as int)", 4, queries=[CompareColumns("y", Op.GT, "x"), In("few", Kind.INTEGER, (20,))])
    table.insert("id, few, x, y", "select 5000, 99, 1, 2")
    dossier = table.dossier()
    blocks = dossier.table.blocks()
    rich = dossier.facts.enrich(blocks, dossier.table.column_keys())
    queries = Workload.of(
        [
            In("few", Kind.INTEGER, (20, 24)),
            Compare("few", Op.EQ, Kind.INTEGER, 8),
            CompareColumns("x", Op.LT, "y"),
            CompareColumns("x", Op.GT, "y"),
        ]
    )
    fresh = np.array([name not in set(table.facts().names) for name in rich.names])
    assert fresh.sum() == 1
    assert might_match(queries, blocks, "bid")[:, ~fresh].sum(axis=1).tolist() == [4, 4, 4, 1]
    assert might_match(queries, rich, "native")[:, ~fresh].sum(axis=1).tolist() == [4, 4, 4, 4]
    assert might_match(queries, rich, "bid")[:, ~fresh].sum(axis=1).tolist() == [1, 0, 3, 0]
    assert might_match(queries, rich, "bid")[:, fresh].sum(axis=1).tolist() == [0, 0, 1, 0]


def _assert_equal(facts: FileFacts, again: FileFacts) -> None:
    assert again.names == facts.names
    for key, stats in facts.columns.items():
        other = again.columns[key]
        np.testing.assert_array_equal(stats.lower[stats.lower_known], other.lower[other.lower_known])
        np.testing.assert_array_equal(stats.upper[stats.upper_known], other.upper[other.upper_known])
        assert (stats.nulls == other.nulls).all()
        assert (stats.distinct is None) == (other.distinct is None)
        if stats.distinct is not None and other.distinct is not None:
            assert stats.distinct.values.tolist() == other.distinct.values.tolist()
            assert (stats.distinct.present == other.distinct.present).all()


def test_damaged_and_newer_documents_are_named_and_left_out(table: Maintained) -> None:
    table.create("id long")
    table.insert("id", "select id from range(40)")
    run = table.lay_out("cast(id % 4 as int)", 4)
    path = table.folder / "store" / table.dossier().table.identity.uuid / "files" / f"{run}.json"
    good = path.read_bytes()
    with pytest.raises(ValueError, match="checksum"):
        decode(good.replace(b"39", b"38"))
    path.write_bytes(good[:-10])
    facts, (notice,) = table.dossier().facts.load()
    assert facts is None
    assert str(path.name) in notice
    header, _, rest = good.partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(header), "version": 99}).encode() + b"\n" + rest)
    facts, (notice,) = table.dossier().facts.load()
    assert facts is None
    assert "upgrade" in notice
    assert table.dossier().facts.names() == set()
    blocks = table.dossier().table.blocks()
    assert table.dossier().facts.enrich(blocks, table.dossier().table.column_keys()) is blocks
