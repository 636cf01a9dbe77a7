"""A Spark session for histories that are played outside of the test suite, with pruning on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.config import load_config
from oreo_lakehouse.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = {
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # or VACUUM has 10,000 tasks
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.explainMode": "simple",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Xms1500m -Xmn800m",
}
"""For tables of a few hundred rows: compiling code for a query would take most of its time."""


@contextmanager
def playground(master: str = "local[2]") -> Generator[SparkSession]:
    """Spark with a warehouse of its own, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="oreo-chaos-"))
    flags: dict[str, Any] = {
        "spark.master": master,
        "spark.warehouse": str(folder),
        "spark.driver_memory": "3g",
        "spark.conf": QUICK,
    }
    spark = spark_session(load_config(flags=flags, environ={}))
    try:
        yield spark
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
