"""A second reader of SQL text: Spark's own planner, on tables that have a schema and nothing else.

sqlglot reads a statement in a fraction of a millisecond, and most of them exactly; what it leaves unknown is given to
Catalyst, which knows Spark's casts, folds more constants and moves conditions further. Nothing is executed: a statement
is parsed, refused unless it is plainly a query of harmless functions (planning evaluates constants), and planned on
empty stubs in place of its tables, so that no file or job is touched. Views of the session are put in by their text,
which is refused by the same rules; of other tables only the schema is asked from the catalog.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.history.catalyst import read_filters
from oreo_lakehouse.history.clock import zone_of
from oreo_lakehouse.history.exactness import Exactness, stored
from oreo_lakehouse.history.harmless import FUNCTIONS, PLANS
from oreo_lakehouse.history.javasources import java_unit
from oreo_lakehouse.history.names import TableNames
from oreo_lakehouse.history.sparktypes import opaque_chars
from oreo_lakehouse.history.sqltext import TableScan
from oreo_lakehouse.history.statements import proper
from oreo_lakehouse.history.views import SessionViews, to_table
from oreo_lakehouse.jvm import compile_java, java_list, java_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_NOW = re.compile(r"\b(current_\w+|now|localtimestamp|curdate|unix_timestamp|rand\w*|uuid)\b", re.IGNORECASE)
"""What depends on when it is planned."""
_SEPARATOR = "\x01"
_MAX_CHARACTERS = 50_000
_MAX_NAMES = 2_000
"""Names of other tables and of views that are looked up."""
_MAX_ZONES = 16
_ROUNDS = 5
"""A view may need stubs for tables that only its text names, and so on."""
_EXTREMES = ("+14:00", "-11:30")
"""Two time zones in which no time has the same date, nor the same minute."""


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
        self.schema = opaque_chars(schema)
        self._threads = threads
        self._compiled: Any = None
        self._planners: dict[str, Any] = {}
        self._answers: dict[Question, list[TableScan] | None] = {}
        self._added: dict[tuple[str, str], bool] = {}
        self._strangers: dict[tuple[str, ...], StructType | None] = {}
        self._views = SessionViews(spark)

    def read(self, questions: Sequence[Question]) -> list[list[TableScan] | None]:
        """The scans of the table in each statement; None where the planner was not asked or could not say.

        Each distinct statement is planned once. Where the time zone is not known, it is planned in two that are more
        than a day apart, and counts if both say the same.
        """
        if len(self._answers) > 100_000:
            self._answers.clear()
        wanted = dict.fromkeys(twin for question in questions for twin in _twins(question))
        new = [question for question in wanted if question not in self._answers]
        for zone in dict.fromkeys(str(question.time_zone) for question in new):
            self._plan(zone, [question for question in new if question.time_zone == zone])
        return [self._agreed(question) for question in questions]

    def _agreed(self, question: Question) -> list[TableScan] | None:
        first, *others = [self._answers.get(twin) for twin in _twins(question)]
        return first if all(other == first for other in others) else None

    def reaches(self, parts: Sequence[str], namespace: tuple[str, ...] = ()) -> bool:
        """Whether a name is that of a view through which the table is read."""
        return self._views.reach(parts, namespace, lambda name, own: self._names.match(to_table(name), own))

    def _plan(self, zone: str, questions: list[Question]) -> None:
        todo = [q for q in questions if len(q.text) <= _MAX_CHARACTERS and not _NOW.search(q.text) and _sendable(q)]
        planner = self._planner(zone) if todo else None
        if planner is None:
            return
        for _ in range(_ROUNDS):  # again for statements whose tables had no stubs yet
            texts = java_list(self._spark, [part for q in todo for part in (q.text, _scope(q.namespace))])
            answers = json.loads(planner.joined(texts, self._threads)) if todo else []
            again: list[Question] = []
            for question, answer in zip(todo, answers, strict=True):
                if isinstance(answer, list):
                    self._answers[question] = [_scan(item) for item in answer]
                else:
                    added = [self._add(planner, zone, name) for name in answer.get("missing", [])]
                    if added and all(added):
                        again.append(question)
                    else:
                        self._answers[question] = None
            todo = again

    def _planner(self, zone: str) -> Any:
        """A planner whose session is in that time zone; None if Spark does not know it."""
        if zone not in self._planners:
            if len(self._planners) >= _MAX_ZONES:
                self._planners.clear()
                self._added.clear()
            if self._compiled is None:
                self._compiled = compile_java(self._spark, java_unit("Json", "Stubs"), "Stubs")
            session = self._spark.newSession()
            try:
                session.conf.set("spark.sql.session.timeZone", zone)
            except Exception:  # as the gateway says that Spark does not know the zone
                self._planners[zone] = None
                return None
            arguments = [java_session(session), ",".join(PLANS), ",".join(FUNCTIONS)]
            constructor = self._compiled.getDeclaredConstructors()[0]
            self._planners[zone] = constructor.newInstance(java_list(self._spark, arguments).toArray())
        return self._planners[zone]

    def _add(self, planner: Any, zone: str, name: str) -> bool:
        """Give the planner a stub for a table's name, or a view's text; False if there is neither."""
        if (zone, name) not in self._added:
            scope, _, plain = name.rpartition(_SEPARATOR * 2)
            namespace, parts = tuple(scope.split(_SEPARATOR)) if scope else (), plain.split(_SEPARATOR)
            self._added[zone, name] = all(parts) and self._stub(planner, name, namespace, parts)
        return self._added[zone, name]

    def _stub(self, planner: Any, name: str, namespace: tuple[str, ...], parts: list[str]) -> bool:
        own = self._names.match(to_table(parts), namespace)
        view = None if own else self._views.find(parts, namespace)
        if view is not None:
            if _NOW.search(view.text):
                return False
            lists = [java_list(self._spark, names) for names in (view.columns, view.names)]
            return bool(planner.addView(name, view.text, _scope(view.namespace), *lists))
        schema = self.schema if own else self._schema_of(parts, namespace)
        if schema is None:
            return False
        empty: Any = self._spark.createDataFrame(self._spark.sparkContext.emptyRDD(), schema)
        planner.add(name, empty._jdf.queryExecution().analyzed(), own)
        return True

    def _schema_of(self, parts: list[str], namespace: tuple[str, ...]) -> StructType | None:
        if any("/" in part or ":" in part for part in parts):  # a path: not looked at for a stranger's sake
            return None
        full = tuple([*namespace, *parts] if len(parts) == 1 else parts)
        if full not in self._strangers and len(self._strangers) < _MAX_NAMES:
            try:
                name = ".".join("`" + part.replace("`", "``") + "`" for part in full)
                self._strangers[full] = self._spark.table(name).schema
            except Exception:  # whatever the catalog says: it is not a table that we can know
                self._strangers[full] = None
        return self._strangers.get(full)


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


def _twins(question: Question) -> list[Question]:
    """The question itself or, where its time zone is not known, the question in two time zones."""
    if zone_of(question.time_zone) is not None:
        return [question]
    return [replace(question, time_zone=zone) for zone in _EXTREMES]


def _sendable(question: Question) -> bool:
    """Whether the gateway to the JVM can carry it: halves of surrogate pairs break the connection."""
    return all(text == proper(text) for text in (question.text, *question.namespace))


def _scope(namespace: tuple[str, ...]) -> str:
    return _SEPARATOR.join(namespace) + _SEPARATOR * 2 if namespace else ""
