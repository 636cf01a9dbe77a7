"""What real runs write into the ledger is told right, and a table looks the same with and without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oreo_lakehouse.config import load_config
from oreo_lakehouse.maintenance import offline
from oreo_lakehouse.maintenance.offline import open_offline, open_view
from oreo_lakehouse.maintenance.status import offline_status, status


def answer(shop: Any, *arguments: str) -> dict[str, Any]:
    done = shop.oreo(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def imported(shop: Any, **log: Any) -> None:
    assert shop.oreo("history", "import", shop.name, str(shop.log(**log))).exit_code == 0


def test_a_few_days_of_a_table(
    spark: Any, shop: Any, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(shop)
    moved = shop.maintained()
    assert moved["decision"] == "move"
    imported(shop, start=1, name="later.jsonl")
    assert shop.maintained()["decision"] == "stay"

    ledger = answer(shop, "ledger", shop.name)
    assert ledger["queries"] == 120
    assert ledger["rewrites"] == 1
    (receipt,) = ledger["receipts"]
    assert receipt["queries"] == 60
    assert ledger["spent"]["rewrites"] == pytest.approx(receipt["alpha"])
    # 60 queries met all files, 60 met one or two of the new ones
    files = moved["files_after"]
    assert 60 + 60 / files <= ledger["spent"]["queries"] <= 60 + 60 * 2 / files
    assert ledger["never"] == pytest.approx(120)
    assert receipt["saved"] == pytest.approx(120 - ledger["spent"]["queries"])
    assert receipt["has_paid"] == (receipt["saved"] >= receipt["alpha"])
    assert [stay["queries"] for stay in ledger["timeline"]] == [60, 60]
    assert ledger["bound"]["paid"] <= ledger["bound"]["limit"]

    decisions = [
        json.loads(line)
        for file in sorted((shop.folder / "store").glob("*/ledger/*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    first = next(line["run"] for line in decisions if line["kind"] == "decision")
    move = answer(shop, "explain", shop.name, "--decision", first[:12])
    assert (move["decision"], move["id"]) == ("move", first)
    assert move["target_cost"] < move["current_cost"]
    assert [one["is_target"] for one in move["candidates"]].count(True) == 1
    assert any("k >= ?" in one["shape"] for one in move["hot"])
    assert answer(shop, "explain", shop.name)["decision"] == "stay"

    told = answer(shop, "report", shop.name, "-o", str(tmp_path / "report.html"))
    assert Path(told["report"]).read_text().count("<polyline") >= 4

    # The same without Spark: by path for Delta, in the embedded catalog for Iceberg.
    config = load_config(str(shop.config), {"spark.warehouse": str(warehouse)})
    through = open_view(spark, shop.name, config)
    name = through.identity.location if shop.format == "delta" else shop.name
    assert open_offline(name, config) is None  # a session is running: its catalogs count
    monkeypatch.setattr(offline, "_spark_is_here", lambda: False)
    beside = open_offline(name, config)
    assert beside is not None
    assert (beside.identity.uuid, beside.table.version()) == (through.identity.uuid, through.table.version())
    ours, theirs = beside.table.layout_commits(), through.table.layout_commits()
    assert [replace(one, time=theirs[0].time) for one in ours] == [replace(one, time=theirs[0].time) for one in theirs]
    seen, wanted = beside.table.blocks(), through.table.blocks()
    assert seen is not None
    assert wanted is not None
    assert sorted(seen.rows.tolist()) == sorted(wanted.rows.tolist())
    assert seen.columns.keys() == wanted.columns.keys()
    for column, stats in seen.columns.items():
        for part in ("lower", "upper", "lower_known", "upper_known", "nulls"):
            np.testing.assert_array_equal(getattr(stats, part), getattr(wanted.columns[column], part), column + part)
    by_spark, by_itself = status(spark, shop.name, config), offline_status(name, config)
    assert by_itself is not None
    known = by_spark.to_json() | {"table": "", "store": "", "location": "", "layout_time": ""}
    assert by_itself.to_json() | {"table": "", "store": "", "location": "", "layout_time": ""} == known
    assert by_itself.layout is not None
    assert by_itself.health is not None
    assert [one.column for one in by_itself.health.columns] == ["k"]
    assert by_itself.health.columns[0].overlap_ratio < 0.1
    assert by_itself.health.skipping is not None
    assert by_itself.health.skipping.rows > 0.7
