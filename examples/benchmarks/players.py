"""Who keeps a table in shape while its queries come: nobody, the formats' own rewrites by a seer, and OReO."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import contenders
from contenders import Copy
from peerstreams import Query, Stream, best_columns

from oreo_lakehouse.config import Config
from oreo_lakehouse.layouts.sample import Sample
from oreo_lakehouse.maintenance.calibrate import calibrate
from oreo_lakehouse.maintenance.dossier import open_dossier
from oreo_lakehouse.maintenance.intake import import_queries
from oreo_lakehouse.maintenance.maintain import maintain

_START = datetime.now(UTC) - timedelta(days=30)


@dataclass
class Upkeep:
    """What was done to a table before some query."""

    at: int
    rewrite_seconds: float = 0.0
    deciding_seconds: float = 0.0
    bytes_rewritten: int = 0
    moved: bool = False
    what: str = ""


@dataclass
class Player:
    """Nobody touches the table: the player that all others must beat."""

    name: str
    copy: Copy
    told: bool = False
    """Whether it knows the queries that will come."""
    pruning: bool = False
    done: list[Upkeep] = field(default_factory=list)

    def before(self, at: int) -> None:
        """Keep the table in shape for the queries from `at` on."""

    def _rewriting(self, at: int, what: str, work: Callable[[], Any]) -> None:
        before = set(self.copy.table.blocks().names)
        started = time.perf_counter()
        work()
        seconds = time.perf_counter() - started
        self.done.append(Upkeep(at, seconds, 0.0, self._added(before), True, what))

    def _added(self, before: set[str]) -> int:
        blocks = self.copy.table.blocks()
        return sum(int(size) for name, size in zip(blocks.names, blocks.sizes, strict=True) if name not in before)


@dataclass
class Seer(Player):
    """Rewrites at the given queries by the best columns for the stretch that follows each."""

    stream: Stream | None = None
    blocks: int = 16
    kind: str = "zorder"
    stretches: Sequence[int] = (0,)
    columns: tuple[str, ...] = ()

    def before(self, at: int) -> None:
        if at not in self.stretches or self.stream is None:
            return
        wanted = self.chosen(at)
        if wanted != self.columns or at == 0:
            self.columns = wanted
            work = {
                "zorder": lambda: contenders.zorder(self.copy, wanted, self.blocks),
                "sort": lambda: contenders.sort(self.copy, wanted, self.blocks),
                "liquid": lambda: self._liquid(wanted),
            }[self.kind]
            self._rewriting(at, ", ".join(wanted), work)

    def chosen(self, at: int) -> tuple[str, ...]:
        """The columns for the stretch from `at` on; finding them takes no time that counts."""
        assert self.stream is not None
        later = [start for start in self.stretches if start > at]
        queries = self.stream.queries[at : later[0] if later else None]
        table = self.copy.table
        sample = Sample(table.sample(20_000, 1), table.blocks().total_rows)
        return best_columns(sample, queries, self.blocks, "sort" if self.kind == "sort" else "zorder")

    def _liquid(self, columns: Sequence[str]) -> None:
        self.copy.spark.sql(f"ALTER TABLE {self.copy.name} CLUSTER BY ({', '.join(columns)})")
        contenders.liquid(self.copy, self.blocks)


@dataclass
class Oreo(Player):
    """`oreo-maintain` now and then, told only what was asked so far."""

    stream: Stream | None = None
    config: Config | None = None
    folder: Path = Path()
    period: int = 100
    _seen: int = 0

    def before(self, at: int) -> None:
        if at % self.period or self.stream is None or self.config is None:
            return
        spark, name = self.copy.spark, self.copy.name
        before = set(self.copy.table.blocks().names)
        started = time.perf_counter()
        if at == 0:
            if self.config.decide.alpha == 0:
                calibrate(spark, name, self.config)
                self.done.append(Upkeep(at, 0.0, time.perf_counter() - started, what="calibrated"))
            return
        log = self._log(self.stream.queries[self._seen : at], self._seen)
        self._seen = at
        commits = len(self._commits())
        started = time.perf_counter()
        import_queries(spark, name, [str(log)], self.config, time_zone="UTC")
        outcome = maintain(spark, name, self.config)
        seconds = time.perf_counter() - started
        rewriting = min(seconds, sum(self._commits()[commits:]))
        moved = outcome.version_after != outcome.version_before
        what = outcome.plan.layout.describe() if moved and outcome.plan else outcome.reason
        self.done.append(Upkeep(at, rewriting, seconds - rewriting, self._added(before), moved, what))

    def _commits(self) -> list[float]:
        """Seconds of the rewrites so far."""
        lines = open_dossier(self.copy.spark, self.copy.name, self.config).ledger.lines(["commit"])
        return [float(line.facts.get("seconds", 0.0)) for line in lines]

    def _log(self, queries: Sequence[Query], first: int) -> Path:
        file = self.folder / f"{self.copy.name}-{first}.jsonl"
        with file.open("w") as out:
            for number, query in enumerate(queries, first):
                when = (_START + timedelta(seconds=30 * number)).isoformat()
                out.write(json.dumps({"statement_text": query.sql(self.copy.name), "start_time": when}) + "\n")
        return file
