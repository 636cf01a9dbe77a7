"""A Spark session for histories that are played outside of the test suite, with pruning on."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from quickspark import QUICK, without_processes
from restcatalog import rest_settings

from oreo_lakehouse.config import load_config
from oreo_lakehouse.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def playground(master: str = "local[2]") -> Generator[SparkSession]:
    """Spark with a warehouse of its own, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="oreo-chaos-"))
    flags: dict[str, Any] = {
        "spark.master": master,
        "spark.warehouse": str(folder),
        "spark.driver_memory": "3g",
        "spark.conf": {**QUICK, **rest_settings()},
    }
    spark = spark_session(load_config(flags=flags, environ={}))
    without_processes(spark)
    try:
        yield spark
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def warehouse_of(spark: SparkSession) -> Path:
    """Where the session keeps its tables, and pyiceberg finds their catalog."""
    return Path(str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:"))
