"""Where the bytes of the columns count: weights, the price of a rewrite, and an account that never mixes two units."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ledger_week import BY_DAY, BY_SHOP, START, week

from oreo_lakehouse.history.exactness import Exactness
from oreo_lakehouse.history.querybatch import QueryBatch
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.maintenance.account import account_of
from oreo_lakehouse.maintenance.alpha import alpha_of
from oreo_lakehouse.maintenance.explaining import explain
from oreo_lakehouse.maintenance.ledger import LedgerLine
from oreo_lakehouse.maintenance.receipts import receipts_of
from oreo_lakehouse.maintenance.state import State, StateStore
from oreo_lakehouse.maintenance.weighing import weights_of
from oreo_lakehouse.predicates.tree import TRUE
from oreo_lakehouse.store import LocalStore

SIZES = {"a": 10, "b": 30, "c": 60}


def in_bytes(lines: list[LedgerLine], since: int) -> list[LedgerLine]:
    """The week, but from one of its runs on costs are a tenth, as queries over a tenth of the bytes have them."""
    first = list(dict.fromkeys(line.run for line in lines))[since]
    start = next(number for number, line in enumerate(lines) if line.run == first)

    def light(line: LedgerLine) -> LedgerLine:
        facts = dict(line.facts)
        if line.kind == "served":
            facts |= {"weigh": "bytes", "weight": facts["queries"] / 10}
            for name in ("actual", "never", "previous"):
                facts[name] = None if facts[name] is None else [cost / 10 for cost in facts[name]]
            facts["states"] = {state: cost / 10 for state, cost in facts["states"].items()}
        if line.kind == "decision":
            facts |= {"weigh": "bytes", "weight": 0.1, "costs": {s: c / 10 for s, c in facts["costs"].items()}}
        return replace(line, facts=facts)

    return [*lines[:start], *map(light, lines[start:])]


@pytest.mark.parametrize("batch", [False, True])
def test_a_query_weighs_what_its_columns_take(batch: bool) -> None:
    asked = [("a",), ("a", "b"), ("a", "b", "c"), (), ("a", "gone"), ("a",)]
    queries = [
        QueryRecord(str(n), 0, "import", n, "finished", "u", TRUE, Exactness.EXACT, columns=columns)
        for n, columns in enumerate(asked)
    ]
    found = weights_of(QueryBatch.of(queries) if batch else queries, SIZES)
    assert found is not None
    assert found.tolist() == pytest.approx([0.1, 0.4, 1, 1, 1, 0.1])
    assert weights_of(queries, None) is None
    assert np.array_equal(weights_of(queries, {}), np.ones(6))  # type: ignore[arg-type]


def test_alpha_is_counted_in_the_scans_that_costs_are_counted_in() -> None:
    measured = LedgerLine("commit", START, "r", {"action": "layout", "seconds": 100.0, "scan_seconds": 2.0})
    shared = replace(measured, facts={**measured.facts, "scan_share": 0.08})
    assert alpha_of(0, [measured, shared]).value == 50
    assert str(alpha_of(0, [shared], "bytes")) == "4 scans of all columns (measured from 1 rewrite, last 2026-11-02)"
    # A rewrite of before says nothing of the bytes that it scanned.
    assert (alpha_of(0, [measured], "bytes").value, alpha_of(0, []).value) == (3, 80)
    assert alpha_of(7, [shared], "bytes").value == 7


def test_the_account_begins_anew_where_costs_are_counted_otherwise() -> None:
    rows, lines = week(), in_bytes(week(), 3)
    whole, found = account_of(rows), account_of(lines)
    served = [line.facts for line in lines if line.kind == "served"][3:]
    assert (whole.weigh, found.weigh) == ("rows", "bytes")
    assert found.queries == sum(facts["queries"] for facts in served) < whole.queries
    assert found.query_cost == pytest.approx(sum(sum(facts["actual"]) for facts in served))
    assert found.rewrite_cost == pytest.approx(20.8)  # of the fold and the second layout
    assert [stay.layout_id for stay in found.timeline] == [BY_DAY, BY_SHOP]
    assert found.timeline[0].since is not None
    assert found.timeline[0].since >= START
    assert [one.layout_id for one in receipts_of(lines)] == [BY_SHOP]
    assert found.to_json()["weigh"] == "bytes"
    # Nothing has moved since: the layout is the one that was there.
    assert [stay.layout_id for stay in account_of(in_bytes(week(), 6)).timeline] == [BY_SHOP]


def test_explain_tells_what_a_scan_is() -> None:
    told = explain(in_bytes(week(), 0))
    assert (told.weigh, told.weight) == ("bytes", 0.1)
    by_shop = next(one for one in told.candidates if one.layout_id == BY_SHOP)
    assert by_shop.skips == pytest.approx(0.92)
    words = " ".join(told.sentences)
    assert "take 10.0% of the table's bytes, and that is what a full scan by it costs" in words
    assert "Alpha is 20 scans of all columns" in words
    assert "Bytes count" not in " ".join(explain(week()).sentences)


def test_a_state_of_an_earlier_release_counts_rows(tmp_path: Path) -> None:
    states = StateStore(LocalStore(str(tmp_path)), "t")
    states.save(State(1, queries=3))
    file = tmp_path / "t/state/0000000001.json"
    outer = json.loads(file.read_text())
    body = json.loads(outer["body"])
    assert body.pop("weigh") == "rows"
    text = json.dumps(body)
    file.write_text(json.dumps({**outer, "body": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}))
    assert states.load() == (State(1, queries=3, weigh="rows"), [])
