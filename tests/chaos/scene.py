"""A table and everything that its maintenance leaves in the store: what hostile input is tried on."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from poison import SECRET

import oreo_lakehouse as oreo
from oreo_lakehouse.config import load_config
from oreo_lakehouse.history.compaction import tend
from oreo_lakehouse.maintenance.dossier import open_dossier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "layout.blocks": 4,
    "layout.sample_rows": 500,
    "layout.keep_sample": True,
    "decide.alpha": 2,
    "decide.window": 10,
}


def scene(spark: SparkSession, folder: Path) -> Path:
    """The folder with a Delta table by path, laid out, folded and rolled back, and its store."""
    place = folder / "scene"
    place.mkdir(parents=True)
    table, config = str(place / "table"), load_config(flags={"store": str(place / "store"), **SETTINGS}, environ={})
    columns = f"id, cast(id * 7 % 40 as int) value, if(id % 5 = 0, '{SECRET}', concat('t', id % 9)) text"
    spark.range(0, 400, 1, 4).selectExpr(*columns.split(", ", 2)[:2], columns.split(", ", 2)[2]).write.format(
        "delta"
    ).save(table)
    for number, focus in enumerate(("value = {}", f"text = '{SECRET}' and id > {{}}", "id between {0} and {0} + 9")):
        _asked(spark, table, place, focus, number, config)
        oreo.maintain(spark, table, config)
        if number == 1:
            rows = spark.table(f"delta.`{table}`").limit(20)
            rows.writeTo(f"delta.`{table}`").append()
            oreo.rollback(spark, table, config)
    tend(open_dossier(spark, table, config).history, config.history)
    _asked(spark, table, place, "value < {}", 12, config)
    return place


def _asked(spark: SparkSession, table: str, place: Path, focus: str, number: int, config: oreo.Config) -> None:
    file, first = place / f"log{number}.jsonl", datetime.now(UTC) - timedelta(days=12 - number)
    entries = [
        {
            "statement_text": f"select count(*) from delta.`{table}` where {focus.format(at % 30)}",
            "start_time": str(first + timedelta(minutes=at)),
        }
        for at in range(40)
    ]
    file.write_text("\n".join(map(json.dumps, entries)))
    oreo.import_queries(spark, table, [str(file)], config)
