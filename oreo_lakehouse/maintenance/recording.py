"""What a run writes down: the ledger's lines, gathered while it goes and written with the state at its end."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.maintenance.deciding import hot_queries
from oreo_lakehouse.maintenance.served import served_line
from oreo_lakehouse.maintenance.weighing import BYTES

if TYPE_CHECKING:
    from oreo_lakehouse.layouts.skipping import Mode
    from oreo_lakehouse.maintenance.alpha import Alpha
    from oreo_lakehouse.maintenance.deciding import Counsel
    from oreo_lakehouse.maintenance.dossier import Dossier
    from oreo_lakehouse.maintenance.evidence import Evidence
    from oreo_lakehouse.maintenance.state import State


class Record:
    """The lines of one run. In a dry run they are gathered like any others, and never written."""

    def __init__(self, dossier: Dossier, mode: Mode, *, dry_run: bool) -> None:
        self._dossier, self._dry_run = dossier, dry_run
        self._mode: Mode = mode
        self._lines: list[tuple[str, dict[str, Any]]] = []

    def add(self, kind: str, facts: Iterable[dict[str, Any]]) -> None:
        self._lines += [(kind, fact) for fact in facts]

    def served(self, evidence: Evidence, counsel: Counsel) -> None:
        """What the new queries cost under the layout that they met, and under others."""
        kept, commits = self._dossier.blocks, self._dossier.ledger.lines(["commit"])
        thinned = len(evidence.queries) / max(1, counsel.advice.queries)
        line = served_line(
            evidence.queries,
            evidence.current,
            self._mode,
            now=evidence.blocks,
            before=kept.get(evidence.live.run_id) if evidence.live else None,
            untouched=kept.get(commits[0].run) if commits else None,
            states={state: cost * thinned for state, cost in counsel.advice.sums.items()},
            share=evidence.share,
            weights=evidence.weights,
        )
        self.add("served", [line])

    def decided(self, evidence: Evidence, decision: str, reason: str, more: Mapping[str, Any] | None = None) -> None:
        """The run's decision."""
        facts = {
            "decision": decision,
            "reason": reason,
            "version": evidence.version,
            "current": evidence.current,
            "mode": self._mode,
            "queries": len(evidence.queries),
            "rows": evidence.blocks.total_rows,
        }
        if evidence.weights is not None:
            facts["weigh"] = BYTES
        if self._dossier.shard is not None:
            facts["shard"] = self._dossier.shard.label
        self.add("decision", [facts | dict(more or {})])

    def advised(
        self,
        evidence: Evidence,
        decision: str,
        reason: str,
        counsel: Counsel,
        alpha: Alpha,
        *,
        shadow: bool = False,
        held: str = "",
        looked: Mapping[str, float] | None = None,
    ) -> None:
        """A decision that the optimizer was asked about, with all it rests on: `explain` has nothing else to read."""
        advice = counsel.advice
        then = self._dossier.blocks.get(advice.target.id) if advice.target else None
        more = {
            "target": advice.target.id if advice.target else None,
            "current_cost": advice.current_cost,
            "target_cost": advice.target_cost,
            "alpha": alpha.value,
            "alpha_source": alpha.source,
            "phase": advice.phase,
            "counters": dict(advice.counters),
            "costs": dict(advice.costs),
            "layouts": {state: layout.describe() for state, layout in counsel.optimizer.layouts.items()},
            "regret": dict(advice.regret),
            "bound": advice.bound,
            "weight": advice.weight,
            "hot": hot_queries(evidence, then, self._mode),
            "shadow": shadow,
            "held": held,
            "looked": looked,
        }
        self.decided(evidence, decision, reason, more)

    def write(self, state: State | None, run_id: str = "") -> None:
        """The end: the lines, and then the state that follows from them."""
        if self._dry_run:
            return
        self._dossier.ledger.append(run_id or uuid.uuid4().hex, self._lines)
        if state is not None:
            self._dossier.states.save(state)
