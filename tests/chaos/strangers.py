"""What others do to a table: each step is taken in the table and in its model.

Steps are methods with one number each, so that a history is plain data: it can be drawn, cut down and printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from model import COLUMNS, SELECT, Asked, Model

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAPPED = "'delta.columnMapping.mode' = 'name'"
VECTORS = "'delta.enableDeletionVectors' = 'true'"
MERGE_ON_READ = ", ".join(f"'write.{what}.mode' = 'merge-on-read'" for what in ("delete", "update", "merge"))


@dataclass(frozen=True)
class Kind:
    """A kind of table: what stands behind its columns, and what ALTER TABLE can do to it."""

    format: str
    clause: str
    renames: bool = True
    widens: bool = True


KINDS = {
    "delta": Kind("delta", f"tblproperties({VECTORS})", renames=False, widens=False),
    "delta without vectors": Kind("delta", "tblproperties('delta.enableDeletionVectors' = 'false')", False, False),
    "delta mapped": Kind("delta", f"tblproperties({MAPPED}, {VECTORS}, 'delta.enableTypeWidening' = 'true')"),
    "delta partitioned": Kind("delta", f"partitioned by (part) tblproperties({MAPPED}, {VECTORS})", widens=False),
    "delta tracked": Kind(
        "delta", f"tblproperties({MAPPED}, {VECTORS}, 'delta.enableRowTracking' = 'true')", widens=False
    ),
    "iceberg": Kind("iceberg", "tblproperties('format-version' = '2')"),
    "iceberg merge on read": Kind("iceberg", f"tblproperties('format-version' = '2', {MERGE_ON_READ})"),
    "iceberg v3": Kind("iceberg", f"tblproperties('format-version' = '3', {MERGE_ON_READ})"),
    "iceberg partitioned": Kind("iceberg", f"partitioned by (part) tblproperties({MERGE_ON_READ})"),
    "iceberg buckets": Kind("iceberg", "partitioned by (bucket(3, id))"),
}


class Strangers:
    """Everybody but us, at one table."""

    def __init__(self, session: SparkSession, kind: Kind, name: str, location: str = "") -> None:
        self.session, self.kind, self.name = session, kind, name
        self.model = Model()
        self.versions: dict[int, tuple[tuple[str, ...], list[str]]] = {}
        """What each version that is still there must hold."""
        columns = ", ".join(f"{column} {type_}" for column, type_ in COLUMNS.items())
        self.sql(f"create table {name} ({columns}) using {self.kind.format} {location} {self.kind.clause}")

    def sql(self, text: str) -> Any:
        return self.session.sql(text)

    def append(self, number: int) -> None:
        """Up to 120 rows in up to three files."""
        numbers = self.model.fresh(1 + number * 31 % 120)
        source = f"(select {SELECT} from range({numbers.start}, {numbers.stop}, 1, {1 + number % 3}))"
        meanings = [meaning for meaning in COLUMNS if meaning in self.model.names]
        names = ", ".join(self.model.names[meaning] for meaning in meanings)
        self.sql(f"insert into {self.name} ({names}) select {', '.join(meanings)} from {source}")
        self.model.append(numbers)

    def delete(self, number: int) -> None:
        condition = self.model.condition(number)
        careful = condition.careful if self.kind.format == "iceberg" else ""
        self.sql(f"delete from {self.name} where {careful or condition.sql}")
        self.model.delete(condition)

    def update(self, number: int) -> None:
        condition, (meaning, name) = self.model.condition(number), self._changeable(number)
        new: Any = f"u{number % 5}" if meaning == "text" else number % 40
        self.sql(f"update {self.name} set {name} = {new!r} where {condition.sql}")
        self.model.update(condition, lambda row: {**row, meaning: new})

    def merge(self, number: int) -> None:
        """A row that is there changes, others come."""
        meaning, name = self._changeable(number)
        there = {row["id"] for row in self.model.rows}
        known, fresh = sorted(there)[number % max(1, len(there)) :][:1], self.model.fresh(3)
        new: Any = "merged" if meaning == "text" else 77
        keys = ", ".join(f"({key}L)" for key in [*known, *fresh])
        self.sql(
            f"merge into {self.name} t using (select col1 as key from values {keys}) s on t.id = s.key "
            f"when matched then update set t.{name} = {new!r} "
            f"when not matched then insert (id, part) values (s.key, 1)"
        )
        self.model.update(Asked("", lambda row: row["id"] in known), lambda row: {**row, meaning: new})
        empty = dict.fromkeys(self.model.names)
        self.model.rows += [{**empty, "id": key, "part": 1} for key in fresh]

    def overwrite(self, number: int) -> None:
        """Everything is replaced, mostly by rows that were there."""
        names = ", ".join(self.model.names.values())
        rest = number % 7
        self.sql(f"select {names} from {self.name} where id % 7 <> {rest}").localCheckpoint().createOrReplaceTempView(
            "kept"
        )
        self.sql(f"insert overwrite {self.name} ({names}) select {names} from kept")
        self.model.delete(Asked("", lambda row: row["id"] % 7 == rest))

    def add_column(self, number: int) -> None:
        """A new one, or an old one again under the name that it had."""
        gone = [meaning for meaning in ("value", "text") if meaning not in self.model.names]
        meaning = gone[0] if gone else f"extra{len(self.model.names)}_{number % 3}"
        if meaning in self.model.names:
            return
        self.sql(f"alter table {self.name} add column {meaning} {COLUMNS.get(meaning, 'int')}")
        self.model.add(meaning, meaning)

    def rename_column(self, number: int) -> None:
        if not self.kind.renames:
            return
        meaning, name = self._changeable(number)
        new = f"{meaning}_{number % 100}"
        if new not in self.model.names.values():
            self.sql(f"alter table {self.name} rename column {name} to {new}")
            self.model.names[meaning] = new

    def drop_column(self, number: int) -> None:
        loose = [meaning for meaning in self.model.names if meaning not in ("id", "part")]
        if self.kind.renames and len(loose) > 1:
            meaning = loose[number % len(loose)]
            self.sql(f"alter table {self.name} drop column {self.model.names[meaning]}")
            self.model.drop(meaning)

    def widen_column(self, number: int) -> None:
        if self.kind.widens and "value" in self.model.names:
            self.sql(f"alter table {self.name} alter column {self.model.names['value']} type bigint")

    def compact(self, number: int) -> None:
        if self.kind.format == "delta":
            zorder = "zorder by (id)" if number % 2 else ""
            self.sql(f"optimize {self.name} {zorder}")
        else:
            options = (
                "options => map('rewrite-all', 'true')" if number % 2 else "options => map('min-input-files', '2')"
            )
            catalog, _, short = self.name.partition(".")
            self.sql(f"call {catalog}.system.rewrite_data_files(table => '{short}', {options})")

    def clean(self, number: int) -> None:
        """VACUUM, or the expiry of snapshots: older versions may be gone, the present one not."""
        if self.kind.format == "delta":
            self.sql(f"vacuum {self.name} retain 0 hours")
        else:
            now = datetime.now(UTC).replace(tzinfo=None) + timedelta(minutes=1)
            catalog, _, short = self.name.partition(".")
            self.sql(
                f"call {catalog}.system.expire_snapshots(table => '{short}', "
                f"older_than => timestamp'{now}', retain_last => 1)"
            )
        self.versions.clear()

    def _changeable(self, number: int) -> tuple[str, str]:
        loose = [item for item in self.model.names.items() if item[0] not in ("id", "part")]
        return loose[number % len(loose)]
