"""The log of regimes: how long the workload stays the same, and what each past regime asked for.

A regime is the time between two changes. From the lengths of past ones follows how long the present one may still last;
from a few of their queries, what a layout would be worth if such a regime came back.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

_MOST = 200
_SHORTEST = 10
_QUERIES = 32
"""Queries that are remembered of each regime."""
_MEMORY = 10_000.0
"""Queries after which a regime counts for 1/e of a fresh one."""
_PRIOR_LENGTH, _PRIOR_WEIGHT = 500.0, 0.5
_DOUBT = 4.0
"""Past regimes at which half of a tail value is believed."""
_STAY_WEIGHT = 0.3
"""Weight of the belief that a regime lasts as long again as it has lasted."""


@dataclass(frozen=True)
class Regime:
    """A finished regime: its length, when it ended (in queries seen), and some of its queries."""

    length: int
    end: int
    queries: tuple[int, ...]
    kind: str = ""
    """The kinds of query that made up a tenth of it or more."""


class RegimeLog:
    """Past regimes, and the present one's age and sample of queries."""

    def __init__(self) -> None:
        self.past: list[Regime] = []
        self.age = 0
        self.seen = 0
        self._kinds: Counter[str] = Counter()
        self._present: list[tuple[int, int]] = []
        """(age at which it came, query)."""

    def observe(self, query: int, kind: str = "") -> None:
        self.age += 1
        self._kinds[kind] += 1
        self.seen += 1
        self._present.append((self.age, query))
        if len(self._present) >= 2 * _QUERIES:
            self._present = self._present[::2] if self.age < 64 * _QUERIES else self._present[_QUERIES:]

    def change(self, since: int) -> None:
        """The workload changed `since` queries ago."""
        length = self.age - since
        new = [(age - length, query) for age, query in self._present if age > length]
        old = [query for age, query in self._present if age <= length]
        if length >= _SHORTEST and old:
            at = np.linspace(0, len(old) - 1, min(_QUERIES, len(old))).astype(int)
            kinds = sorted(kind for kind, count in self._kinds.items() if count >= 0.1 * self.age)
            regime = Regime(length, self.seen - since, tuple(old[i] for i in at), "; ".join(kinds))
            self.past = [*self.past, regime][-_MOST:]
        self.age, self._present = since, new
        self._kinds.clear()

    def undo(self) -> None:
        """The last change was none: its regime goes on."""
        if self.past and self.past[-1].end == self.seen - self.age:
            last = self.past.pop()
            self.age += last.length
            present = [(age + last.length, query) for age, query in self._present]
            self._present = [*((0, query) for query in last.queries), *present][-2 * _QUERIES + 1 :]

    def weights(self) -> np.ndarray:
        """How much each past regime counts."""
        return np.exp([-(self.seen - regime.end) / _MEMORY for regime in self.past])

    def mean_length(self) -> float:
        weights, lengths = self.weights(), np.array([regime.length for regime in self.past])
        prior = _PRIOR_LENGTH * _PRIOR_WEIGHT
        return float((prior + weights @ lengths) / (_PRIOR_WEIGHT + weights.sum())) if self.past else _PRIOR_LENGTH

    def residual_life(self) -> float:
        """How many more queries the present regime is expected to last."""
        weights, lengths = self.weights(), np.array([float(regime.length) for regime in self.past])
        longer = lengths > self.age if self.past else np.zeros(0, np.bool_)
        rest = _STAY_WEIGHT * max(self.mean_length(), float(self.age))
        total = _STAY_WEIGHT
        if longer.any():
            rest += float(weights[longer] @ (lengths[longer] - self.age))
            total += float(weights[longer].sum())
        return rest / total

    def kept(self) -> set[int]:
        """Positions in the stream that must be remembered."""
        return {*(query for _, query in self._present), *(query for regime in self.past for query in regime.queries)}

    def renumber(self, numbers: dict[int, int]) -> None:
        self._present = [(age, numbers[query]) for age, query in self._present]
        self.past = [replace(r, queries=tuple(numbers[q] for q in r.queries)) for r in self.past]

    def to_json(self) -> dict[str, Any]:
        return {
            "past": [[r.length, r.end, list(r.queries), r.kind] for r in self.past],
            "age": self.age,
            "seen": self.seen,
            "kinds": dict(self._kinds),
            "present": [list(pair) for pair in self._present],
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> RegimeLog:
        out = cls()
        out.past = [
            Regime(int(length), int(end), tuple(int(query) for query in queries), str(kind))
            for length, end, queries, kind in document["past"]
        ]
        out._kinds = Counter({str(kind): int(count) for kind, count in document["kinds"].items()})
        out.age, out.seen = int(document["age"]), int(document["seen"])
        out._present = [(int(age), int(query)) for age, query in document["present"]]
        return out


def tail_value(
    log: RegimeLog, costs: np.ndarray, alpha: float, horizon: float = 4000.0, late: float = 15.0
) -> np.ndarray:
    """What being in each state when the present regime ends is worth, relative to the best of them.

    Iterates over the regimes to come: each is one of the past ones, met in proportion to its weight, or (with half the
    chance that Good and Turing give it) one never seen, for which no state was made: there all cost the same. In each,
    either stay, or pay alpha after noticing and move. States were made for the past regimes and look too good on a few
    of them, so n regimes are believed n/(n + 4).

    Args:
        log: the past regimes.
        costs: (states x regimes), mean service costs.
        alpha: the movement cost.
        horizon: how many queries ahead to look.
        late: queries served before a change is noticed and acted on.
    """
    states = len(costs)
    if len(log.past) < 2 or states == 0:
        return np.zeros(states)
    weights = log.weights()
    share = weights / weights.sum()
    lengths = np.array([float(regime.length) for regime in log.past])
    mean_length = float(share @ lengths)
    usual, least = float((costs @ share).mean()), float(share @ costs.min(axis=0))
    kinds = Counter(regime.kind for regime in log.past)
    once = np.array([kinds[regime.kind] == 1 for regime in log.past])
    unseen = 0.5 * (float(weights[once].sum()) + 0.5) / (float(weights.sum()) + 0.5)
    rounds = min(60, int(min(horizon, log.seen) / mean_length) + 1)
    value = np.zeros(states)
    wait = np.minimum(late, lengths)
    improved = max(0.0, mean_length - 2 * late) * (usual - least)
    for _ in range(rounds):
        stay = lengths * costs + value[:, None]
        arrive = ((lengths - wait) * costs + value[:, None]).min(axis=0)
        known = np.minimum(stay, alpha + wait * costs + arrive) @ share
        new = np.minimum(value, alpha - improved + value.max())
        value = (1 - unseen) * known + unseen * new
        value -= value.min()
        if not math.isfinite(float(value.sum())):
            return np.zeros(states)
    return value * (len(log.past) / (len(log.past) + _DOUBT))
