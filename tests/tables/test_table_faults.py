"""Storage that fills up or refuses to be written: a clear error, the table untouched, nothing left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from iceberg_support import java_new
from lake import BID, Modulo, lay_out, run_id, staged_layout

from oreo_lakehouse.errors import TableError
from oreo_lakehouse.jvm import compile_java, hadoop_conf, jvm

if TYPE_CHECKING:
    from lake import Lake
    from pyspark.sql import SparkSession

ROOM = 2**63 - 1
METADATA = {"delta": "/_delta_log/", "iceberg": "/metadata/"}


@pytest.fixture(scope="module")
def storage(spark: SparkSession) -> Iterator[Any]:
    """The scheme `faulty:`. Hadoop looks a scheme's class up once, and finds this instance ever after."""
    made = java_new(
        spark, compile_java(spark, Path(__file__).with_name("FaultyStorage.java").read_text(), "FaultyStorage")
    )
    conf = hadoop_conf(spark)
    conf.setClassLoader(made.getClass().getClassLoader())
    conf.set("fs.faulty.impl", made.getClass().getName())
    jvm(spark).org.apache.spark.SparkEnv.get().conf().set(
        "spark.delta.logStore.faulty.impl", "io.delta.storage.LocalLogStore"
    )
    found = jvm(spark).org.apache.hadoop.fs.FileSystem.get(jvm(spark).java.net.URI.create("faulty:///"), conf)
    yield found
    found.close()


@pytest.fixture
def healthy(storage: Any) -> Iterator[Any]:
    yield storage
    storage.fault(ROOM, None)


def files_below(folder: Path) -> set[Path]:
    """All files; metadata that Iceberg's own commits prepare and abandon is Iceberg's own matter."""
    return {p for p in folder.rglob("*") if p.is_file() and "metadata" not in p.parts and p.suffix != ".crc"}


def test_a_full_or_closed_storage_leaves_the_table_as_it_was(lake: Lake, healthy: Any, tmp_path: Path) -> None:
    name, table = lake.create(clause=f"location 'faulty://{tmp_path}/t'", rows=4000)
    assert table.blocks().names[0]
    lay_out(table)
    want, version, before = lake.certificate(name), table.version(), files_below(tmp_path)
    plan = table.plan(Modulo(5), BID)

    healthy.fault(plan.bytes // 2, None)
    with pytest.raises(TableError, match="No space left on device") as full:
        table.stage(plan, run_id())
    healthy.fault(ROOM, None)
    assert name in str(full.value)
    assert files_below(tmp_path) == before
    assert (lake.certificate(name), table.version()) == (want, version)

    staged = staged_layout(table, Modulo(5))
    assert len(files_below(tmp_path)) > len(before)
    healthy.fault(ROOM, METADATA[lake.format])
    with pytest.raises(TableError, match=r"may not be written by this user, nothing was changed: .*Permission denied"):
        table.commit(staged, {})
    with pytest.raises(TableError, match="Permission denied"):
        table.revert(table.layout_commits()[0], run_id())
    healthy.fault(ROOM, None)
    assert files_below(tmp_path) == before
    assert (lake.certificate(name), table.version()) == (want, version)
    lay_out(table, Modulo(3))
    assert lake.certificate(name) == want
