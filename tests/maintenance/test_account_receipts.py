"""Account and receipts: every number is right against a plain recount, on a made-up week and on random ledgers."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_week import ALPHA, BY_DAY, BY_SHOP, START, Week, keep, week

from oreo_lakehouse.maintenance.account import account_of
from oreo_lakehouse.maintenance.ledger import LedgerLine
from oreo_lakehouse.maintenance.receipts import LEAST_QUERIES, receipts_of
from oreo_lakehouse.store import LocalStore


def sum_of(lines: list[LedgerLine], name: str) -> float:
    return sum(sum(line.facts[name]) for line in lines if line.kind == "served")


def test_the_week_adds_up(tmp_path: Path) -> None:
    lines = keep(LocalStore(str(tmp_path)), "t", week()).lines()
    found = account_of(lines)
    assert found.queries == 130 + 2 * 120 + 60 + 2 * 120 + 110
    assert found.query_cost == pytest.approx(sum_of(lines, "actual"))
    assert found.rewrite_cost == pytest.approx(2 * ALPHA + 0.8)
    assert (found.rewrites, found.uncharged) == (3, 0)
    assert found.saved == pytest.approx(sum_of(lines, "never") - sum_of(lines, "actual") - 2 * ALPHA - 0.8)
    assert found.saved > 0
    assert found.bound is not None
    assert found.bound.room == pytest.approx(50.0 * 7 + 101 - 30.0 * 7)
    best = found.best_fixed
    assert best is not None
    assert best.layout_id == BY_DAY  # the other one is known from the fifth day only
    assert best.query_cost == pytest.approx(sum(x.facts["states"][BY_DAY] for x in lines if x.kind == "served"))
    assert best.actual_cost == pytest.approx(found.spent)
    later = next(one for one in found.fixed if one.layout_id == BY_SHOP)
    assert (later.is_complete, later.first_query, later.queries) == (False, 431, 350)
    served = [line.facts for line in lines if line.kind == "served"][4:]
    assert later.actual_cost == pytest.approx(sum(sum(facts["actual"]) for facts in served) + ALPHA + 0.8)


def test_a_layout_that_others_undid_and_that_is_made_again_is_not_told_as_replaced() -> None:
    story = Week()
    for _ in range(2):
        story.known = ["initial", BY_DAY]
        served = story.day(0, 20)
        story.run(
            ("decision", story.decision("move", 0, BY_DAY)), ("served", served), ("commit", story.commit(BY_DAY, 0))
        )
    first, second = receipts_of(story.lines)
    assert first.verdict == "undone by others and made again before it paid for itself"
    assert second.verdict == "no query has met it yet"


def test_the_timeline_covers_every_query_once() -> None:
    found = account_of(week())
    assert [(stay.layout_id, stay.action, stay.first_query, stay.queries) for stay in found.timeline] == [
        ("initial", "start", 1, 130),
        (BY_DAY, "layout", 131, 540),
        (BY_SHOP, "layout", 671, 110),
    ]
    assert found.timeline[1].folds == 1
    assert found.timeline[-1].until is None


def test_receipts_of_the_week() -> None:
    lines = week()
    first, second = receipts_of(lines)
    assert (first.layout_id, first.after_query, first.predicted_saving) == (BY_DAY, 130, pytest.approx(0.83))
    assert first.queries == 540
    assert first.paid_at_query == 130 + 40  # 20 queries save 16.6, 40 save 33
    assert first.paid_after == 40
    assert first.paid_time == START + timedelta(days=1, hours=20 * 40 / 120)
    assert first.ended == BY_SHOP
    served = [x.facts for x in lines if x.kind == "served" and x.facts["layout"] == BY_DAY]
    assert first.saved == pytest.approx(sum(sum(f["previous"]) - sum(f["actual"]) for f in served))
    assert first.drifts  # the queries changed under it: 0.55 a query instead of 0.83
    assert (second.layout_id, second.paid_after, second.ended) == (BY_SHOP, 40, None)
    assert not second.drifts
    assert "after 40 queries" in second.verdict


def lines_of(*runs: list[tuple[str, dict[str, Any]]]) -> list[LedgerLine]:
    return [
        LedgerLine(kind, START + timedelta(hours=number), f"run{number}", facts)
        for number, run in enumerate(runs)
        for kind, facts in run
    ]


def served(layout: str, actual: list[float], never: list[float], previous: list[float] | None, every: int = 10) -> Any:
    facts = {"queries": every * len(actual), "layout": layout, "every": every}
    return ("served", facts | {"actual": actual, "never": never, "previous": previous, "states": {}})


def commit(layout: str, version: int, **more: Any) -> Any:
    return ("commit", {"action": "layout", "layout_id": layout, "layout": layout, "version": version, **more})


def test_a_rollback_leads_back_and_ends_a_receipt_unpaid() -> None:
    lines = lines_of(
        [commit("a", 1, alpha=5.0)],
        [served("a", [1.0], [9.0], [9.0]), commit("b", 2, alpha=50.0, cost_before=0.1, cost_predicted=0.05)],
        [served("b", [2.0], [9.0], [1.0])],
        [("rollback", {"layout_id": "b", "undone_version": 2, "version": 3, "alpha": 0})],
        [served("a", [1.0], [9.0], [9.0])],
    )
    found, (a, b) = account_of(lines), receipts_of(lines)
    assert [stay.layout_id for stay in found.timeline] == ["initial", "a", "b", "a"]
    assert (a.paid_at_query, a.queries, a.ended) == (10, 10, "b")
    assert (b.paid_at_query, b.ended, b.realised_saving) == (None, "rollback", pytest.approx(-0.1))
    assert b.verdict == "rolled back before it paid for itself"
    assert found.rewrite_cost == 55.0


def test_lines_of_an_older_release_show_what_is_there() -> None:
    lines = lines_of(
        [("decision", {"decision": "move", "reason": "r", "alpha": 7.0}), commit("a", 1)],
        [commit("b", 2)],
        [("repair", {"what": "x", "layout_id": "c", "version": 3})],
        [("served", {"queries": 5}), ("served", {"queries": 5, "actual": [1], "never": [1, 2]}), ("decision", {})],
    )
    found, (a, b) = account_of(lines), receipts_of(lines)
    assert (found.queries, found.rewrite_cost, found.uncharged, found.best_fixed) == (0, 7.0, 2, None)
    assert (a.alpha, b.alpha, b.verdict) == (7.0, None, "its cost was not recorded")
    assert [stay.layout_id for stay in found.timeline] == ["initial", "a", "b", "c"]
    assert account_of([]).queries == 0


@pytest.mark.parametrize(
    ("realised", "queries", "flag"), [(0.41, 20, False), (0.39, 20, True), (0.61, 20, True), (0.1, 10, False)]
)
def test_drift_speaks_beyond_a_fifth_and_not_too_early(realised: float, queries: int, flag: bool) -> None:
    assert LEAST_QUERIES == 20
    lines = lines_of(
        [commit("a", 1, alpha=5.0, cost_before=0.9, cost_predicted=0.4)],
        [served("a", [(0.9 - realised) * queries], [0.9 * queries], [0.9 * queries], every=queries)],
    )
    (receipt,) = receipts_of(lines)
    assert receipt.drifts is flag


costs = st.floats(0, 1)
buckets = st.lists(st.tuples(costs, costs, costs), min_size=1, max_size=6)
histories = st.lists(
    st.tuples(buckets, st.sampled_from(["stay", "a", "b", "fold", "back"]), st.floats(0.01, 8)), max_size=8
)


@settings(max_examples=150, deadline=None)
@given(histories)
def test_any_history_adds_up_and_no_receipt_pays_too_early(history: list[Any]) -> None:
    runs: list[list[Any]] = []
    stack, live, spent, alphas = [("initial", -1)], "initial", 0.0, 0.0
    for number, (found, action, alpha) in enumerate(history):
        actual, never, previous = ([4 * bucket[i] for bucket in found] for i in range(3))
        spent += sum(actual)
        run = [served(live, actual, never, previous if len(stack) > 1 else None, every=4)]
        if action in ("a", "b"):
            live = action
            stack.append((live, number))
            run.append(commit(live, number, alpha=alpha))
            alphas += alpha
        elif action == "fold":
            run.append(("commit", {"action": "fold", "layout_id": live, "version": number, "alpha": alpha}))
            alphas += alpha
        runs.append(run)
        if action == "back" and len(stack) > 1:
            undone, version = stack.pop()
            live = stack[-1][0]
            back = {"layout_id": undone, "undone_version": version, "version": 1000 + number, "alpha": 0}
            runs.append([("rollback", back)])
    lines = lines_of(*runs)
    found = account_of(lines)
    assert found.spent == pytest.approx(spent + alphas)
    assert found.actual_curve[-1] == (found.queries, pytest.approx(found.spent))
    assert found.never_curve[-1] == (found.queries, pytest.approx(found.never_cost))
    assert sum(stay.queries for stay in found.timeline) == found.queries
    assert found.timeline[-1].layout_id == live
    assert all(
        a[0] <= b[0] and a[1] <= b[1] + 1e-9 for a, b in zip(found.actual_curve, found.actual_curve[1:], strict=False)
    )
    for receipt in receipts_of(lines):
        if receipt.paid_after is not None:
            assert receipt.alpha is not None
            upto = [s for s in lines if s.kind == "served"]
            saved, seen, before = 0.0, 0, 0
            for line in upto:
                if before >= receipt.after_query and seen < receipt.paid_after:
                    pairs = zip(line.facts["previous"], line.facts["actual"], strict=True)
                    for previous, actual in pairs:
                        if seen < receipt.paid_after:
                            assert saved < receipt.alpha  # not paid before that bucket
                            saved, seen = saved + previous - actual, seen + 4
                before += line.facts["queries"]
            assert saved >= receipt.alpha
