"""What every step of a run shares: the table's dossier, the settings, the limits, the record and the notices."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from oreo_lakehouse.maintenance.ledgerfacts import number
from oreo_lakehouse.maintenance.outcome import Outcome
from oreo_lakehouse.maintenance.recording import Record
from oreo_lakehouse.maintenance.registry import register

if TYPE_CHECKING:
    from oreo_lakehouse.config import Config
    from oreo_lakehouse.maintenance.alpha import Alpha
    from oreo_lakehouse.maintenance.deciding import Counsel
    from oreo_lakehouse.maintenance.dossier import Dossier
    from oreo_lakehouse.maintenance.evidence import Evidence
    from oreo_lakehouse.maintenance.options import RunOptions
    from oreo_lakehouse.maintenance.progress import Progress
    from oreo_lakehouse.maintenance.state import State
    from oreo_lakehouse.tables.contract import RewritePlan


class Run:
    """One run on one table."""

    def __init__(self, dossier: Dossier, config: Config, options: RunOptions, progress: Progress) -> None:
        self.dossier, self.config, self.options, self.progress = dossier, config, options, progress
        self.record = Record(dossier, config.decide.skipping, dry_run=options.dry_run)
        self.notices: list[str] = []
        self.column_bytes: dict[str, int] | None = None
        """Where bytes count and not rows: what the table's columns take."""
        self._started = time.monotonic()

    @property
    def reads_only(self) -> bool:
        """Whether the table must not be touched."""
        return self.options.dry_run or self.options.shadow

    def settle(self) -> None:
        """What happened since the last run besides queries: a dead run's leftovers, another table, a turned clock."""
        if self.options.dry_run:
            return
        dossier, identity = self.dossier, self.dossier.table.identity
        self.repair()
        other = register(dossier.store, identity)
        if other is not None:
            self.notices.append(
                f"{identity.name} is another table than in earlier runs (dropped and created again, or replaced): "
                f"its history and state begin anew, those of the old one stay in {dossier.store.root}/{other}"
            )
        ahead = (dossier.ledger.last_time() - datetime.now(UTC)).total_seconds()
        if ahead > 0:
            self.notices.append(
                f"the clock is {ahead:.0f} s behind the last run's: it went backwards, so times in the ledger overlap "
                "and a cooldown may last longer"
            )

    def repair(self) -> None:
        """Settle what a run that died left open."""
        if self.options.dry_run:
            return
        repaired = self.dossier.pending.repair(self.dossier.table)
        self.record.add("repair", repaired)
        self.notices += [str(fact["what"]) for fact in repaired]

    def rewrite_rate(self) -> float | None:
        """Bytes a second, by the last rewrite on record."""
        for line in reversed(self.dossier.ledger.lines(["commit"])):
            size, seconds = number(line.facts.get("bytes")), number(line.facts.get("seconds"))
            if size and seconds is not None:
                return size / max(seconds, 0.001)
        return None

    def stay(
        self,
        evidence: Evidence,
        state: State,
        counsel: Counsel,
        alpha: Alpha,
        reason: str,
        *,
        held: str = "",
        looked: dict[str, float] | None = None,
    ) -> Outcome:
        """The end of a run that leaves the table as it is."""
        counsel.optimizer.placed(state.shadow or evidence.current)
        self.record.advised(evidence, "stay", reason, counsel, alpha, held=held, looked=looked)
        self.record.write(replace(state, optimizer=counsel.optimizer.to_json()))
        return replace(self.outcome(evidence, "stay", reason), alpha=str(alpha))

    def outcome(self, evidence: Evidence, decision: str, reason: str, plan: RewritePlan | None = None) -> Outcome:
        """What the caller is told, for a table that is as it was."""
        identity = self.dossier.table.identity
        return Outcome(
            table=identity.name,
            format=identity.format,
            decision=decision,
            reason=reason,
            layout_id=plan.layout.id if plan else (evidence.live.layout_id if evidence.live else None),
            version_before=evidence.version,
            version_after=evidence.version,
            rows=evidence.blocks.total_rows,
            files_before=len(evidence.blocks),
            files_after=len(evidence.blocks),
            bytes_rewritten=0,
            queries_seen=len(evidence.queries),
            seconds=time.monotonic() - self._started,
            dry_run=self.options.dry_run,
            plan=plan,
            notices=tuple(self.notices),
            shard=self.dossier.shard.label if self.dossier.shard else "",
        )
