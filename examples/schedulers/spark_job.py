"""A job for a cluster: maintains tables in the session that is there, and says how it went, one JSON line a table.

    spark-submit spark_job.py db.orders db.events                  after somebody else's OPTIMIZE, or without one
    spark-submit spark_job.py --optimize db.orders                 OPTIMIZE first, maintenance by the hook after it

Spark, its catalogs and its Delta or Iceberg jars are the cluster's: nothing is configured here. The driver needs this
package (a wheel in --py-files is not enough, it has dependencies: install it, or ship an environment by --archives).

- EMR: a step of type Spark with these arguments, or `aws emr add-steps … Type=Spark,Args=[spark_job.py,db.orders]`.
- Databricks: a job with a Python script task on a single-user job cluster, this file with its parameters, the package
  as a library of the cluster. Serverless and shared clusters are Spark Connect, which is refused with the reason.

Settings: oreo.toml where the driver starts, or OREO_CONFIG. Exit codes as of oreo-maintain: 1 come again later, 2 could
not run, 3 not known yet.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import oreo_lakehouse as oreo


def main(arguments: list[str]) -> int:
    tables = [argument for argument in arguments if argument != "--optimize"]
    spark = SparkSession.builder.getOrCreate()
    worst = 0
    if "--optimize" in arguments:
        with oreo.after_optimize(spark, tables=tables) as hook:
            for table in tables:
                spark.sql(f"OPTIMIZE {table}")
        for run in hook.outcomes:
            print(json.dumps(run.outcome.to_json() if run.outcome else {"table": run.table, "error": str(run.error)}))
            worst = max(worst, run.exit_code)
        return worst
    for table in tables:
        try:
            print(json.dumps(oreo.maintain(spark, table).to_json()))
        except oreo.OreoError as error:
            print(json.dumps({"table": table, "error": str(error)}))
            worst = max(worst, error.exit_code)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
