"""A ledger whose facts are not what they should be: what people are shown leaves them out, and never fails."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from ledger_week import keep, week

from oreo_lakehouse.layouts.blocks import Blocks
from oreo_lakehouse.maintenance.account import account
from oreo_lakehouse.maintenance.alpha import alpha_of
from oreo_lakehouse.maintenance.explaining import decisions, explain
from oreo_lakehouse.maintenance.ledger import LedgerLine
from oreo_lakehouse.maintenance.receipts import receipts
from oreo_lakehouse.maintenance.status import TableStatus
from oreo_lakehouse.maintenance.story import read_story
from oreo_lakehouse.report.page import report_page
from oreo_lakehouse.report.telling import show_explanation, show_ledger
from oreo_lakehouse.store import LocalStore

WRONG: list[Any] = [
    *(None, True, 0, -1, 1 << 200, -(10**300), 1e308, -1e308, float("nan"), float("inf"), "", "x", "9" * 50),
    *([], {}, [[]], [None], [1e308] * 6, [1 << 80] * 6, {"initial": None}, {"initial": 1e300}, [1, "a", None]),
    *("0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59-12:00", "2026-11-03T00:00:00", "2026-11-03"),
]
NO_BLOCKS = Blocks(np.zeros(0, np.int64), {})


def places(facts: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where in a line's facts something stands, the first of a list for all of it."""
    for key in facts if isinstance(facts, dict) else range(min(1, len(facts))):
        yield (*path, key)
        if isinstance(facts[key], dict | list):
            yield from places(facts[key], (*path, key))


def with_wrong(facts: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    out = copy.deepcopy(facts)
    node: Any = out
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return out


@pytest.mark.parametrize("kind", ["decision", "event", "served", "commit"])
def test_whatever_stands_in_a_line_everything_can_be_shown(kind: str) -> None:
    good = week()
    at = max(place for place, line in enumerate(good) if line.kind == kind)
    line = good[at]
    tried = 0
    for path in places(line.facts):
        for value in WRONG:
            wrong = LedgerLine(line.kind, line.time, line.run, with_wrong(line.facts, path, value))
            lines = [*good[:at], wrong, *good[at + 1 :]]
            try:
                shown(lines, pictures=tried % 10 == 0)
            except Exception as error:
                raise AssertionError(f"{kind} {path} = {value!r}: {error!r}") from error
            tried += 1
    assert tried > 100


def shown(lines: list[LedgerLine], pictures: bool) -> None:
    """All that commands read from a ledger."""
    story = read_story(lines)
    spent, paid = account(story), receipts(story)
    explained = [explain(lines, line.run) for line in decisions(lines)[-1:]]
    alpha_of(0, lines)
    spent.to_json()
    [one.to_json() for one in (*paid, *explained)]
    if not pictures:
        return
    show_ledger("t", spent, paid)
    for one in explained:
        show_explanation("t", one)
    table = TableStatus("t", "delta", "u", "/t", 1, 0, 0, 0, None, None, None, None, 0, 0, story.decisions[-1], "/s")
    report_page(table, NO_BLOCKS, lines)


def test_a_line_without_a_moment_is_passed_over(tmp_path: Any) -> None:
    """Of years that nothing can be added to, as of none; without a zone, it is UTC."""
    store, lines = LocalStore(str(tmp_path)), week()[:1]
    told = ["0001-01-01T00:00:00+00:00", "9999-12-31T00:00:00+00:00", "x", "2026-11-03T00:00:00"]
    ledger = keep(store, "u", lines)
    for number, text in enumerate(told):
        line = f'{{"kind":"decision","time":"{text}","run":"r{number}","facts":{{}}}}\n'
        assert store.create(f"u/ledger/20261104T000000000000-r{number}-00.jsonl", line.encode())
    assert [line.time for line in ledger.lines()] == [lines[0].time, datetime(2026, 11, 3, tzinfo=UTC)]
