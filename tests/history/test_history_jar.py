"""The jar captures in processes of their own, by configuration only: spark-sql, and a Connect server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from oreo_lakehouse.history.jar import PLUGIN, write_jar
from oreo_lakehouse.history.record import QueryRecord
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.predicates.tree import And, Compare, IsNull, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.store import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HOME = Path(pyspark.__file__).parent


@pytest.fixture(scope="module")
def settings(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a process needs to capture into a store of its own, and a table `t` beside that."""
    folder = tmp_path_factory.mktemp("jar")
    jar = write_jar(spark, folder / "oreo-capture.jar")
    assert jar.read_bytes() == write_jar(spark, folder / "again.jar").read_bytes()
    spark.range(100).selectExpr("id", "concat('s', id) AS secret").write.format("delta").save(str(folder / "t"))
    return {
        "spark.jars": f"{jar},{spark.sparkContext.getConf().get('spark.jars')}",
        "spark.plugins": PLUGIN,
        "spark.oreo.store": str(folder / "store"),
        "spark.oreo.redact": "secret",
        "spark.oreo.storeSql": "true",
        "spark.oreo.flushSeconds": "1",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # as in conftest.py
    }


def command(program: str, settings: dict[str, str], *arguments: str) -> list[str]:
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return [str(HOME / "bin" / program), "--master", "local[1]", *confs, *arguments]


def records(store: str) -> Sequence[QueryRecord]:
    uuids = [folder.name for folder in Path(store).iterdir()] if Path(store).exists() else []
    return HistoryStore(LocalStore(store), uuids[0]).read_since({})[0] if uuids else []


ENVIRONMENT = {**os.environ, "SPARK_HOME": str(HOME)}


def test_spark_sql_captures_with_the_jar_alone(settings: dict[str, str], tmp_path: Path) -> None:
    table = Path(settings["spark.oreo.store"]).parent / "t"
    own = settings | {"spark.oreo.store": str(tmp_path / "store")}
    statement = f"SELECT count(id) FROM delta.`{table}` WHERE id > 90 AND secret > 's92'"
    run = command("spark-sql", own, "-e", statement)
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "7"
    [record] = records(own["spark.oreo.store"])
    assert isinstance(record.predicate, And)
    assert {c for c in record.predicate.children if not isinstance(c, IsNull)} == {
        Compare("id", Op.GT, Kind.INTEGER, 90)
    }
    assert any("redacted: secret GreaterThan" in reason for reason in record.reasons)
    assert record.sql is None  # a statement has the redacted literals, too


CLIENT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
print(spark.sql(f"SELECT count(id) AS n FROM delta.`{sys.argv[2]}` WHERE id < 40").collect()[0].n)
"""


def test_a_connect_server_captures_what_its_clients_ask(settings: dict[str, str], tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    table = Path(settings["spark.oreo.store"]).parent / "t"
    own = settings | {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
    }
    start = command("spark-submit", own, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer")
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [*start, "spark-internal"], cwd=tmp_path, env=ENVIRONMENT, stdout=log, stderr=log, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 300
        while not reachable(port):
            assert server.poll() is None, (tmp_path / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()[-2000:]
            time.sleep(0.5)
        client = [sys.executable, "-c", CLIENT, f"sc://127.0.0.1:{port}", str(table)]
        done = subprocess.run(client, capture_output=True, text=True, cwd=tmp_path, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.strip() == "40"
        while not records(own["spark.oreo.store"]) and time.monotonic() < deadline:
            time.sleep(0.5)
    finally:
        os.killpg(server.pid, 15)
        server.wait(60)
    [record] = records(own["spark.oreo.store"])
    assert isinstance(record.predicate, And)
    assert Compare("id", Op.LT, Kind.INTEGER, 40) in record.predicate.children
    assert (record.source, record.status) == ("capture", "finished")


def reachable(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
