"""The paper's own strategy: D-UMTS over the states that the Layout Manager admits."""

from __future__ import annotations

from typing import Any

from oreo_lakehouse.config import DecideSettings, LayoutSettings
from oreo_lakehouse.errors import StoreError
from oreo_lakehouse.layouts.layout import Layout, layout_from_json
from oreo_lakehouse.reorganizer.decision import Decision
from oreo_lakehouse.reorganizer.dumts import DUMTS, Activation
from oreo_lakehouse.reorganizer.manager import LayoutManager, Source
from oreo_lakehouse.reorganizer.states import INITIAL, StateSpace


class PaperStrategy:
    """Serve a query, update the counters, and every `window` queries let the manager change the state space."""

    def __init__(
        self,
        decide: DecideSettings,
        layout: LayoutSettings,
        blocks: int,
        seed: int,
        source: Source = "SW",
        activation: Activation = "deferred",
    ) -> None:
        self._layouts: dict[str, Layout] = {}
        self.manager = LayoutManager(
            layout.generators, blocks, decide.window, decide.epsilon, decide.max_states, source, seed
        )
        self.dumts = DUMTS([INITIAL], decide.alpha, seed, decide.gamma)
        self.activation: Activation = activation

    def aim_at(self, blocks: int) -> None:
        self.manager.blocks = blocks

    @property
    def layouts(self) -> dict[str, Layout]:
        return self._layouts

    @property
    def current(self) -> str:
        return self.dumts.current

    @property
    def states(self) -> list[str]:
        return self.dumts.states

    @property
    def phase(self) -> int:
        return self.dumts.phase

    @property
    def counters(self) -> dict[str, float]:
        return self.dumts.counters

    @property
    def regret(self) -> dict[str, float]:
        return {}

    @property
    def bound(self) -> dict[str, float] | None:
        return None  # Theorem IV.1 bounds the expectation, not this run

    def step(self, query: int, space: StateSpace) -> list[Decision]:
        decision = self.dumts.observe(space.at(query, self.dumts.states))
        changes: list[Decision] = []
        if self.manager.observe(query):
            for change in self.manager.changes(space, self.dumts.states, self.dumts.current):
                if change.evict:
                    self.dumts.remove_state(change.evict)
                    self._layouts.pop(change.evict, None)
                    space.remove(change.evict)
                    changes.append(self._note("evict", change.evict, change.reason))
                elif change.admit is not None and change.source is not None:
                    state = change.admit.id
                    self._layouts[state] = change.admit
                    space.add(state, change.source)
                    counter = 0.0
                    if self.activation == "replayed":
                        replayed = min(len(self.manager.recent), self.dumts.phase_queries)
                        counter = float(change.source.costs(self.manager.recent[-replayed:]).sum()) if replayed else 0.0
                    self.dumts.add_state(state, self.activation, counter)
                    changes.append(self._note("admit", state, f"{change.admit.describe()}; {change.reason}"))
        return [*changes, decision]

    def _note(self, kind: str, state: str, reason: str) -> Decision:
        return Decision(kind, state, reason, self.dumts.phase, self.dumts.counters, self.dumts.queries)

    def destination(self, query: int, space: StateSpace) -> str:  # noqa: ARG002
        """The paper knows no batches: what was decided is built."""
        return self.current

    def place(self, state: str) -> None:
        self.dumts.place(state)
        for other in list(self.dumts.states):
            if other != state and other not in self._layouts:
                self.dumts.remove_state(other)  # the initial state, or an evicted one: nobody can make it again

    def recent(self) -> list[int]:
        return self.manager.recent

    def kept(self) -> set[int]:
        return self.manager.kept()

    def renumber(self, numbers: dict[int, int]) -> None:
        self.manager.renumber(numbers)

    def to_json(self) -> dict[str, Any]:
        return {
            "policy": "paper",
            "layouts": [layout.to_json() for layout in self._layouts.values()],
            "manager": self.manager.to_json(),
            "dumts": self.dumts.to_json(),
        }

    def restore(self, document: dict[str, Any], alpha: float) -> None:
        """Go on from what `to_json` described; alpha may have changed since.

        Raises:
            StoreError: the document is not one of ours.
        """
        try:
            found = [layout_from_json(layout) for layout in document["layouts"]]
            self._layouts = {layout.id: layout for layout in found}
            self.manager.restore(document["manager"])
            self.dumts = DUMTS.from_json(document["dumts"])
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"malformed state: the paper's strategy cannot be read ({error})") from error
        self.dumts.alpha = alpha
