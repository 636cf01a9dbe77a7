"""Whose names the fields of an imported file have.

`oreo` is our own. `databricks` is an export of `system.query.history`, `trino` an event listener's completed query,
`snowflake` an export of `QUERY_HISTORY`. Names match in any case; a dot leads into an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from oreo_lakehouse.errors import HistoryError

FIELDS: dict[str, dict[str, tuple[str, ...]]] = {
    "oreo": {
        name: (name,)
        for name in (
            *("statement_text", "start_time", "duration_ms", "status", "query_id"),
            *("catalog", "schema", "time_zone", "dialect"),
        )
    },
    "databricks": {
        "statement_text": ("statement_text",),
        "start_time": ("start_time",),
        "duration_ms": ("total_duration_ms",),
        "status": ("execution_status",),
        "query_id": ("statement_id",),
    },
    "trino": {
        "statement_text": ("metadata", "query"),
        "start_time": ("createtime",),
        "end_time": ("endtime",),
        "status": ("metadata", "querystate"),
        "query_id": ("metadata", "queryid"),
        "catalog": ("context", "catalog"),
        "schema": ("context", "schema"),
        "time_zone": ("context", "timezone"),
    },
    "snowflake": {
        "statement_text": ("query_text",),
        "start_time": ("start_time",),
        "duration_ms": ("total_elapsed_time",),
        "status": ("execution_status",),
        "query_id": ("query_id",),
        "catalog": ("database_name",),
        "schema": ("schema_name",),
    },
}
"""By format: where each field of ours is found."""

DIALECTS = {"oreo": "spark", "databricks": "databricks", "trino": "trino", "snowflake": "snowflake"}
"""The SQL that each format's statements are written in, unless the user says otherwise."""

STATUSES = {
    **dict.fromkeys(("finished", "success", "succeeded", "ok", "completed"), "finished"),
    **dict.fromkeys(("failed", "fail", "error", "failed_with_error", "failed_with_incident"), "failed"),
    **dict.fromkeys(("canceled", "cancelled"), "canceled"),
}
"""What sources call the ways a query may end."""


def check_format(fmt: str) -> None:
    """Refuse a format that we do not know.

    Raises:
        HistoryError: the message lists those that we do.
    """
    known = ("auto", *FIELDS, "eventlog")
    if fmt not in known:
        raise HistoryError(f"no format {fmt!r}; known are {', '.join(known)}")


def normalised(fields: Mapping[str, Any], fmt: str = "auto") -> dict[str, Any]:
    """A line's fields under our names, without those that are empty; `dialect` is the format's unless it has its own.

    >>> normalised({"QUERY_TEXT": "SELECT 1", "START_TIME": "2024-05-01"})
    {'dialect': 'snowflake', 'statement_text': 'SELECT 1', 'start_time': '2024-05-01'}
    """
    lower = {name.lower(): value for name, value in fields.items()}
    known = next((f for f in _guesses(lower, fmt) if _at(lower, FIELDS[f]["statement_text"]) is not None), "oreo")
    out: dict[str, Any] = {"dialect": DIALECTS[known]} if known != "oreo" else {}
    for name, path in FIELDS[known].items():
        value = _at(lower, path)
        if value is not None and value != "":
            out[name] = value
    return out


def _guesses(fields: Mapping[str, Any], fmt: str) -> list[str]:
    if fmt != "auto":
        return [fmt]
    return ["databricks", *FIELDS] if "statement_id" in fields else list(FIELDS)


def _at(fields: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = fields
    for name in path:
        if not isinstance(value, Mapping):
            return None
        inner = cast("Mapping[str, Any]", value)
        value = next((inner[key] for key in inner if key.lower() == name), None)
    return value
