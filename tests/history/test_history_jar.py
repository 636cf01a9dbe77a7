"""The jar captures in a process of its own, by configuration only."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from oreo_lakehouse.history.jar import PLUGIN, write_jar
from oreo_lakehouse.history.store import HistoryStore
from oreo_lakehouse.predicates.tree import And, Compare, Op
from oreo_lakehouse.predicates.values import Kind
from oreo_lakehouse.store import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_spark_sql_captures_with_the_jar_alone(spark: SparkSession, tmp_path: Path) -> None:
    jar = write_jar(spark, tmp_path / "oreo-capture.jar")
    again = write_jar(spark, tmp_path / "again.jar")
    assert jar.read_bytes() == again.read_bytes()
    table, store = tmp_path / "t", tmp_path / "store"
    spark.range(100).write.format("delta").save(str(table))
    packages = str(spark.conf.get("spark.jars"))
    settings = {
        "spark.jars": f"{jar},{packages}",
        "spark.plugins": PLUGIN,
        "spark.oreo.store": str(store),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-sql"), "--master", "local[1]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["-e", f"SELECT count(id) FROM delta.`{table}` WHERE id > 90"]
    environment = {**os.environ, "SPARK_HOME": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "9"
    [uuid] = [folder.name for folder in store.iterdir()]
    [record] = HistoryStore(LocalStore(str(store)), uuid).read_since({})[0]
    assert isinstance(record.predicate, And)
    assert Compare("id", Op.GT, Kind.INTEGER, 90) in record.predicate.children
