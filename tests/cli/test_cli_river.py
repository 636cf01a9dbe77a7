"""The whole river by its commands, on both formats: history in, a layout out, undone again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from oreo_lakehouse.config import load_config
from oreo_lakehouse.maintenance.dossier import open_dossier
from oreo_lakehouse.maintenance.lock import locked
from oreo_lakehouse.tables.certificate import certify

KEYS = {
    "table",
    "format",
    "decision",
    "reason",
    "layout_id",
    "version_before",
    "version_after",
    "rows",
    "files_before",
    "files_after",
    "bytes_rewritten",
    "queries_seen",
    "seconds",
}


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def rows_of(spark: Any, shop: Any) -> Any:
    return certify(spark.table(shop.name), ["_oreo_bid"])


def imported(shop: Any, **log: Any) -> None:
    done = shop.oreo("history", "import", shop.name, str(shop.log(**log)))
    assert done.exit_code == 0, done.output


def files_read(spark: Any, shop: Any) -> int:
    file = "_file" if shop.format == "iceberg" else "_metadata.file_path"
    return spark.sql(f"SELECT DISTINCT {file} FROM {shop.name} WHERE k BETWEEN 100 AND 150").count()


def test_from_history_to_a_committed_layout_and_back(spark: Any, shop: Any) -> None:
    before = rows_of(spark, shop)
    nothing = shop.maintained()
    assert nothing["decision"] == "stay"
    assert "oreo history import" in nothing["reason"]
    imported(shop)
    imported(shop)  # the same log again adds nothing

    dossier = open_dossier(spark, shop.name, load_config(str(shop.config)))
    with locked(dossier.store, dossier.table.identity.uuid, shop.name):
        turned_away = shop.maintain("--json")
    assert (turned_away.exit_code, turned_away.stdout) == (1, "")
    assert "is being maintained by process" in turned_away.stderr

    assert files_read(spark, shop) == 8
    first = shop.maintained()
    assert set(first) == KEYS
    assert (first["decision"], first["queries_seen"], first["format"]) == ("move", 60, shop.format)
    assert first["version_after"] != first["version_before"]
    assert (first["rows"], first["files_before"]) == (8_000, 8)
    assert 8 < first["files_after"] <= 16  # a qd-tree: about 1.7 times as many, but even blocks
    assert first["bytes_rewritten"] > 0
    assert rows_of(spark, shop) == before
    assert files_read(spark, shop) <= 2

    second = shop.maintained()
    assert (second["decision"], second["bytes_rewritten"], second["queries_seen"]) == ("stay", 0, 0)
    assert "no new queries" in second["reason"]
    assert second["version_after"] == second["version_before"] == first["version_after"]
    assert second["layout_id"] == first["layout_id"]

    shown = json.loads(shop.oreo("status", shop.name, "--json").stdout)
    assert (shown["layout_id"], shown["queries_seen"], shown["queries_waiting"]) == (first["layout_id"], 60, 0)
    assert shown["last_decision"]["decision"] == "stay"

    spark.sql(f"INSERT INTO {shop.name} (id, k, s, d) VALUES (-1, 5, 'late', 0.5)")
    later = rows_of(spark, shop)
    undone = shop.oreo("rollback", shop.name, "--json")
    assert undone.exit_code == 0, undone.output
    assert json.loads(undone.stdout)["layout_id"] == first["layout_id"]
    assert rows_of(spark, shop) == later
    assert json.loads(shop.oreo("status", shop.name, "--json").stdout)["layout_id"] is None
    again = shop.oreo("rollback", shop.name)
    assert again.exit_code == 2
    assert "no layout of ours to undo" in again.stderr


def test_a_dry_run_shows_the_plan_and_leaves_no_trace(spark: Any, shop: Any) -> None:
    imported(shop)
    kept = everything_in(shop.folder)
    versions = json.loads(shop.oreo("status", shop.name, "--json").stdout)["version"]
    columns = spark.table(shop.name).columns
    dry = shop.maintain("--dry-run")
    assert dry.exit_code == 0, dry.output
    assert "would move to" in dry.stdout
    assert "_oreo_bid, added first by an ALTER TABLE of its own" in dry.stdout
    assert everything_in(shop.folder) == kept
    assert json.loads(shop.oreo("status", shop.name, "--json").stdout)["version"] == versions
    assert spark.table(shop.name).columns == columns
    assert json.loads(shop.maintain("--dry-run", "--json").stdout)["decision"] == "move"


def test_where_no_layout_helps_nothing_is_rewritten_and_its_state_survives_damage_and_a_new_policy(
    shop: Any, monkeypatch: Any
) -> None:
    imported(shop, column="id")  # rows arrived in the order of id: its files are as good as it gets
    outcome = shop.maintained()
    assert (outcome["decision"], outcome["bytes_rewritten"]) == ("stay", 0)

    (state,) = (shop.folder / "store").glob("*/state/*.json")
    state.write_text("garbage")
    done = shop.maintain()
    assert done.exit_code == 0, done.output
    assert "is damaged" in done.stderr
    assert state.name in done.stderr
    assert [p.read_text() for p in (shop.folder / "store").glob("*/set-aside/*.json")] == ["garbage"]

    monkeypatch.setenv("OREO_DECIDE_POLICY", "paper")
    imported(shop, column="id", start=1, name="more.jsonl")
    assert shop.maintained()["queries_seen"] == 60
