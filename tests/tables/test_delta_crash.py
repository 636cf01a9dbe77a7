"""kill -9 after each step: the table reads the same, and the next process finishes the layout or cleans up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from delta_child import TABLES
from lake import BID, lay_out, version_of

from oreo_lakehouse.tables.certificate import certify
from oreo_lakehouse.tables.contract import RowCertificate, Staged
from oreo_lakehouse.tables.delta import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 800


@pytest.fixture(scope="module")
def wreck(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of tables that a killed process left."""
    folder = tmp_path_factory.mktemp("wreck")
    rows = spark.range(ROWS).selectExpr("id", "cast(id % 7 as int) v", "cast(id as string) s").coalesce(2)
    for name in TABLES:
        rows.write.format("delta").save(str(folder / name))
    here = str(Path(__file__).parent)
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    with (folder / "child.log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, f"{here}/delta_child.py", str(folder)],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + 1200
            while not list((folder / "writing").glob("oreo-writing-run-*")):
                assert child.poll() is None, (folder / "child.log").read_text()[-3000:]
                assert time.monotonic() < deadline
                time.sleep(0.02)
        finally:
            os.killpg(child.pid, signal.SIGKILL)  # the JVM is in the child's own group
            child.wait()
    return folder


def staged_of(wreck: Path, name: str) -> Staged:
    fields = json.loads((wreck / f"{name}.json").read_text())
    fields["certificate"] = RowCertificate(**fields["certificate"])
    return Staged(**{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()})


def rows_of(spark: SparkSession, folder: Path) -> RowCertificate:
    return certify(spark.read.format("delta").load(str(folder)), [BID])


@pytest.mark.parametrize("name", TABLES)
def test_after_a_kill_the_table_reads_the_same(spark: SparkSession, wreck: Path, name: str) -> None:
    want = certify(spark.range(ROWS).selectExpr("id", "cast(id % 7 as int) v", "cast(id as string) s"))
    assert rows_of(spark, wreck / name) == want


def test_a_staged_layout_is_finished_by_the_next_process(spark: SparkSession, wreck: Path) -> None:
    table = DeltaTable.for_path(spark, str(wreck / "staged"))
    want = rows_of(spark, wreck / "staged")
    staged = staged_of(wreck, "staged")
    assert table.verify(staged).certificate == staged.certificate
    version_of(table.commit(staged, {}))
    assert rows_of(spark, wreck / "staged") == want
    assert sorted(table.blocks().columns[BID].lower) == [0, 1, 2, 3]


def test_a_staged_layout_is_given_up_by_the_next_process(spark: SparkSession, wreck: Path) -> None:
    table = DeltaTable.for_path(spark, str(wreck / "abandoned"))
    want = rows_of(spark, wreck / "abandoned")
    assert table.layout_commits() == []
    assert table.discard(staged_of(wreck, "abandoned")) == 4
    assert not list((wreck / "abandoned").glob("oreo-*"))
    assert rows_of(spark, wreck / "abandoned") == want


def test_a_commit_that_was_not_recorded_is_found_and_its_files_stay(spark: SparkSession, wreck: Path) -> None:
    table = DeltaTable.for_path(spark, str(wreck / "committed"))
    staged = staged_of(wreck, "committed")
    (found,) = table.layout_commits()
    assert (found.run_id, found.layout_id) == ("committed-run", staged.layout_id)
    assert (table.discard(staged), table.sweep("committed-run")) == (0, 0)
    assert version_of(table.commit(staged, {})) == found.version
    assert table.blocks().total_rows == ROWS


def test_half_written_files_are_swept_by_the_run_id_alone(spark: SparkSession, wreck: Path) -> None:
    table = DeltaTable.for_path(spark, str(wreck / "writing"))
    want = rows_of(spark, wreck / "writing")
    assert table.sweep("another-run") == 0
    assert table.sweep("writing-run") >= 1
    assert not list((wreck / "writing").glob("oreo-*"))
    lay_out(table)
    assert rows_of(spark, wreck / "writing") == want
