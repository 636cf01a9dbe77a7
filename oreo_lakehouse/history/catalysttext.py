"""A second reader of SQL text: Spark's own planner, on tables that have a schema and nothing else.

sqlglot reads a statement in a fraction of a millisecond, and most of them exactly; what it leaves unknown is given to
Catalyst, which knows Spark's casts, folds more constants and moves conditions further. Nothing is executed: a statement
is parsed, refused unless it is plainly a query of harmless functions (planning evaluates constants), and planned on
empty stubs in place of its tables, so that no catalog, file or job is touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from oreo_lakehouse.history.catalyst import read_filters
from oreo_lakehouse.history.exactness import Exactness, stored
from oreo_lakehouse.history.javasources import java_unit
from oreo_lakehouse.history.names import TableNames
from oreo_lakehouse.history.sqltext import TableScan
from oreo_lakehouse.jvm import compile_java, java_list, java_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

PLANS = (
    *("Project", "Filter", "Join", "Aggregate", "Sort", "Distinct", "GlobalLimit", "LocalLimit", "Offset", "Union"),
    *("Except", "Intersect", "SubqueryAlias", "OneRowRelation", "WithWindowDefinition", "RelationTimeTravel"),
    *("UnresolvedRelation", "UnresolvedHaving", "UnresolvedWith", "UnresolvedSubqueryColumnAliases", "UnresolvedHint"),
)
"""The nodes of Spark's parsed plans that a plain query has."""

FUNCTIONS = (
    *("sum", "count", "avg", "mean", "min", "max", "first", "last", "any_value", "stddev", "stddev_samp", "variance"),
    *("approx_count_distinct", "percentile_approx", "row_number", "rank", "dense_rank", "ntile", "lag", "lead"),
    *(
        "upper",
        "lower",
        "trim",
        "ltrim",
        "rtrim",
        "substr",
        "substring",
        "left",
        "right",
        "length",
        "concat",
        "replace",
    ),
    *(
        "startswith",
        "endswith",
        "contains",
        "instr",
        "coalesce",
        "nvl",
        "ifnull",
        "nullif",
        "if",
        "isnull",
        "isnotnull",
    ),
    *("abs", "round", "floor", "ceil", "ceiling", "sqrt", "mod", "greatest", "least", "date", "to_date", "date_add"),
    *("date_sub", "datediff", "date_diff", "add_months", "months_between", "last_day", "trunc", "date_trunc", "year"),
    *("quarter", "month", "day", "dayofmonth", "dayofweek", "hour", "minute", "second", "extract", "date_part"),
    *("timestamp", "to_timestamp", "make_date", "int", "bigint", "double", "string", "decimal", "boolean"),
)
"""Functions that are cheap to evaluate whatever their arguments, and do nothing else."""

_NOW = re.compile(r"\b(current_\w+|now|localtimestamp|curdate|unix_timestamp|rand\w*|uuid)\b", re.IGNORECASE)
"""What depends on when it is planned."""
_SEPARATOR = "\x01"
_MAX_CHARACTERS = 50_000


@dataclass(frozen=True)
class Question:
    """A statement, and what its names and times are relative to."""

    text: str
    time_zone: str | None = None
    namespace: tuple[str, ...] = ()


