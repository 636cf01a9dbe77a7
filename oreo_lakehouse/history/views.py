"""Views that a Spark session knows, by name and text: temporary ones, the session catalog's, Iceberg's."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from oreo_lakehouse.history.javasources import java_unit
from oreo_lakehouse.history.statements import proper
from oreo_lakehouse.jvm import compile_java, java_list, java_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MAX_NAMES = 2_000
"""Names that are looked up."""
_MAX_DEPTH = 10
"""Views over views."""


class View(NamedTuple):
    """A view's text and what belongs to it."""

    text: str
    namespace: tuple[str, ...]
    """What names in the text are relative to."""
    columns: tuple[str, ...]
    """Of the text, when the view was made."""
    names: tuple[str, ...]
    """Under which the view shows them."""


class SessionViews:
    """Looks views up; nothing is analysed or run."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: dict[tuple[str, ...], View | None] = {}
        self._find: Any = None

    def find(self, parts: Sequence[str], namespace: tuple[str, ...] = ()) -> View | None:
        """The view of that name, a single part being relative to `namespace`; None if the session knows none."""
        full = tuple([*namespace, *parts] if len(parts) == 1 else parts)
        if full not in self._known and len(self._known) < _MAX_NAMES and all(part == proper(part) for part in full):
            arguments = [java_session(self._spark), java_list(self._spark, full)]
            answer = self._finder().invoke(None, java_list(self._spark, arguments).toArray())
            self._known[full] = _view(json.loads(answer)) if answer else None
        return self._known.get(full)

    def _finder(self) -> Any:
        if self._find is None:
            compiled = compile_java(self._spark, java_unit("Json", "Views"), "Views")
            self._find = next(method for method in compiled.getDeclaredMethods() if method.getName() == "find")
        return self._find

    def reach(
        self,
        parts: Sequence[str],
        namespace: tuple[str, ...],
        is_goal: Callable[[Sequence[str], tuple[str, ...]], bool],
        depth: int = 0,
    ) -> bool:
        """Whether a name is that of a view whose text, or that of a view in it, names the goal."""
        view = self.find(parts, namespace)
        if view is None or depth > _MAX_DEPTH:
            return False
        return any(
            is_goal(name, view.namespace) or self.reach(name, view.namespace, is_goal, depth + 1)
            for name in _names(view.text)
        )


def _view(document: dict[str, Any]) -> View:
    lists = [tuple(document[name]) for name in ("namespace", "columns", "names")]
    return View(document["text"], *lists)


def _names(text: str) -> list[list[str]]:
    """The names of tables in a view's text."""
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except (SqlglotError, RecursionError):
        return []
    return [[part.name for part in table.parts] for table in tree.find_all(exp.Table)]


def to_table(parts: Sequence[str]) -> exp.Table:
    """A table's name, part by part, as a node of SQL."""
    names = [exp.to_identifier(part, quoted=True) for part in parts[-3:]]
    return exp.Table(**dict(zip(("this", "db", "catalog"), reversed(names), strict=False)))
