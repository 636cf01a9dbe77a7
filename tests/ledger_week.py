"""A made-up week in the life of a table, as the lines of its ledger: two layouts, a fold, a held-back move."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from oreo_lakehouse.maintenance.ledger import Ledger, LedgerLine
from oreo_lakehouse.store import LocalStore

START = datetime(2026, 11, 2, 3, 0, tzinfo=UTC)
ALPHA = 20.0
EVERY = 20
BY_DAY, BY_SHOP = "sort-0aa1", "qdtree-7bb2"
WORDS = {BY_DAY: "sorted by day: 40 blocks", BY_SHOP: "qd-tree on shop, day: 40 blocks"}
COSTS = {  # of a query of the first and the second half of the week
    "initial": (0.95, 0.90),
    BY_DAY: (0.12, 0.70),
    BY_SHOP: (0.40, 0.08),
}


def run_id(number: int) -> str:
    return f"{number:02x}" * 16


def sums(costs: np.ndarray) -> list[float]:
    return [float(costs[i : i + EVERY].sum()) for i in range(0, len(costs), EVERY)]


class Week:
    """Lines of runs, each at its own time."""

    def __init__(self, seed: int = 5) -> None:
        self.draw = np.random.default_rng(seed)
        self.lines: list[LedgerLine] = []
        self.live, self.before = "initial", None
        self.known = ["initial"]
        self.number = 0

    def day(self, half: int, queries: int) -> dict[str, Any]:
        """A day's queries as the run after it served them."""
        self.number += 1
        costs = {state: np.clip(self.draw.normal(COSTS[state][half], 0.03, queries), 0, 1) for state in COSTS}
        noon = START + timedelta(days=self.number - 1)
        return {
            "queries": queries,
            "first": noon.isoformat(),
            "last": (noon + timedelta(hours=20)).isoformat(),
            "layout": self.live,
            "every": EVERY,
            "actual": sums(costs[self.live]),
            "never": sums(costs["initial"]),
            "previous": None if self.before is None else sums(costs[self.before]),
            "states": {state: float(costs[state].sum()) for state in self.known},
        }

    def decision(self, decision: str, half: int, target: str | None = None, **more: Any) -> dict[str, Any]:
        return {
            "decision": decision,
            "mode": "native",
            "reason": f"a recent query reads {COSTS[self.live][half]:.1%} of the table <now>",
            "version": self.number,
            "current": self.live,
            "queries": 120,
            "target": target,
            "current_cost": COSTS[self.live][half],
            "target_cost": COSTS[target or self.live][half],
            "alpha": ALPHA,
            "alpha_source": "measured from 3 rewrites",
            "phase": 2,
            "counters": dict.fromkeys(self.known, 3.5),
            "costs": {state: COSTS[state][half] for state in self.known},
            "layouts": {"initial": "as its writers left it"} | {s: WORDS[s] for s in self.known if s in WORDS},
            "regret": {state: 4.0 for state in self.known if state != self.live},
            "bound": {"paid": 30.0 * self.number, "comparator": 40.0 * self.number, "limit": 50.0 * self.number + 101},
            "hot": [{"shape": "day BETWEEN ? AND ?", "queries": 90, "cost_now": 0.95, "cost_target": 0.1}],
            "shadow": False,
            **more,
        }

    def commit(self, layout: str, half: int, action: str = "layout", alpha: float = ALPHA) -> dict[str, Any]:
        facts = {
            "action": action,
            "layout_id": layout,
            "layout": WORDS[layout],
            "version": self.number + 1,
            "base_version": self.number,
            "rows": 1_000_000,
            "checksum": "x",
            "files_before": 40,
            "files_after": 40,
            "bytes": 5 << 30,
            "bytes_before": 5 << 30,
            "seconds": 71.5,
            "scan_seconds": 1.2,
            "alpha": alpha,
            "cost_before": COSTS[self.live][half],
            "cost_predicted": COSTS[layout][half],
            "cost_exact": COSTS[layout][half],
            "cost_realised": COSTS[layout][half],
            "queries_before": 120 * self.number,
        }
        if action != "fold":
            self.live, self.before = layout, self.live
        return facts

    def run(self, *facts: tuple[str, dict[str, Any]]) -> None:
        time = START + timedelta(days=self.number)
        self.lines += [LedgerLine(kind, time, run_id(self.number), fact) for kind, fact in facts]


def week(seed: int = 5) -> list[LedgerLine]:
    """Day 1: a layout for the first kind of queries. Day 4: their kind changes; a move is held back, then made."""
    story = Week(seed)
    story.known.append(BY_DAY)
    served = story.day(0, 130)
    admit = {
        "kind": "admit",
        "state": BY_DAY,
        "reason": "far from every layout",
        "phase": 1,
        "counters": {},
        "query": 90,
    }
    story.run(
        ("event", admit),
        ("decision", story.decision("move", 0, BY_DAY)),
        ("served", served),
        ("commit", story.commit(BY_DAY, 0)),
    )
    for _ in range(2):
        served = story.day(0, 120)
        story.run(("decision", story.decision("stay", 0)), ("served", served))
    served = story.day(0, 60)
    story.run(
        ("decision", story.decision("fold", 0)), ("served", served), ("commit", story.commit(BY_DAY, 0, "fold", 0.8))
    )
    story.known.append(BY_SHOP)
    served = story.day(1, 120)
    held = story.decision("stay", 1, BY_SHOP, held="the budget of 1 GB is less than the 5 GB to write")
    story.run(("decision", held), ("served", served))
    served = story.day(1, 120)
    looked = {"cost_promised": 0.08, "cost_exact": 0.09}
    story.run(
        ("decision", story.decision("move", 1, BY_SHOP, looked=looked)),
        ("served", served),
        ("commit", story.commit(BY_SHOP, 1)),
    )
    served = story.day(1, 110)
    story.run(("decision", story.decision("stay", 1)), ("served", served))
    return story.lines


def keep(store: LocalStore, uuid: str, lines: list[LedgerLine]) -> Ledger:
    """Write lines as runs do, a file a run, with their own times."""
    for number, run in enumerate(dict.fromkeys(line.run for line in lines)):
        text = "".join(
            json.dumps({"kind": x.kind, "time": x.time.isoformat(), "run": x.run, "facts": x.facts}) + "\n"
            for x in lines
            if x.run == run
        )
        time = next(line.time for line in lines if line.run == run)
        assert store.create(f"{uuid}/ledger/{time:%Y%m%dT%H%M%S%f}-{run}-{number:02d}.jsonl", text.encode())
    return Ledger(store, uuid)
