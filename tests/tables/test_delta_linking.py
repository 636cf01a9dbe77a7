"""A commit of ours on this machine's disk never takes the place of another process's."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from lake import Lake, lay_out
from py4j.protocol import Py4JJavaError

from oreo_lakehouse.jvm import jvm
from oreo_lakehouse.tables.delta.actions import link_commits
from oreo_lakehouse.tables.delta.log import Log

TRIES = 400
"""Delta's own commits replaced another process's 6 times in 4,000 of these."""


@pytest.fixture
def log(spark: Any, tmp_path: Path) -> Log:
    spark.range(10).write.format("delta").save(str(tmp_path / "t"))
    return Log.for_path(spark, str(tmp_path / "t"))


def keeps(log: Log, version: int, lines: list[str]) -> bool:
    """Whether this version became Delta's."""
    java = jvm(log.spark)
    path = java.org.apache.hadoop.fs.Path(log.java.logPath(), f"{version:020d}.json")
    items = java.scala.jdk.javaapi.CollectionConverters.asScala(java.java.util.List.of(*lines).iterator())
    try:
        log.java.store().write(path, items, False, log.java.newDeltaHadoopConf())
    except Py4JJavaError as error:
        if "FileAlreadyExistsException" not in str(error.java_exception):
            raise
        return False
    return True


def delegate(log: Log) -> str:
    return str(log.java.store().getDelegate(log.java.logPath()).logStoreImpl().getClass().getSimpleName())


def test_a_layout_is_committed_so(delta: Lake) -> None:
    name, table = delta.create()
    assert delegate(Log.for_name(delta.spark, name)) == "HDFSLogStore"
    lay_out(table)
    assert delegate(Log.for_name(delta.spark, name)) == "LinkedLog"


def test_whoever_is_faster_has_the_version(log: Log, tmp_path: Path) -> None:
    assert delegate(log) == "HDFSLogStore"
    assert link_commits(log.spark, log.java)
    assert link_commits(log.spark, log.java)  # once is enough
    folder, draw = tmp_path / "t" / "_delta_log", random.Random(1)
    started = time.perf_counter()
    assert all(keeps(log, version, ["{}"]) for version in range(1000, 1050))
    each, won = (time.perf_counter() - started) / 50, [0, 0]

    def other(version: int) -> None:
        mine = tmp_path / str(version)
        mine.write_text("theirs")
        time.sleep(draw.random() * each)
        try:
            os.link(mine, folder / f"{version:020d}.json")
            won[0] += 1
        except FileExistsError:
            pass

    for version in range(2000, 2000 + TRIES):
        process = threading.Thread(target=other, args=(version,))
        process.start()
        won[1] += keeps(log, version, ["ours"])
        process.join()
    assert sum(won) == TRIES
    assert not list(folder.glob(".*.tmp"))


def test_it_holds_what_was_committed(log: Log, tmp_path: Path) -> None:
    assert link_commits(log.spark, log.java)
    lines = ['{"a": 1}', '{"b": "ä\\n"}']
    assert keeps(log, 7, lines)
    file = tmp_path / "t" / "_delta_log" / f"{7:020d}.json"
    assert file.read_text() == "".join(f"{line}\n" for line in lines)
    assert not keeps(log, 7, ["{}"])
    assert file.read_text() == "".join(f"{line}\n" for line in lines)


def test_a_disk_without_links_is_left_to_delta(log: Log, tmp_path: Path) -> None:
    assert link_commits(log.spark, log.java)
    ours = log.java.store().getDelegate(log.java.logPath()).logStoreImpl()
    written, path = tmp_path / "written", jvm(log.spark).org.apache.hadoop.fs.Path(log.java.logPath(), "9.json")
    written.write_text("{}\n[]\n")
    given = (path, jvm(log.spark).java.io.File(str(written)), log.java.newDeltaHadoopConf())
    ours.again(*given, jvm(log.spark).java.io.IOException("no links"))
    assert (tmp_path / "t" / "_delta_log" / "9.json").read_text() == "{}\n[]\n"
    with pytest.raises(Py4JJavaError, match="FileAlreadyExists"):
        ours.again(*given, jvm(log.spark).java.io.IOException("no links"))
