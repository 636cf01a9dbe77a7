"""Delta's file actions in bulk, by the Java classes beside this module.

A table may have tens of thousands of files, and one py4j call for each takes seconds. So lists of actions stay in the
JVM; Python holds handles on them, and what it must see crosses as one string of JSON lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.jvm import compile_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_compiled: dict[tuple[str, str], Any] = {}


def actions(spark: SparkSession) -> Any:
    """What can be done with lists of files."""
    return _unit(spark, "Actions")


def past(spark: SparkSession) -> Any:
    """What the log tells of earlier commits."""
    return _unit(spark, "Past")


def link_commits(spark: SparkSession, log: Any) -> bool:
    """Whether a commit to this Java DeltaLog replaces nobody's from now on, also on this machine's disk, where Delta
    by itself cannot tell for sure that nobody was faster."""
    return bool(_unit(spark, "LinkedLog").into(log))


def _unit(spark: SparkSession, name: str) -> Any:
    """The Java object, compiled once for a Spark application."""
    key = (spark.sparkContext.applicationId, name)
    if key not in _compiled:
        source = files(__package__ or "").joinpath(f"{name}.java").read_text("utf-8")
        _compiled[key] = compile_java(spark, source, name).newInstance()
    return _compiled[key]


def documents(lines: str) -> list[dict[str, Any]]:
    """JSON lines as Python values."""
    return [json.loads(line) for line in lines.split("\n") if line]


def json_lines(items: Iterable[dict[str, Any]]) -> str:
    """Python values as JSON lines."""
    return "\n".join(json.dumps(item, separators=(",", ":")) for item in items)
