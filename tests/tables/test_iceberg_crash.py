"""A process that is killed at any point leaves tables that read the same, and another process finishes its work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from iceberg_child import main as child
from iceberg_support import make_table, rows_of, values
from lake import Modulo, lay_out, rounds
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from oreo_lakehouse.jvm import error_class, error_reason
from oreo_lakehouse.tables.contract import Committed, RowCertificate, Staged
from oreo_lakehouse.tables.iceberg.manifests import local_path

if TYPE_CHECKING:
    from conftest import Place
    from pyspark.sql import SparkSession

PATIENCE = 300


def read_staged(file: Path) -> Staged:
    content: dict[str, Any] = json.loads(file.read_text())
    content["certificate"] = RowCertificate(**content["certificate"])
    return Staged(**content | {name: tuple(content[name]) for name in ("paths", "added", "removed")})


def test_work_of_a_killed_process_is_found_finished_or_taken_back(
    spark: SparkSession, place: Place, warehouse: Path
) -> None:
    names = ("done", "staged", "busy")
    tables = {name: make_table(spark, f"{place.iceberg}.{name}", files=2, rows=100) for name in names}
    before = {name: rows_of(spark, f"{place.iceberg}.{name}") for name in names}
    command = [sys.executable, child.__globals__["__file__"], str(warehouse), place.iceberg, str(place.folder)]
    with (place.folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + PATIENCE
        while not (place.folder / "busy").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(2)  # let the third table's rewrite begin
        assert process.poll() is None, (place.folder / "log").read_text()[-2000:]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    assert {name: rows_of(spark, f"{place.iceberg}.{name}") for name in names} == before
    done, staged = read_staged(place.folder / "done.json"), read_staged(place.folder / "staged.json")
    assert [commit.run_id for commit in tables["done"].layout_commits()] == [done.run_id]
    assert tables["done"].commit(done, {}) == Committed(tables["done"].version())
    assert tables["done"].discard(done) == 0
    assert tables["staged"].layout_commits() == tables["busy"].layout_commits() == []
    assert tables["staged"].verify(staged).certificate == staged.certificate
    assert isinstance(tables["staged"].commit(staged, {}), Committed)
    busy = Path(local_path(tables["busy"].identity.location), "data", "oreo-never")
    half_written = len(list(busy.glob("*.parquet")))
    assert tables["busy"].sweep("never") == half_written
    assert tables["done"].sweep(done.run_id) == 0
    assert not busy.exists()
    lay_out(tables["busy"])
    assert {name: rows_of(spark, f"{place.iceberg}.{name}") for name in names} == before


def test_writers_that_never_pause_neither_fail_nor_lose_a_row(
    spark: SparkSession, place: Place, warehouse: Path
) -> None:
    name = f"{place.iceberg}.t"
    table = make_table(spark, name, files=2, rows=100, properties={"commit.retry.num-retries": "20"})
    stop = threading.Event()
    appended: dict[str, list[int]] = {"spark": [], "pyiceberg": []}
    failures: list[str] = []

    def by_spark() -> None:
        session, key = spark.newSession(), 10_000
        while not stop.wait(0.2):
            session.sql(f"INSERT INTO {name} (id, k, s) VALUES ({key}, 1, 'spark')")
            appended["spark"].append(key)
            key += 1

    def by_pyiceberg() -> None:
        catalog = SqlCatalog("iceberg", uri=f"sqlite:///{warehouse}/_iceberg.db", warehouse=str(warehouse))
        key = 20_000
        while not stop.wait(0.2):
            row = pa.table({"id": pa.array([key], pa.int64()), "k": pa.array([2], pa.int32()), "s": ["pyiceberg"]})
            try:
                catalog.load_table(name.partition(".")[2]).append(row)
            except CommitFailedException:
                continue  # somebody else was faster, and pyiceberg leaves the retry to its caller
            appended["pyiceberg"].append(key)
            key += 1

    def guarded(write: Any) -> None:
        try:
            write()
        except BaseException as error:
            failures.append(f"{error_class(error)}: {error_reason(error)}")

    lay_out(table)  # the BID column is there before the writers start
    writers = [threading.Thread(target=guarded, args=(write,)) for write in (by_spark, by_pyiceberg)]
    for writer in writers:
        writer.start()
    try:
        for blocks in rounds():
            lay_out(table, Modulo(blocks))
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    print(", ".join(f"{len(keys)} appends by {who}" for who, keys in appended.items()))
    assert failures == []
    assert min(len(keys) for keys in appended.values()) > 0
    expected = sorted([*range(200), *appended["spark"], *appended["pyiceberg"]])
    spark.catalog.refreshTable(name)
    assert [key for (key,) in values(spark, f"SELECT id FROM {name} ORDER BY id")] == expected
