"""A real table beside its model: what others do (`strangers.py`) and what we do, after which the two must agree."""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

from strangers import KINDS, Strangers

import oreo_lakehouse as oreo
from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.errors import RollbackError
from oreo_lakehouse.jvm import jvm
from oreo_lakehouse.maintenance.dossier import live_layout, open_dossier
from oreo_lakehouse.maintenance.ledger import Ledger
from oreo_lakehouse.maintenance.shardledgers import shard_ledgers
from oreo_lakehouse.maintenance.shards import shard_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.maintenance.dossier import Dossier

BID = "_oreo_bid"
SETTINGS = {"layout.blocks": 4, "layout.sample_rows": 2000, "decide.alpha": 2, "decide.window": 10}


class World(Strangers):
    """One table in a schema and a folder of its own; pruning is on in the session that reads it."""

    def __init__(self, spark: SparkSession, kind: str, name: str, folder: Path, scheme: str = "") -> None:
        self.spark, self.folder = spark, folder
        self.config: Config = load_config(flags={"store": f"{scheme}{folder}/store", **SETTINGS}, environ={})
        oreo.attach(spark, self.config, capture=False)
        location = f"location '{scheme}{folder}/table'" if scheme else ""
        super().__init__(spark.newSession(), KINDS[kind], name, location)
        self.told = self.asked = self.checked = 0
        self.decisions = Counter[str]()
        """What runs decided."""
        self._cleaned, self._seen = False, cast("tuple[int, object]", (-1, None))
        self.append(5)
        self.check()

    def dossier(self) -> Dossier:
        return open_dossier(self.spark, self.name, self.config)

    def import_log(self, spark: SparkSession, conditions: Sequence[str]) -> None:
        """Tell the table's history of queries with these conditions, each log a minute after the one before."""
        self.told += 1
        log = self.folder / f"{uuid.uuid4().hex}.jsonl"
        first = datetime.now(UTC) - timedelta(days=2) + timedelta(minutes=self.told)
        with log.open("w") as out:
            for at, condition in enumerate(conditions):
                text = f"select count(*) from {self.name} where {condition}"
                out.write(json.dumps({"statement_text": text, "start_time": str(first + timedelta(seconds=at))}) + "\n")
        oreo.import_queries(spark, self.name, [str(log)], self.config)

    # What we do.

    def maintain(self, number: int) -> None:
        """New queries with a focus, and a run that decides about them."""
        self.import_log(self.spark, [self.model.condition(number // 3 * 3 + at % 3).sql for at in range(24)])
        before = self._version()
        outcome = oreo.maintain(self.spark, self.name, self.config)
        assert (outcome.version_before, outcome.version_after) == (before, self._version())
        decided = [one.decision for one in (outcome.shards or (outcome,))]
        moved = [decision for decision in decided if decision != "stay"]
        assert bool(moved) == (outcome.version_after != outcome.version_before), outcome
        self.decisions.update(decided)
        if moved:
            commits = [commit.run_id for commit in self.dossier().table.layout_commits()]
            assert commits, "a run moved, and the table's history does not show it"

    @property
    def moves(self) -> int:
        """Runs that changed the table."""
        return self.decisions.total() - self.decisions["stay"]

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

    def capture(self, number: int) -> None:
        """A query is asked while capture is on: its history has one record more, and the same answer."""
        condition = self.model.condition(number)
        before = len(self.dossier().history.read_since({})[0])
        live = oreo.capture(self.spark, self.config)
        try:
            got = self.sql(f"select id from {self.name} where {condition.sql}").collect()
        finally:
            live.stop()
        assert sorted(row.id for row in got) == sorted(row["id"] for row in self.model.rows if condition.holds(row))
        assert len(self.dossier().history.read_since({})[0]) == before + 1, f"{condition.sql} was not captured"

    def restart(self, number: int) -> None:
        """Nothing of what we or the engines held in memory is there any more: sessions, logs, catalogs, facts."""
        oreo.detach(self.spark)
        self.spark = self.spark.newSession()
        jvm(self.spark).org.apache.spark.sql.delta.DeltaLog.clearCache()
        oreo.attach(self.spark, self.config, capture=False)
        self.session = self.spark.newSession()

    def clean(self, number: int) -> None:
        """What goes must have been right until then; the present version stays, with the columns that it has."""
        self.check_every_version()
        now = self._version()
        held = self.versions.get(now)
        super().clean(number)
        if held is not None:
            self.versions[now] = held
        self._cleaned = True

    # What must be true after every step.

    def check(self) -> None:
        """The rows, and that no file is left over. What no step has changed since the last check is not read again;
        older versions never change, so they are read before anything may take them away, and at the end."""
        self.session.catalog.refreshTable(self.name)
        want, version = self.model.frozen(), self._version()
        if self._seen == (version, want):
            return
        self._compare(want, f"select * from {self.name}")
        self.versions.setdefault(version, want)  # Iceberg's ALTER makes no version: an old one has its old columns
        self._seen = version, want
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
        """Some at a time: those with the same columns are read by one query."""
        alike = defaultdict[tuple[str, ...], list[int]](list)
        for version, (names, _) in self.versions.items():
            alike[tuple(sorted(names))].append(version)
        for names, versions in alike.items():
            for some in (versions[at : at + 8] for at in range(0, len(versions), 8)):
                columns = ", ".join(names)
                parts = [f"select {at} version_, {columns} from {self.name} version as of {at}" for at in some]
                got = defaultdict[int, list[str]](list)
                for row in self.sql(" union all ".join(parts)).collect():
                    got[row[0]].append(str(tuple(row[1:])))
                for version in some:
                    self.checked += len(got[version])
                    want = self.versions[version][1]
                    assert sorted(got[version]) == want, f"version {version}: {_difference(got[version], want)}"

    def check_ledger(self) -> None:
        """What the ledgers tell is what the table's own history shows."""
        dossier = self.dossier()
        uuid = dossier.table.identity.uuid
        folders = [uuid, *(shard_folder(uuid, shard.id) for shard in shard_ledgers(dossier.store, uuid))]
        lines = [line for folder in folders for line in Ledger(dossier.store, folder).lines()]
        told = {
            line.facts["version"]
            for line in lines
            if line.kind in ("commit", "rollback", "repair") and "version" in line.facts
        }
        happened = {commit.version for commit in dossier.table.layout_commits()}
        assert happened <= told, f"the ledger does not know of versions {happened - told}"
        assert self._cleaned or told <= happened, f"the ledger tells of versions {told - happened} that are not there"

    def _compare(self, want: tuple[tuple[str, ...], list[str]], query: str) -> None:
        found = self.sql(query)
        names = tuple(sorted(name for name in found.columns if name != BID))
        got = sorted(str(tuple(row[name] for name in names)) for row in found.collect())
        self.checked += len(got)
        assert (names, got) == want, f"{query}: {_difference(got, want[1])}"

    def _no_orphans(self) -> None:
        """Every file of ours is known to the table, or to a run that will tidy up; no run is under way."""
        table = self.dossier().table
        folder = Path(re.sub("^[a-z]+:/*", "/", table.identity.location))
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


def _difference(got: list[str], want: list[str]) -> str:
    missing, more = Counter(want) - Counter(got), Counter(got) - Counter(want)
    return f"missing {list(missing.elements())[:5]}, too many {list(more.elements())[:5]}"
