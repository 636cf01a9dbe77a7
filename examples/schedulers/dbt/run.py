"""`dbt build` with maintenance after every OPTIMIZE: dbt runs in this process, on the session that the hook listens to.

    uv venv dbt-env
    uv pip install --python dbt-env "dbt-core<1.11" "dbt-spark[session]" oreo-lakehouse
    dbt-env/bin/python run.py                                in this folder; arguments are dbt's own

It ran so with dbt-core 1.10 and dbt-spark 1.11 on PySpark 4.1: the model was built, and the hook answered its OPTIMIZE.
The project's post-hook, `OPTIMIZE {{ this }}`, stays plain SQL. This is for dbt-spark's method `session`. With any
other method (thrift, http, Databricks) the models are built in another application, so maintenance is a command after:

    dbt build && oreo-maintain 'shop.*' --after-optimize
"""

from __future__ import annotations

import sys

from dbt.cli.main import dbtRunner

import oreo_lakehouse as oreo

spark = oreo.spark_session()  # or the session you have; dbt-spark takes the one that is there
spark.sql("CREATE DATABASE IF NOT EXISTS shop")
with oreo.after_optimize(spark, tables=["shop.*"], at_end=True) as hook:
    built = dbtRunner().invoke(sys.argv[1:] or ["build", "--profiles-dir", "."])
for run in hook.outcomes:
    print(run.table, f"{run.outcome.decision}: {run.outcome.reason}" if run.outcome else run.error)
sys.exit(0 if built.success else 1)