class CatalystText:
    """Reads statements for one table by Spark's planner.

    Args:
        spark: any session; planning happens in sessions of its own.
        table_names: the names that the table goes by.
        schema: the table's schema.
        threads: how many statements are planned at a time.
    """

    def __init__(self, spark: SparkSession, table_names: Iterable[str], schema: StructType, threads: int = 2) -> None:
        self._spark = spark
        self._names = TableNames(table_names)
        self._schema = schema
        self._threads = threads
        self._compiled: Any = None
        self._planners: dict[str, Any] = {}
        self._answers: dict[Question, list[TableScan] | None] = {}
        self._strangers: dict[str, Any] = {}

    def read(self, questions: Sequence[Question]) -> list[list[TableScan] | None]:
        """The scans of the table in each statement; None where the planner was not asked or could not say."""
        wanted = [q for q in dict.fromkeys(questions) if q not in self._answers]
        if len(self._answers) > 100_000:
            self._answers.clear()
        for zone in {q.time_zone for q in wanted}:
            self._plan(zone, [q for q in wanted if q.time_zone == zone])
        return [self._answers.get(q) for q in questions]

    def _plan(self, zone: str | None, questions: list[Question]) -> None:
        if zone is None:  # times would mean what they mean in our session
            return
        todo = [q for q in questions if len(q.text) <= _MAX_CHARACTERS and not _NOW.search(q.text)]
        planner = self._planner(zone)
        for _ in range(2):  # once more for statements whose tables had no stubs yet
            texts = java_list(self._spark, [part for q in todo for part in (q.text, _scope(q))])
            answers = json.loads(planner.joined(texts, self._threads)) if todo else []
            again: list[Question] = []
            for question, answer in zip(todo, answers, strict=True):
                if isinstance(answer, list):
                    self._answers[question] = [_scan(item) for item in answer]
                else:
                    added = [self._add(planner, zone, name, question) for name in answer.get("missing", [])]
                    if added and all(added):
                        again.append(question)
                    else:
                        self._answers[question] = None
            todo = again

    def _planner(self, zone: str) -> Any:
        if zone not in self._planners:
            session = self._spark.newSession()
            session.conf.set("spark.sql.session.timeZone", zone)
            if self._compiled is None:
                self._compiled = compile_java(self._spark, java_unit("Json", "Stubs"), "Stubs")
            arguments = [java_session(session), ",".join(PLANS), ",".join(FUNCTIONS)]
            constructor = self._compiled.getDeclaredConstructors()[0]
            self._planners[zone] = constructor.newInstance(java_list(self._spark, arguments).toArray())
        return self._planners[zone]

    def _add(self, planner: Any, zone: str, name: str, question: Question) -> bool:
        """Give the planner a stub for a table's name; False if there is no such table."""
        key = f"{zone}{_SEPARATOR}{name}"
        if key not in self._strangers:
            parts = name.removeprefix(_scope(question)).split(_SEPARATOR)
            own = self._names.match(_table(parts), question.namespace)
            schema = self._schema if own else self._schema_of(parts, question.namespace)
            if schema is not None:
                empty: Any = self._spark.createDataFrame(self._spark.sparkContext.emptyRDD(), schema)
                planner.add(name, empty._jdf.queryExecution().analyzed(), own)
            self._strangers[key] = schema
        return self._strangers[key] is not None

    def _schema_of(self, parts: list[str], namespace: tuple[str, ...]) -> StructType | None:
        if any("/" in part or ":" in part for part in parts):  # a path: not looked at for a stranger's sake
            return None
        full = [*namespace, *parts] if len(parts) == 1 else parts
        try:
            return self._spark.table(".".join("`" + part.replace("`", "``") + "`" for part in full)).schema
        except Exception:  # whatever the catalog says: it is not a table that we can know
            return None


def better(plain: list[TableScan], planned: list[TableScan] | None) -> list[TableScan]:
    """The planner's reading if it sees the same scans and understands no less."""
    if planned is None or len(planned) != len(plain):
        return plain
    order = list(Exactness)
    worst = max(order.index(scan.exactness) for scan in planned)
    return planned if worst <= max(order.index(scan.exactness) for scan in plain) else plain


def _scan(item: Any) -> TableScan:
    predicate, exactness, reasons = stored(read_filters(item))
    return TableScan(predicate, exactness, reasons, tuple(item["columns"]))


def _scope(question: Question) -> str:
    return ".".join(question.namespace) + _SEPARATOR * 2 if question.namespace else ""


def _table(parts: list[str]) -> exp.Table:
    names = [exp.to_identifier(part, quoted=True) for part in parts[-3:]]
    return exp.Table(**dict(zip(("this", "db", "catalog"), reversed(names), strict=False)))
