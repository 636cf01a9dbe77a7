"""What the peers' streams cost: sums by player, a table for people, JSON for machines, a curve for the picture."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from measuring import Measured, Spread, told
from peerstreams import Stream
from players import Player


class Tally:
    """One player's seconds and bytes, query by query."""

    def __init__(self, player: Player, queries: int, repeat: int) -> None:
        self.player = player
        self.seconds = np.zeros(queries)
        self.bytes_read = 0.0
        self._by_repeat = np.zeros(repeat)

    def add(self, start: int, end: int, picked: int, runs: Sequence[Measured]) -> None:
        """One of `picked` queries that stand for all those from `start` to `end`."""
        self.seconds[start:end] += statistics.median(run.seconds for run in runs) / picked
        weight = (end - start) / picked
        self.bytes_read += weight * statistics.median(run.read_mb for run in runs) * 1e6
        self._by_repeat += weight * np.array([run.seconds for run in runs])

    def cumulative(self) -> np.ndarray:
        """Seconds of queries, rewrites and deciding up to each query."""
        out = self.seconds.copy()
        for upkeep in self.player.done:
            out[upkeep.at] += upkeep.rewrite_seconds + upkeep.deciding_seconds
        return np.cumsum(out)

    def to_json(self) -> dict[str, Any]:
        done = self.player.done
        spread = Spread.of([float(seconds) for seconds in self._by_repeat])
        query, rewrite = float(self.seconds.sum()), sum(upkeep.rewrite_seconds for upkeep in done)
        deciding = sum(upkeep.deciding_seconds for upkeep in done)
        return {
            "told_the_future": self.player.told,
            "query_seconds": round(query, 2),
            "query_seconds_low": round(spread.low, 2),
            "query_seconds_high": round(spread.high, 2),
            "rewrite_seconds": round(rewrite, 2),
            "deciding_seconds": round(deciding, 2),
            "total_seconds": round(query + rewrite + deciding, 2),
            "bytes_read": round(self.bytes_read),
            "bytes_rewritten": sum(upkeep.bytes_rewritten for upkeep in done),
            "bytes_held": self.player.copy.held(),
            "moves": sum(upkeep.moved for upkeep in done),
            "upkeep": [{"at": upkeep.at, "moved": upkeep.moved, "what": upkeep.what} for upkeep in done],
        }


def record(stream: Stream, fmt: str, given: argparse.Namespace, tallies: Sequence[Tally]) -> dict[str, Any]:
    """One stream on one format."""
    players = {tally.player.name: tally.to_json() for tally in tallies}
    totals = {name: player["total_seconds"] for name, player in players.items()}
    seers = [totals[name] for name, player in players.items() if player["told_the_future"] and name != "oracle *"]
    return {
        "data": stream.name,
        "format": fmt,
        "rows": given.rows,
        "queries": len(stream.queries),
        "shifts": stream.shifts,
        "every": given.every,
        "repeat": given.repeat,
        "players": players,
        "ratios": {
            name: {
                "never": round(total / totals["never"], 3),
                "the best told once *": round(total / min(seers), 3),
                "the oracle *": round(total / totals["oracle *"], 3),
            }
            for name, total in totals.items()
            if name.startswith("OReO")
        },
    }


def show(found: dict[str, Any]) -> None:
    """The table, and the three ratios that matter of either way to run OReO."""
    told("")
    print(
        f"\n{found['data']} on {found['format']}: {found['rows']:,} rows, {found['queries']:,} queries in "
        f"{len(found['shifts'])} stretches; one in {found['every']} run {found['repeat']} times"
    )
    heads = ("query s (low-high)", "rewrite s", "decide s", "total s", "read GB", "written GB", "held GB", "moves")
    print(f"{'':<15}{heads[0]:>26}" + "".join(f"{head:>11}" for head in heads[1:]))
    for name, player in sorted(found["players"].items(), key=lambda item: item[1]["total_seconds"]):
        span = (
            f"{player['query_seconds']:,.1f} ({player['query_seconds_low']:,.1f}-{player['query_seconds_high']:,.1f})"
        )
        seconds = [player[f"{part}_seconds"] for part in ("rewrite", "deciding", "total")]
        sizes = [player[f"bytes_{part}"] / 1e9 for part in ("read", "rewritten", "held")]
        cells = "".join(f"{value:>11,.1f}" for value in seconds) + "".join(f"{value:>11,.2f}" for value in sizes)
        print(f"{name:<15}{span:>26}{cells}{player['moves']:>11}")
    for name, ratios in found["ratios"].items():
        print(f"{name}: total over that of " + ", of ".join(f"{of} {ratio:.2f}" for of, ratio in ratios.items()))
    sys.stdout.flush()
