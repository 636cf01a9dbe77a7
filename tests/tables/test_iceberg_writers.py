"""Appenders that never pause, beside layouts that never pause: nobody fails, and every acknowledged row is there."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from iceberg_support import make_table, values
from lake import Modulo, lay_out, rounds
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from oreo_lakehouse.jvm import error_class, error_reason

if TYPE_CHECKING:
    from conftest import Place
    from pyspark.sql import SparkSession


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
