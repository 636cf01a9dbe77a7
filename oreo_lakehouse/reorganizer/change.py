"""Notices that the workload has changed: most of the latest queries are of a kind that was rare before.

A query's kind is its signature: the columns in its predicate, and whether they are bounded from below, from above or
compared by value. Comparing whole distributions instead raises thousands of false alarms on a stationary mix of
templates.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

_LATEST = 10
_BEFORE = 400
_RARE = 0.05
"""A signature is rare below this share of the queries before, or below a quarter of what is usual in a wide mix."""
_SURPRISE = 1e-3
_COMMON = 0.1
"""A kind belongs to a regime from this share of its queries on."""
_CHECK = 40
"""Queries after an alarm at which it is confirmed or taken back."""
_SAME = 0.5
"""Total variation between signatures before and after, below which nothing has changed after all."""


class ChangeDetector:
    """Raises an alarm when more than half of the latest queries are rare, and says later whether it was false."""

    def __init__(self) -> None:
        self.since = 0
        """Queries since the last change."""
        self._now: list[str] = []
        self._before: list[str] = []
        self._length_before = 0

    def observe(self, signature: str) -> str:
        """`change` when the workload changed (`since` says how many queries ago), `undo` when it had not, else ""."""
        self.since += 1
        self._now.append(signature)
        del self._now[:-_BEFORE]
        if self.since == _CHECK and self._before and self._length_before >= 2 * _LATEST:
            counts, before = Counter(self._now), Counter(self._before)
            if _total_variation(counts, before) < _SAME:
                self.since += self._length_before
                self._now = (self._before + self._now)[-_BEFORE:]
                self._before = []
                return "undo"
        earlier, latest = self._now[:-_LATEST], self._now[-_LATEST:]
        if len(earlier) < _LATEST:
            return ""
        shares, total = Counter(earlier), len(earlier)
        usual = sum(count * count for count in shares.values()) / (total * total)
        limit = min(_RARE, usual / 4) * total
        rare = [shares[s] < limit for s in latest]
        # A short past of many kinds leaves many unseen (Good and Turing): rare ones must be surprising, too.
        singles, seldom = (sum(n for n in shares.values() if n <= most) for most in (1, limit))
        chance = min(1.0, (max(singles, seldom) + 0.5) / (total + 1))
        if sum(rare) * 2 <= _LATEST or _at_least(sum(rare), chance) > _SURPRISE:
            return ""
        new = _LATEST - rare.index(True)
        self._before, self._length_before = self._now[:-new], self.since - new
        self._now = self._now[-new:]
        self.since = new
        return "change"

    def kinds(self) -> list[str]:
        """The kinds of query that the present regime is made of."""
        return sorted(kind for kind, count in Counter(self._now).items() if count >= _COMMON * len(self._now))

    def mix(self) -> str:
        """The same as one name."""
        return "; ".join(self.kinds())

    def to_json(self) -> dict[str, Any]:
        return {
            "since": self.since,
            "now": list(self._now),
            "before": list(self._before),
            "length_before": self._length_before,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> ChangeDetector:
        out = cls()
        out.since, out._length_before = int(document["since"]), int(document["length_before"])
        out._now, out._before = [str(s) for s in document["now"]], [str(s) for s in document["before"]]
        return out


def _at_least(hits: int, chance: float) -> float:
    """The probability of so many hits among the latest queries."""
    return sum(math.comb(_LATEST, n) * chance**n * (1 - chance) ** (_LATEST - n) for n in range(hits, _LATEST + 1))


def _total_variation(a: Counter[str], b: Counter[str]) -> float:
    return sum(abs(a[s] / a.total() - b[s] / b.total()) for s in {*a, *b}) / 2
