"""A maintenance process that will be killed: leaves a table of each format at each step of a layout.

Run by test_table_crash.py. One JVM for both formats: starting it takes longer than all that it does.
"""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import asdict
from pathlib import Path

from lake import BID, Modulo

from oreo_lakehouse.config import load_config
from oreo_lakehouse.session import spark_session
from oreo_lakehouse.tables.contract import Committed, Table
from oreo_lakehouse.tables.delta import DeltaTable
from oreo_lakehouse.tables.iceberg import IcebergTable

TABLES = ("planned", "staged", "abandoned", "committed", "writing")
NAMESPACE = "iceberg.wreck"
SETTINGS = {
    "spark.sql.catalogImplementation": "in-memory",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # over before more would pay
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class Slow(Modulo):
    """Takes a second for every row."""

    kind = "slow"

    def sql(self) -> str:
        return f"{super().sql()} + CAST(0 * length(reflect('java.lang.Thread', 'sleep', CAST(1000 AS BIGINT))) AS INT)"


def leave(folder: Path, name: str, table: Table) -> None:
    """One table at the step that its name says."""
    plan = table.plan(Modulo(), BID)
    if name == "planned":
        return
    staged = table.stage(plan, f"{name}-run")
    table.verify(staged)
    (folder / f"{table.format}-{name}.json").write_text(json.dumps(asdict(staged)))
    if name == "committed":
        assert isinstance(table.commit(staged, {}), Committed)


def main(warehouse: str, folder: Path) -> None:
    # Four slots: two of them sleep in Iceberg's rewrite while Delta's goes on.
    flags = {"spark.warehouse": warehouse, "spark.master": "local[4]", "spark.conf": SETTINGS}
    spark = spark_session(load_config(flags=flags, environ={}))
    for name in TABLES[:-1]:
        leave(folder, name, DeltaTable.for_path(spark, str(folder / name)))
        leave(folder, name, IcebergTable.for_name(spark, f"{NAMESPACE}.{name}"))
    delta, iceberg = (
        DeltaTable.for_path(spark, str(folder / "writing")),
        IcebergTable.for_name(spark, f"{NAMESPACE}.writing"),
    )
    plan = iceberg.plan(Slow(), BID)
    threading.Thread(target=lambda: iceberg.stage(plan, "writing-run"), daemon=True).start()
    delta.stage(delta.plan(Modulo(400), BID), "writing-run")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
