"""What maintenance remembers of a table between runs: the optimizer, and how far the query history has been read.

Each save is a new numbered file, created only if nobody else took that number, so two runs cannot overwrite each
other. A file carries a hash of its own body: one that was damaged is named, set aside, and the one before it used.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field, fields
from typing import Any, cast

from oreo_lakehouse.errors import ConflictError, StoreError
from oreo_lakehouse.maintenance.weighing import ROWS
from oreo_lakehouse.store import Store, parsed

FORMAT_VERSION = 1
KEPT = 3
"""How many saves are kept: the live one and two to fall back on."""


@dataclass(frozen=True)
class State:
    """One save. Number 0 is a table that has never been maintained."""

    number: int = 0
    cursor: dict[str, Any] = field(default_factory=dict)
    """Where the history was read up to, in the history store's own terms."""
    optimizer: dict[str, Any] | None = None
    """The reorganizer with its admitted layouts, in its own terms; None before the first decision."""
    queries: int = 0
    """How many queries have been decided about so far."""
    kinds: dict[str, str] = field(default_factory=dict)
    """The table's columns and what kind of values they had at the last decision."""
    shadow: str | None = None
    """The layout that shadow runs would have put the table in; None outside a shadow."""
    tail_regret: float = 0.0
    """What queries have paid, in scans, for rows that are not folded into the layout yet."""
    weigh: str = ROWS
    """What the costs in it were counted in: see `weighing`."""


class StateStore:
    """The saves of one table."""

    def __init__(self, store: Store, table_uuid: str) -> None:
        self._store = store
        self._folder = f"{table_uuid}/state"
        self._aside = f"{table_uuid}/set-aside"

    def load(self, *, set_aside: bool = True) -> tuple[State, list[str]]:
        """The newest intact save, and a sentence for every damaged one, which is set aside unless only looking."""
        notices: list[str] = []
        for entry in reversed(self._store.entries(self._folder)):
            path = f"{self._folder}/{entry.name}"
            content = self._store.read(path)
            if content is None:  # another run tidied it away
                continue
            try:
                return _decode(content), notices
            except ValueError as damage:
                if set_aside:
                    self._store.create(f"{self._aside}/{entry.name}", content)
                    self._store.delete(path)
                notices.append(
                    f"state file {path} in {self._store.root} is damaged ({damage}): it is set aside in "
                    f"{self._aside}/, and the save before it is used"
                )
        return State(), notices

    def save(self, state: State) -> None:
        """Store `state` under its number.

        Raises:
            ConflictError: another run saved this number first.
        """
        if not self._store.create(f"{self._folder}/{state.number:010d}.json", _encode(state)):
            raise ConflictError(f"another run recorded its decision first (state {state.number}); run again later")
        for entry in self._store.entries(self._folder)[:-KEPT]:
            self._store.delete(f"{self._folder}/{entry.name}")


def _encode(state: State) -> bytes:
    body = json.dumps({one.name: getattr(state, one.name) for one in fields(state)}, separators=(",", ":"))
    seal = hashlib.sha256(body.encode()).hexdigest()
    return json.dumps({"version": FORMAT_VERSION, "sha256": seal, "body": body}).encode()


def _decode(content: bytes) -> State:
    try:
        outer = parsed(content)
        version, seal, body = outer["version"], outer["sha256"], outer["body"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("not a state document") from error
    if version != FORMAT_VERSION:
        raise StoreError(
            f"the state was written by another release (format {version}, this one reads {FORMAT_VERSION}); upgrade"
        )
    if hashlib.sha256(str(body).encode()).hexdigest() != seal:
        raise ValueError("its content does not match its checksum")
    return _checked(parsed(body))


def _checked(document: object) -> State:
    """Fields of the right types: whoever can write to the store can seal a document, too."""
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    given, plain = cast("dict[str, Any]", document), State()
    known = {one.name: type(getattr(plain, one.name)) for one in fields(State)}
    known |= {"optimizer": dict, "shadow": str}
    for name, value in given.items():
        wanted = known.get(name)
        if wanted is None:
            raise ValueError(f"it has a field {name[:40]!r}")
        if value is None and name in ("optimizer", "shadow"):
            continue
        numeric = wanted is float and type(value) is int
        if type(value) is not wanted and not numeric:
            raise ValueError(f"its {name} is of a wrong type")
    if not all(type(kind) is str for kind in given.get("kinds", {}).values()):
        raise ValueError("its kinds are of a wrong type")
    if not math.isfinite(given.get("tail_regret", 0.0)) or min(given.get("number", 0), given.get("queries", 0)) < 0:
        raise ValueError("its numbers are out of range")
    return State(**given)
