"""Spark's settings for tables of a few hundred rows, in the suite and in the long runs beside it."""

from __future__ import annotations

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
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Xms1500m -Xmn800m",
}
