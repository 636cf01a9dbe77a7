"""As a stranger has it: separate processes, no configuration, tables by name through the embedded catalogs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Short-lived JVMs; every one says "Picked up JAVA_TOOL_OPTIONS" on its console, which must not become ours."""
SETUP = """
import oreo_lakehouse
spark = oreo_lakehouse.spark_session()
rows = spark.range(0, 4000, 1, 4).selectExpr("id", "cast(pmod(xxhash64(id), 1000) AS int) AS k")
rows.write.format("delta").saveAsTable("shop")
spark.sql("CREATE NAMESPACE iceberg.db")
rows.writeTo("iceberg.db.shop").using("iceberg").create()
"""


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("OREO_", "SPARK_", "PYSPARK_"))}
    environ["JAVA_TOOL_OPTIONS"] = QUICK_JAVA
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


def script(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def test_tables_by_name_across_processes_and_nothing_but_ours_on_the_console(tmp_path: Path) -> None:
    made = run(tmp_path, sys.executable, "-c", SETUP)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    done = run(tmp_path, script("oreo-maintain"), "shop", "iceberg.db.shop", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["decision"], one["format"], one["rows"]) for one in answers] == [
        ("stay", "delta", 4000),
        ("stay", "iceberg", 4000),
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["spark-warehouse"]
