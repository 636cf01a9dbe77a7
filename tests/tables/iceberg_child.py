"""A process to be killed: it commits a layout of one table, stages one of a second and is busy staging a third."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from lake import BID, Modulo, staged_layout

from oreo_lakehouse.config import load_config
from oreo_lakehouse.session import spark_session
from oreo_lakehouse.tables.contract import Committed
from oreo_lakehouse.tables.iceberg import IcebergTable


class Slow(Modulo):
    """Takes a second for every row."""

    kind = "slow"

    def sql(self) -> str:
        return f"{super().sql()} + CAST(0 * length(reflect('java.lang.Thread', 'sleep', CAST(1000 AS BIGINT))) AS INT)"


def main(warehouse: str, namespace: str, folder: Path) -> None:
    flags = {"spark.warehouse": warehouse, "spark.conf": {"spark.sql.catalogImplementation": "in-memory"}}
    spark = spark_session(load_config(flags=flags, environ={}))
    done, staged, busy = (IcebergTable.for_name(spark, f"{namespace}.{name}") for name in ("done", "staged", "busy"))
    for table, commits in ((done, True), (staged, False)):
        files = staged_layout(table)
        name = table.identity.name.rpartition(".")[2]
        (folder / f"{name}.json").write_text(json.dumps(asdict(files)))
        if commits:
            assert isinstance(table.commit(files, {}), Committed)
    plan = busy.plan(Slow(), BID)
    (folder / "busy").touch()
    busy.stage(plan, "never")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
