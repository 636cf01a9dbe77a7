"""Where Spark is somebody else's: a job under spark-submit uses the session that is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyspark
import pytest
from deltalake import write_deltalake

from oreo_lakehouse.config import load_config
from oreo_lakehouse.session import spark_settings

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]  # whose start has fetched the packages

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # over before the second compiler would pay
HOME = Path(__file__).parent.parent.parent
SPARK = Path(pyspark.__file__).parent
ENVIRON = {key: value for key, value in os.environ.items() if not key.startswith(("OREO_", "SPARK_", "PYSPARK_"))}
JOB = """
import atexit, sys
import oreo_lakehouse as oreo
from pyspark.sql import SparkSession
sys.path.insert(0, sys.argv[1])
import spark_job

table = sys.argv[2]
print(spark_job.main([table, table + "/none"]))
print(spark_job.main(["--optimize", f"delta.`{table}`"]))
atexit.register(lambda: print([run.outcome.decision for run in hook.outcomes]))
spark = SparkSession.builder.getOrCreate()
hook = oreo.after_optimize(spark)
spark.sql(f"OPTIMIZE delta.`{table}`")
"""


def delta_table(folder: Path) -> str:
    """Eight files whose rows came in another order than the queries ask for, made without a JVM."""
    for part in range(8):
        ids = np.arange(1000 * part, 1000 * (part + 1))
        rows = pa.table({"id": ids, "k": pa.array(ids * 7919 % 1000, pa.int32())})
        write_deltalake(str(folder), rows, mode="append")
    return str(folder)


def test_a_job_under_spark_submit_uses_the_session_that_is_there(tmp_path: Path) -> None:
    conf = {
        "spark.sql.catalogImplementation": "in-memory",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
    }
    settings = spark_settings(load_config(flags={"spark.warehouse": str(tmp_path), "spark.conf": conf}, environ={}))
    job = tmp_path / "job.py"
    job.write_text(JOB)
    done = subprocess.run(
        [
            str(SPARK / "bin" / "spark-submit"),
            *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
            *(str(job), str(HOME / "examples" / "schedulers"), delta_table(tmp_path / "orders")),
        ],
        env=ENVIRON | {"SPARK_HOME": str(SPARK), "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    maintained, missing, worst, hooked, none_failed, at_exit = done.stdout.splitlines()
    assert json.loads(maintained)["rows"] == 8000
    assert "there is nothing at" in json.loads(missing)["error"]
    assert (worst, none_failed) == ("2", "0")
    assert json.loads(hooked)["version_before"] == 8, "the hook ran before its OPTIMIZE had ended"
    assert at_exit == "['stay']"
