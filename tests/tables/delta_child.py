"""A maintenance process that will be killed: leaves one table at each step of a layout. Run by test_delta_crash.py."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from lake import BID, Modulo

from oreo_lakehouse.config import load_config
from oreo_lakehouse.session import spark_session
from oreo_lakehouse.tables.delta import DeltaTable

TABLES = ("planned", "staged", "abandoned", "committed", "writing")


def main(folder: Path) -> None:
    settings = {
        "spark.sql.catalogImplementation": "in-memory",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # as in conftest.py
    }
    flags = {"spark.warehouse": str(folder / "warehouse"), "spark.driver_memory": "1g", "spark.conf": settings}
    spark = spark_session(load_config(flags=flags, environ={}))
    tables = {name: DeltaTable.for_path(spark, str(folder / name)) for name in TABLES}
    tables["planned"].plan(Modulo(), BID)
    for name in ("staged", "abandoned", "committed"):
        staged = tables[name].stage(tables[name].plan(Modulo(), BID), f"{name}-run")
        tables[name].verify(staged)
        (folder / f"{name}.json").write_text(json.dumps(asdict(staged)))
        if name == "committed":
            tables[name].commit(staged, {})
    tables["writing"].stage(tables["writing"].plan(Modulo(400), BID), "writing-run")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
