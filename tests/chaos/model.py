"""What a table must hold: its rows as plain Python values, changed by the same steps as the real one.

A row is a function of its number, so that SQL and Python make the same ones; NULLs come in both. Columns are known by
what they mean (`id`, `part`, `value`, `text`, and those added later), whatever they are called at the moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
SELECT = (
    "id, cast(id % 3 as int) part, if(id % 11 = 0, null, cast(id * 7 % 40 as int)) value, "
    "if(id % 13 = 0, null, concat('t', id % 9)) text"
)
COLUMNS = {"id": "bigint", "part": "int", "value": "int", "text": "string"}


def made(number: int) -> Row:
    """The row of a number, as `SELECT` makes it."""
    return {
        "id": number,
        "part": number % 3,
        "value": None if number % 11 == 0 else number * 7 % 40,
        "text": None if number % 13 == 0 else f"t{number % 9}",
    }


@dataclass(frozen=True)
class Asked:
    """A condition in both languages; `holds` is false where SQL says NULL."""

    sql: str
    holds: Callable[[Row], bool]
    careful: str = ""
    """The same for a DELETE on Iceberg, which takes NULL for unequal where it drops whole files (a defect of its own:
    test_iceberg_delete.py)."""


@dataclass
class Model:
    """A multiset of rows, and what their columns are called."""

    rows: list[Row] = field(default_factory=list[Row])
    names: dict[str, str] = field(default_factory=lambda: {meaning: meaning for meaning in COLUMNS})
    next_id: int = 0

    def fresh(self, count: int) -> range:
        """Numbers that no row had yet."""
        first, self.next_id = self.next_id, self.next_id + count
        return range(first, self.next_id)

    def append(self, numbers: range) -> None:
        self.rows += [{meaning: made(number).get(meaning) for meaning in self.names} for number in numbers]

    def delete(self, condition: Asked) -> None:
        self.rows = [row for row in self.rows if not condition.holds(row)]

    def update(self, condition: Asked, change: Callable[[Row], Row]) -> None:
        self.rows = [change(row) if condition.holds(row) else row for row in self.rows]

    def add(self, meaning: str, name: str) -> None:
        self.names[meaning] = name
        self.rows = [{**row, meaning: None} for row in self.rows]

    def drop(self, meaning: str) -> None:
        del self.names[meaning]
        self.rows = [{key: value for key, value in row.items() if key != meaning} for row in self.rows]

    def frozen(self) -> tuple[tuple[str, ...], list[str]]:
        """Column names and rows in an order of their own: what a reader of the table must see."""
        order = sorted(self.names, key=lambda meaning: self.names[meaning])
        rows = sorted(str(tuple(row[meaning] for meaning in order)) for row in self.rows)
        return tuple(self.names[meaning] for meaning in order), rows

    def condition(self, number: int) -> Asked:
        """One of the conditions that can be asked now."""
        low, name = number % 37 * max(1, self.next_id // 40), self.names
        asked = [
            Asked(f"{name['id']} between {low} and {low + 9}", lambda row: low <= row["id"] <= low + 9),
            Asked(f"{name['id']} % 7 = {number % 7}", lambda row: row["id"] % 7 == number % 7),
            Asked(
                f"{name['part']} = {number % 3} and {name['id']} < {low}",
                lambda r: r["part"] == number % 3 and r["id"] < low,
            ),
        ]
        if "value" in name:
            value = number % 40
            asked += [
                Asked(f"{name['value']} = {value}", lambda row: row["value"] == value),
                Asked(f"{name['value']} is null", lambda row: row["value"] is None),
                Asked(f"{name['value']} in (1, {value})", lambda row: row["value"] in (1, value)),
                Asked(f"not ({name['value']} < {value})", lambda r: r["value"] is not None and not r["value"] < value),
                Asked(f"{name['value']} > {name['id']}", lambda r: r["value"] is not None and r["value"] > r["id"]),
            ]
        if "text" in name:
            text = f"t{number % 9}"
            asked += [
                Asked(f"{name['text']} = '{text}'", lambda row: row["text"] == text),
                Asked(f"{name['text']} like '{text}%'", lambda r: r["text"] is not None and r["text"].startswith(text)),
                Asked(
                    f"{name['text']} <> '{text}' or {name['id']} = {low}",
                    lambda r: (r["text"] is not None and r["text"] != text) or r["id"] == low,
                    f"({name['text']} is not null and {name['text']} <> '{text}') or {name['id']} = {low}",
                ),
            ]
        return asked[number // 7 % len(asked)]
