"""kill -9 of a process and its JVM after each step: the table reads the same, and the next process goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from crash_child import NAMESPACE, TABLES
from lake import BID, lay_out, version_of

from oreo_lakehouse.tables.certificate import certify
from oreo_lakehouse.tables.contract import RowCertificate, Staged, Table
from oreo_lakehouse.tables.delta import DeltaTable
from oreo_lakehouse.tables.iceberg import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 800
SELECT = ("id", "cast(id % 7 as int) v", "cast(id as string) s")
PATIENCE = 1200


@dataclass(frozen=True)
class Wreck:
    """What a killed process left of one format's tables."""

    spark: SparkSession
    format: str
    folder: Path

    def table(self, name: str) -> Table:
        if self.format == "delta":
            return DeltaTable.for_path(self.spark, str(self.folder / name))
        return IcebergTable.for_name(self.spark, f"{NAMESPACE}.{name}")

    def rows(self, name: str) -> RowCertificate:
        return certify(self.spark.newSession().table(self.table(name).identity.name), [BID])

    def staged(self, name: str) -> Staged:
        fields = json.loads((self.folder / f"{self.format}-{name}.json").read_text())
        fields["certificate"] = RowCertificate(**fields["certificate"])
        return Staged(**{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()})

    def ours(self, name: str, run_id: str) -> list[Path]:
        """The run's files in the table's folder."""
        place = Path(self.table(name).identity.location.removeprefix("file:"))
        return [path for path in place.rglob(f"*oreo-{run_id}*") if path.is_file()] + [
            path for path in place.rglob(f"oreo-{run_id}/**/*.parquet") if path.is_file()
        ]


@pytest.fixture(scope="module")
def wreckage(spark: SparkSession, warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of tables that a killed process left."""
    folder = tmp_path_factory.mktemp("wreck")
    rows = spark.range(ROWS).selectExpr(*SELECT).coalesce(2)
    spark.sql(f"create namespace {NAMESPACE}")
    for name in TABLES:
        rows.write.format("delta").save(str(folder / name))
        rows.writeTo(f"{NAMESPACE}.{name}").using("iceberg").create()
    here = str(Path(__file__).parent)
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    with (folder / "child.log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, f"{here}/crash_child.py", str(warehouse), str(folder)],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + PATIENCE
            while not list((folder / "writing").glob("oreo-writing-run-*")):
                assert child.poll() is None, (folder / "child.log").read_text()[-3000:]
                assert time.monotonic() < deadline
                time.sleep(0.02)
        finally:
            os.killpg(child.pid, signal.SIGKILL)  # the JVM is in the child's own group
            child.wait()
    return folder


@pytest.fixture(params=["delta", "iceberg"])
def wreck(spark: SparkSession, wreckage: Path, request: pytest.FixtureRequest) -> Wreck:
    return Wreck(spark, request.param, wreckage)


@pytest.fixture(scope="module")
def want(spark: SparkSession) -> RowCertificate:
    return certify(spark.range(ROWS).selectExpr(*SELECT))


def test_after_a_kill_every_table_reads_the_same(wreck: Wreck, want: RowCertificate) -> None:
    for name in TABLES:
        assert wreck.rows(name) == want, name


def test_a_staged_layout_is_finished_by_the_next_process(wreck: Wreck, want: RowCertificate) -> None:
    table, staged = wreck.table("staged"), wreck.staged("staged")
    assert table.layout_commits() == []
    assert table.verify(staged).certificate == staged.certificate
    version_of(table.commit(staged, {}))
    assert wreck.rows("staged") == want
    assert sorted(table.blocks().columns[BID].lower) == [0, 1, 2, 3]


def test_a_staged_layout_is_given_up_by_the_next_process(wreck: Wreck, want: RowCertificate) -> None:
    table = wreck.table("abandoned")
    assert wreck.ours("abandoned", "abandoned-run")
    assert table.discard(wreck.staged("abandoned")) == 4
    assert wreck.ours("abandoned", "abandoned-run") == []
    assert wreck.rows("abandoned") == want


def test_a_commit_that_was_not_recorded_is_found_and_its_files_stay(wreck: Wreck, want: RowCertificate) -> None:
    table, staged = wreck.table("committed"), wreck.staged("committed")
    (found,) = table.layout_commits()
    assert (found.run_id, found.layout_id) == ("committed-run", staged.layout_id)
    assert (table.discard(staged), table.sweep("committed-run")) == (0, 0)
    assert version_of(table.commit(staged, {})) == found.version
    assert wreck.rows("committed") == want


def test_half_written_files_are_swept_by_the_run_id_alone(wreck: Wreck, want: RowCertificate) -> None:
    table = wreck.table("writing")
    assert table.sweep("another-run") == 0
    assert table.sweep("writing-run") >= (1 if wreck.format == "delta" else 0)  # Iceberg's may not have begun a file
    assert wreck.ours("writing", "writing-run") == []
    lay_out(table)
    assert wreck.rows("writing") == want
