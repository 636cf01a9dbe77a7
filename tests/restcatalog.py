"""A real Iceberg REST catalog in this process, whose answers can be late, lost or none."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.jvm import compile_java, hadoop_conf, jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG = "rest"
_KEY = f"spark.sql.catalog.{CATALOG}"


def rest_settings() -> dict[str, str]:
    """With which every session finds the catalog, once it is there, at a port that is free now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    kind = {_KEY: "org.apache.iceberg.spark.SparkCatalog", f"{_KEY}.type": "rest"}
    return {**kind, f"{_KEY}.uri": f"http://127.0.0.1:{port}", f"{_KEY}.rest.client.max-retries": "1"}


@contextmanager
def rest_catalog(spark: SparkSession, folder: Path) -> Generator[Any]:
    """An HTTP server over a catalog of its own in `folder`, for a Spark that was started with `rest_settings`."""
    settings = jvm(spark).java.util.HashMap()
    settings.put("uri", f"jdbc:sqlite:{folder}/catalog.db")
    settings.put("warehouse", f"file://{folder}/tables")
    settings.put("jdbc.schema-version", "V1")
    catalog = jvm(spark).org.apache.iceberg.CatalogUtil.loadCatalog(
        "org.apache.iceberg.jdbc.JdbcCatalog", "behind", settings, hadoop_conf(spark)
    )
    source = Path(__file__).with_name("RestCatalog.java").read_text(encoding="utf-8")
    given = spark.sparkContext._gateway.new_array(jvm(spark).java.lang.Object, 2)  # type: ignore[union-attr]
    given[0], given[1] = catalog, str(spark.conf.get(f"{_KEY}.uri")).rpartition(":")[2]
    server = compile_java(spark, source, "RestCatalog").getConstructors()[0].newInstance(given)
    try:
        yield server
    finally:
        server.stop()
