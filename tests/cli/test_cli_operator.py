"""An operator's week with one table of each format: limits, shadow, folding, going back, foreign rewrites."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from oreo_lakehouse.maintenance import leap
from oreo_lakehouse.maintenance.look import look
from oreo_lakehouse.tables.certificate import certify


def rows_of(spark: Any, shop: Any) -> Any:
    return certify(spark.table(shop.name), ["_oreo_bid"])


def ask(shop: Any, day: float, column: str = "k", count: int = 60) -> None:
    log = shop.log(count=count, column=column, start=day, name=f"log{day}.jsonl")
    done = shop.oreo("history", "import", shop.name, str(log))
    assert done.exit_code == 0, done.output


def version(spark: Any, shop: Any) -> int:
    return json.loads(shop.oreo("status", shop.name, "--json").stdout)["version"]


def lines(shop: Any, kind: str) -> list[dict[str, Any]]:
    files = sorted((shop.folder / "store").glob("*/ledger/*.jsonl"))
    found = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [line["facts"] for line in found if line["kind"] == kind]


def test_a_week_with_one_table(spark: Any, shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(shop, 0)
    first = version(spark, shop)

    dry = json.loads(shop.maintain("--dry-run", "--json").stdout)
    assert dry["plan"]["files"] == 8
    assert dry["forecast"]["cost_then"] < dry["forecast"]["cost_now"]
    assert dry["forecast"]["break_even"] == round(4 / (dry["forecast"]["cost_now"] - dry["forecast"]["cost_then"]))

    shadow = json.loads(shop.maintain("--shadow", "--json").stdout)
    assert (shadow["decision"], shadow["bytes_rewritten"]) == ("move", 0)
    assert version(spark, shop) == first
    assert lines(shop, "decision")[-1]["shadow"] is True

    ask(shop, 1)
    poor = json.loads(shop.maintain("--budget", "1KB", "--json").stdout)
    assert poor["decision"] == "stay"
    assert "--budget leaves" in poor["reason"]
    assert lines(shop, "decision")[-1]["held"] == poor["reason"]
    ask(shop, 2)
    late = json.loads(shop.maintain("--max-minutes", "0", "--json").stdout)
    assert "--max-minutes leaves" in late["reason"]
    with monkeypatch.context() as slow:  # before the first rewrite, alpha scans are what one is expected to take
        slow.setattr(leap, "look", lambda *given: replace(look(*given), scan_seconds=900.0))
        ask(shop, 3)
        later = json.loads(shop.maintain("--max-minutes", "59", "--json").stdout)
        assert "would take about 60.0 minutes and --max-minutes leaves 5" in later["reason"]
    ask(shop, 3.5)
    moved = shop.maintained()
    assert moved["decision"] == "move"
    (commit,) = lines(shop, "commit")
    assert commit["action"] == "layout"
    assert commit["cost_exact"] == commit["cost_realised"]
    assert commit["scan_seconds"] > 0

    # A fortieth more rows, appended by a writer who knows nothing of us, is folded in for about what it weighs.
    spark.range(10_000, 10_200, 1, 2).selectExpr(
        "id", "cast(pmod(xxhash64(id), 1000) AS int) AS k", "concat('name', id) AS s", "cast(id AS double) AS d"
    ).writeTo(shop.name).append()
    before = rows_of(spark, shop)
    ask(shop, 4, count=120)
    folded = shop.maintained()
    assert folded["decision"] == "fold", folded
    fold = lines(shop, "commit")[-1]
    assert (fold["action"], fold["rows"], fold["files_before"]) == ("fold", 200, 2)  # the appended rows and no others
    assert folded["layout_id"] == moved["layout_id"]
    assert rows_of(spark, shop) == before
    served = lines(shop, "served")[-1]
    assert sum(served["actual"]) < 0.6 * sum(served["previous"])
    assert sum(served["never"]) == sum(served["previous"])

    ask(shop, 5, column="d", count=200)
    second = shop.maintained()
    assert second["decision"] == "move"
    assert second["layout_id"] != moved["layout_id"]
    listed = json.loads(shop.oreo("layouts", shop.name, "--json").stdout)["layouts"]
    assert [one["state"] for one in listed] == ["live", "returnable"]
    assert "returnable" in shop.oreo("layouts", shop.name).stdout

    unknown = shop.oreo("rollback", shop.name, "--to", "qdtree-none")
    assert unknown.exit_code == 2
    assert "never had a layout 'qdtree-none'" in unknown.stderr
    back = json.loads(shop.oreo("rollback", shop.name, "--to", moved["layout_id"], "--json").stdout)
    assert back["returned_to"] == moved["layout_id"]
    assert rows_of(spark, shop) == before
    assert json.loads(shop.oreo("status", shop.name, "--json").stdout)["layout_id"] == moved["layout_id"]
    assert lines(shop, "commit")[-1]["action"] == "return"


def test_a_foreign_rewrite_is_told_and_repaired(spark: Any, shop: Any) -> None:
    ask(shop, 0)
    moved = shop.maintained()
    before = rows_of(spark, shop)
    assert "replaced" not in shop.maintain("--after-optimize").stderr
    if shop.format == "delta":
        spark.sql(f"OPTIMIZE {shop.name} WHERE true ZORDER BY (id)")
        word = "OPTIMIZE"
    else:
        catalog, table = shop.name.split(".", 1)
        spark.sql(
            f"CALL {catalog}.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
        )
        word = "replace"
    done = shop.maintain("--after-optimize", "--json")
    assert done.exit_code == 0, done.output
    assert word in done.stderr
    repaired = json.loads(done.stdout)
    assert (repaired["decision"], repaired["layout_id"]) == ("fold", moved["layout_id"])
    assert repaired["files_after"] == moved["files_after"]
    assert rows_of(spark, shop) == before
    assert lines(shop, "foreign")[0]["operation"] == word


def test_calibration_touches_nothing_and_counts_from_then_on(spark: Any, shop: Any) -> None:
    shop.config.write_text(shop.config.read_text().replace("alpha = 4\n", ""))
    ask(shop, 0)
    first, rows = version(spark, shop), rows_of(spark, shop)
    done = shop.oreo("calibrate", shop.name, "--json")
    assert done.exit_code == 0, done.output
    measured = json.loads(done.stdout)
    assert measured["columns"] == ["k"]
    assert measured["alpha"] >= 2
    assert measured["trial_bytes"] == measured["table_bytes"]  # it is small
    assert "calibrated" in measured["source"]
    assert (version(spark, shop), rows_of(spark, shop)) == (first, rows)
    assert not list(shop.folder.glob("store/*/pending/*"))
    shop.maintained()
    assert lines(shop, "decision")[-1]["alpha_source"] == measured["source"]


def test_several_tables_in_one_run(spark: Any, shop: Any) -> None:
    ask(shop, 0)
    other = shop.name.replace("shop", "shelf")
    spark.table(shop.name).writeTo(other).using(shop.format).create()
    everything = shop.name.replace("shop", "sh*")
    from typer.testing import CliRunner

    from oreo_lakehouse.cli.maintain import app

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, [*arguments, "--config", str(shop.config)])

    done = run(everything, shop.name.replace("shop", "nothing"), "--json")
    assert done.exit_code == 2
    shelf, first, missing = (json.loads(line) for line in done.stdout.splitlines())
    assert (shelf["decision"], first["decision"]) == ("stay", "move")
    assert missing["exit_code"] == 2
    assert "there is no table 'nothing'" in missing["error"]
    known = run("--all")
    assert known.exit_code == 0, known.output
    assert "2 tables: 0 rewritten, 2 left as they are, 0 failed" in known.stdout
    assert run().exit_code == 2
    assert "no table matches" in run(shop.name.replace("shop", "x*")).stderr
