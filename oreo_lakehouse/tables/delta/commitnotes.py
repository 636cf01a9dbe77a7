"""What a commit of ours says about itself in a Delta log: its `userMetadata`, a JSON object of texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import cast

from oreo_lakehouse.tables.commits import LayoutCommit

LAYOUT, RUN, ACTION, BASE = "oreo.layout-id", "oreo.run-id", "oreo.action", "oreo.base-version"
UNDONE_RUN, SHARD = "oreo.layout-run-id", "oreo.shard"


def of_shard(shard: str) -> dict[str, str]:
    """What a commit says of the shard that it belongs to: nothing if it is the whole table."""
    return {SHARD: shard} if shard else {}


def note_of(text: str) -> dict[str, str] | None:
    """What a commit's `userMetadata` says; None if it is not in our words: any writer may put there what he likes."""
    try:
        found: object = json.loads(text)
        if not isinstance(found, dict):
            return None
        note = {name: value for name, value in cast("dict[str, object]", found).items() if isinstance(value, str)}
        int(note[BASE])
    except (ValueError, KeyError, RecursionError):
        return None
    return note if LAYOUT in note else None


def layout_commit(version: int, time: datetime, note: Mapping[str, str]) -> LayoutCommit:
    """A commit of ours as the contract describes it."""
    return LayoutCommit(
        version=version,
        layout_id=note[LAYOUT],
        run_id=note.get(RUN, ""),
        time=time,
        action=note.get(ACTION, "layout"),
        base_version=int(note[BASE]),
        layout_run_id=note.get(UNDONE_RUN, ""),
        shard=note.get(SHARD, ""),
    )
