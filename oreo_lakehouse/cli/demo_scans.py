"""What the demo's queries read: files, rows and bytes, as Spark's own scans report them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.cli.demo_data import Focus, query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIED = 2
"""How many queries of a focus are really run, before and after."""
METRICS = {
    "files": ("numFiles", "resultDataFiles"),
    "rows": ("numOutputRows",),
    "bytes": ("filesSize", "totalDataFileSize"),
}
"""What Delta's and Iceberg's scans call the three numbers."""


@dataclass(frozen=True)
class Scanned:
    """What Spark's scans report, a query."""

    files: float
    rows: float
    bytes: float


def scan(spark: SparkSession, table: str, focus: Focus) -> Scanned:
    """Run some of the focus's queries and read what their scans report."""
    totals = dict.fromkeys(METRICS, 0.0)
    step = len(focus.queries) // TRIED
    for condition in focus.queries[::step][:TRIED]:
        frame: Any = spark.sql(query(table, condition))
        frame.collect()
        for leaf in _leaves(frame._jdf.queryExecution().executedPlan()):
            for name, keys in METRICS.items():
                found = [leaf.metrics().get(key) for key in keys]
                totals[name] += sum(float(metric.get().value()) for metric in found if metric.isDefined())
    return Scanned(**{name: total / TRIED for name, total in totals.items()})


def _leaves(plan: Any) -> list[Any]:
    """The scans of an executed plan; adaptive execution hides them behind the stages that it made."""
    kind = str(plan.getClass().getSimpleName())
    if kind == "AdaptiveSparkPlanExec":
        return _leaves(plan.executedPlan())
    if kind.endswith("QueryStageExec"):
        return _leaves(plan.plan())
    children = plan.children()
    return [plan] if children.isEmpty() else [x for i in range(children.size()) for x in _leaves(children.apply(i))]
