"""A real table beside its model: every step is taken in both, and then they must agree.

Steps are methods with one number each, so that a history is plain data: it can be drawn, cut down and printed.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from model import COLUMNS, SELECT, Asked, Model

import oreo_lakehouse as oreo
from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.errors import RollbackError
from oreo_lakehouse.maintenance.dossier import live_layout, open_dossier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.maintenance.dossier import Dossier

BID = "_oreo_bid"
SETTINGS = {"layout.blocks": 4, "layout.sample_rows": 2000, "decide.alpha": 2, "decide.window": 10}
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


class World:
    """One table in a schema and a folder of its own; pruning is on in the session that reads it."""

    def __init__(self, spark: SparkSession, kind: str, name: str, folder: Path) -> None:
        self.spark, self.kind, self.name, self.folder = spark, KINDS[kind], name, folder
        self.session = spark.newSession()
        self.config: Config = load_config(flags={"store": str(folder / "store"), **SETTINGS}, environ={})
        self.model = Model()
        oreo.attach(spark, self.config, capture=False)
        self.versions: dict[int, tuple[tuple[str, ...], list[str]]] = {}
        self.moves = self.told = self.asked = self.checked = 0
        columns = ", ".join(f"{column} {type_}" for column, type_ in COLUMNS.items())
        self.sql(f"create table {name} ({columns}) using {self.kind.format} {self.kind.clause}")
        self.append(5)
        self.check()

    def sql(self, text: str) -> Any:
        return self.session.sql(text)

    def dossier(self) -> Dossier:
        return open_dossier(self.spark, self.name, self.config)

    # What others do to the table.

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
        self.sql(f"delete from {self.name} where {condition.sql}")
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
            self.sql(f"call iceberg.system.rewrite_data_files(table => '{self._short()}', {options})")

    def clean(self, number: int) -> None:
        """VACUUM, or the expiry of snapshots: older versions may be gone, the present one not."""
        if self.kind.format == "delta":
            self.sql(f"vacuum {self.name} retain 0 hours")
        else:
            now = datetime.now(UTC).replace(tzinfo=None) + timedelta(minutes=1)
            self.sql(
                f"call iceberg.system.expire_snapshots(table => '{self._short()}', "
                f"older_than => timestamp'{now}', retain_last => 1)"
            )
        self.versions.clear()

    # What we do.

    def maintain(self, number: int) -> None:
        """New queries with a focus, and a run that decides about them."""
        self.told += 1
        log = self.folder / f"log{self.told}.jsonl"
        first = datetime.now(UTC) - timedelta(days=2) + timedelta(minutes=self.told)
        with log.open("w") as out:
            for at in range(24):
                text = f"select count(*) from {self.name} where {self.model.condition(number // 3 * 3 + at % 3).sql}"
                out.write(json.dumps({"statement_text": text, "start_time": str(first + timedelta(seconds=at))}) + "\n")
        oreo.import_queries(self.spark, self.name, [str(log)], self.config)
        before = self._version()
        outcome = oreo.maintain(self.spark, self.name, self.config)
        assert (outcome.version_before, outcome.version_after) == (before, self._version())
        moved = [one for one in (outcome.shards or (outcome,)) if one.decision != "stay"]
        assert bool(moved) == (outcome.version_after != outcome.version_before), outcome
        self.moves += len(moved)
        if moved:
            commits = [commit.run_id for commit in self.dossier().table.layout_commits()]
            assert commits, "a run moved, and the table's history does not show it"

    def roll_back(self, number: int) -> None:
        dossier = self.dossier()
        if live_layout(dossier.table) is None:
            return
        before = dossier.table.version()
        try:
            done = oreo.rollback(self.spark, self.name, self.config)
        except RollbackError:
            assert self._version() == before
            return
        assert (done.version_before, done.version_after) == (before, self._version())

    def go_back(self, number: int) -> None:
        """To any earlier layout."""
        dossier = self.dossier()
        earlier = sorted({commit.layout_id for commit in dossier.table.layout_commits()})
        if live_layout(dossier.table) is None or not earlier:
            return
        before = dossier.table.version()
        try:
            oreo.rollback(self.spark, self.name, self.config, to=earlier[number % len(earlier)])
        except RollbackError:
            assert self._version() == before

    def ask(self, number: int) -> None:
        """Conditions with pruning and without, now and in an older version."""
        for at in range(3):
            condition = self.model.condition(number + 7 * at)
            want = sorted(row["id"] for row in self.model.rows if condition.holds(row))
            for pruning in ("true", "false"):
                self.session.conf.set("spark.oreo.pruning", pruning)
                got = self.sql(f"select id from {self.name} where {condition.sql}").collect()
                assert sorted(row.id for row in got) == want, f"{condition.sql}, pruning {pruning}"
            self.asked += 1

    # What must be true after every step.

    def check(self, draw: random.Random | None = None) -> None:
        self.session.catalog.refreshTable(self.name)
        want = self.model.frozen()
        self._compare(want, f"select * from {self.name}")
        version = self._version()
        for old in (draw or random.Random(version)).sample(sorted(self.versions), min(1, len(self.versions))):
            self._compare(self.versions[old], f"select * from {self.name} version as of {old}")
        self.versions.setdefault(version, want)  # Iceberg's ALTER makes no version: an old one has its old columns
        self._no_orphans()

    def read_anew(self) -> None:
        """The rows alone: after a kill, files may lie about that the next run will tidy up."""
        self.session.catalog.refreshTable(self.name)
        self._compare(self.model.frozen(), f"select * from {self.name}")
        self.versions.setdefault(self._version(), self.model.frozen())

    def unsettled(self) -> list[str]:
        """Intents that no run has settled, and locks that nobody holds any more."""
        return [str(path) for kind in ("pending", "lock") for path in (self.folder / "store").glob(f"**/{kind}/*.json")]

    def check_every_version(self) -> None:
        for version, want in self.versions.items():
            self._compare(want, f"select * from {self.name} version as of {version}")

    def _compare(self, want: tuple[tuple[str, ...], list[str]], query: str) -> None:
        found = self.sql(query)
        names = tuple(sorted(name for name in found.columns if name != BID))
        got = sorted(str(tuple(row[name] for name in names)) for row in found.collect())
        self.checked += len(got)
        assert (names, got) == want, f"{query}: {_difference(got, want[1])}"

    def _no_orphans(self) -> None:
        """Every file of ours is known to the table, or to a run that will tidy up; no run is under way."""
        table = self.dossier().table
        folder = Path(table.identity.location.removeprefix("file:"))
        files = [path.relative_to(folder) for path in folder.rglob("*.parquet")]
        ours = {path.name for path in files if any(part.startswith("oreo-") for part in path.parts)}
        if not ours:
            return
        if self.kind.format == "delta":
            log = "\n".join(path.read_text() for path in (folder / "_delta_log").glob("*.json"))
            known = {name for name in ours if name in unquote(log)}
        else:
            rows = self.sql(f"select file_path from {self.name}.all_files").collect()
            known = {row.file_path.rpartition("/")[2] for row in rows}
        assert not ours - known, f"nobody owns {sorted(ours - known)}"

    def _version(self) -> int:
        return self.dossier().table.version()

    def _short(self) -> str:
        return self.name.removeprefix("iceberg.")

    def _changeable(self, number: int) -> tuple[str, str]:
        loose = [item for item in self.model.names.items() if item[0] not in ("id", "part")]
        return loose[number % len(loose)]


def _difference(got: list[str], want: list[str]) -> str:
    missing, more = Counter(want) - Counter(got), Counter(got) - Counter(want)
    return f"missing {list(missing.elements())[:5]}, too many {list(more.elements())[:5]}"
