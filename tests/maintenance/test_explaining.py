"""Explanations: in words and numbers from the ledger's lines alone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from ledger_week import ALPHA, BY_DAY, BY_SHOP, START, WORDS, run_id, week

from oreo_lakehouse.errors import LedgerError
from oreo_lakehouse.maintenance.explaining import explain
from oreo_lakehouse.maintenance.ledger import LedgerLine


def test_a_move_is_explained_by_what_it_would_save() -> None:
    found = explain(week(), run_id(1)[:5])
    assert (found.id, found.decision, found.target) == (run_id(1), "move", WORDS[BY_DAY])
    assert [(one.layout_id, one.is_current, one.is_target) for one in found.candidates] == [
        (BY_DAY, False, True),
        ("initial", True, False),
    ]
    assert found.candidates[0].skips == pytest.approx(0.88)
    assert found.candidates[0].regret == 4.0
    assert (found.alpha, found.alpha_source, found.phase) == (ALPHA, "measured from 3 rewrites", 2)
    assert found.hot[0].shape == "day BETWEEN ? AND ?"
    assert [(event.kind, event.layout, event.query) for event in found.events] == [("admit", WORDS[BY_DAY], 90)]
    words = " ".join(found.sentences)
    assert "moved to sorted by day" in words
    assert "reads 95.0% of the table now and would read 12.0%" in words
    assert "pays after 24 queries" in words  # 20 / 0.83
    assert "20 full scans (measured from 3 rewrites)" in words
    assert (found.mode, "(native mode)" in words) == ("native", True)
    assert "real statistics the same queries read 12.0%" in words


def test_costs_that_rest_on_pruning_say_so() -> None:
    facts = {"decision": "stay", "reason": "it is cheapest", "mode": "bid"}
    found = explain([LedgerLine("decision", START, "r", facts)])
    assert any("in sessions without it read more" in sentence for sentence in found.sentences)


def test_a_move_that_was_held_back_says_why() -> None:
    found = explain(week(), run_id(5))
    assert (found.decision, found.target) == ("stay", WORDS[BY_SHOP])
    assert any("held back: the budget of 1 GB" in sentence for sentence in found.sentences)


def test_a_look_tells_what_it_found() -> None:
    found = explain(week(), run_id(6))
    assert (found.promised_cost, found.exact_cost) == (0.08, 0.09)
    assert any("found that a query would read 9.0%" in sentence for sentence in found.sentences)


def test_the_last_one_is_the_default() -> None:
    assert explain(week()).id == run_id(7)


def test_an_unknown_id_gets_a_list_to_choose_from() -> None:
    with pytest.raises(LedgerError, match=r"no decision 'zz' .* 07070707 \(2026-11-09 03:00, stay\); .*, and 2 older"):
        explain(week(), "zz", "db.t")
    with pytest.raises(LedgerError, match="is the beginning of 7 decisions"):
        explain(week(), "0")
    with pytest.raises(LedgerError, match="has no decision yet"):
        explain([])
    with pytest.raises(LedgerError, match="there is no decision ''"):
        explain(week(), "")


def test_a_bare_line_is_explained_by_what_it_has() -> None:
    line = LedgerLine("decision", START + timedelta(days=1), "r", {"decision": "stay", "reason": "no new queries"})
    found = explain([line])
    assert found.sentences == ("It stayed as its writers left it: no new queries.",)
    assert found.candidates == ()
    assert found.to_json()["alpha"] is None
