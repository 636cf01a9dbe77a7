"""Deciding by the bytes of the columns that queries read, on real tables: one unit from decision to receipt."""

from __future__ import annotations

import json
from typing import Any


def lines(shop: Any, kind: str) -> list[dict[str, Any]]:
    files = sorted((shop.folder / "store").glob("*/ledger/*.jsonl"))
    found = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [line["facts"] for line in found if line["kind"] == kind]


def told(shop: Any, command: str) -> str:
    done = shop.oreo(command, shop.name)
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def test_bytes_count_from_decision_to_receipt(spark: Any, shop: Any) -> None:
    shop.ask(0)
    rows = json.loads(shop.maintain("--dry-run", "--json").stdout)
    shop.config.write_text(f'{shop.config.read_text()}weigh = "bytes"\n')
    # The same rewrite takes longer to pay: it is counted in scans of all columns, of which queries read one.
    light = json.loads(shop.maintain("--dry-run", "--json").stdout)
    assert rows["decision"] == light["decision"] == "move"
    assert light["forecast"]["break_even"] > 1.5 * rows["forecast"]["break_even"]
    moved = shop.maintained()
    assert moved["decision"] == "move"
    (served,) = lines(shop, "served")
    weight = served["weight"] / served["queries"]
    assert 0.02 < weight < 0.6
    assert served["weigh"] == "bytes"
    assert sum(served["actual"]) <= served["weight"] + 1e-4  # buckets are rounded
    assert abs(lines(shop, "decision")[-1]["weight"] - weight) < 1e-5
    (commit,) = lines(shop, "commit")
    assert (commit["alpha"], commit["action"]) == (4, "layout")
    assert abs(commit["scan_share"] - weight) < 1e-5
    assert commit["cost_exact"] == commit["cost_realised"] < commit["cost_before"] <= weight + 1e-5
    shop.ask(5)
    shop.maintained()
    assert "take" in (words := told(shop, "explain"))
    assert "scans of all columns" in words
    ledger = told(shop, "ledger")
    assert "all costs in scans of all columns of the table" in ledger
    assert "promised and realised: scans of all columns of the table saved a query" in ledger
    receipt = json.loads(shop.oreo("ledger", shop.name, "--json").stdout)["receipts"][0]
    assert 0 < receipt["realised_saving"] < weight
    best = json.loads(shop.oreo("status", shop.name, "--json").stdout)["health"]["best_known"]
    assert 0.5 < best["rows"] <= 1  # of the rows, whatever they weigh

    # Going back to rows begins the account anew, and leaves the layout where it is.
    shop.config.write_text(shop.config.read_text().replace('weigh = "bytes"\n', ""))
    shop.ask(6)
    again = shop.maintain("--json")
    assert again.exit_code == 0, again.output
    assert "decide.weigh is 'rows' now and was 'bytes'" in " ".join(again.stderr.split())
    assert json.loads(shop.oreo("ledger", shop.name, "--json").stdout)["queries"] == 60
    assert "all costs in full scans of the table" in told(shop, "ledger")
