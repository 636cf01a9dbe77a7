"""Spark's settings for tables of a few hundred rows, in the suite and in the long runs beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oreo_lakehouse.jvm import compile_java, jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = {
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # or VACUUM has 10,000 tasks
    # A few hundred rows are read before Spark's own code generation would pay, which is a third of the suite's time.
    # Expressions are compared with both.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.explainMode": "simple",
}
SHORT = {
    # Little in the suite runs often enough for the second compiler, which took a third of the time. The first alone has
    # room for a fifth of Spark's code only, and would throw out and compile again all the time.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m "
    "-XX:+UseSerialGC -Xms1500m -Xmn800m",
}
"""For a JVM that lives for minutes."""


def without_processes(spark: SparkSession) -> None:
    """Let Hadoop ask the system for a file's mode and links itself, not through processes: a tenth of the CPU time."""
    made = compile_java(spark, Path(__file__).with_name("LocalFiles.java").read_text(), "LocalFiles")
    systems, root = jvm(spark).org.apache.hadoop.fs.FileSystem, jvm(spark).java.net.URI.create("file:///")
    conf = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    conf.setClassLoader(made.getClassLoader())
    conf.set("fs.AbstractFileSystem.file.impl", made.getName())
    # Hadoop keeps one FileSystem for all: tasks, whose settings know no class of ours, find it there too.
    ours = jvm(spark).org.apache.hadoop.conf.Configuration(conf)
    ours.set("fs.file.impl", f"{made.getName()}$Plain")
    systems.get(root, conf).close()
    name = systems.get(root, ours).getClass().getSimpleName()
    assert name == "Plain", f"Hadoop's local files are still those of {name}"
