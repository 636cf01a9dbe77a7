"""Maintenance after OPTIMIZE: one line turns it on, and every table that this application rewrites is looked after.

    import oreo_lakehouse

    with oreo_lakehouse.after_optimize(spark):
        spark.sql("OPTIMIZE db.orders")

Two listeners in the JVM see Delta's OPTIMIZE end (by SQL, by `DeltaTable.optimize()`, by name or by path) and Iceberg's
data files replaced (by `CALL … rewrite_data_files` or its Java action), in every session of the Spark context. A thread
then runs `maintain` on one table after the other, in sessions of its own: it tells what was undone of the layout and
repairs that, or decides as any run does. Commits of ours are not reacted to, and many events of a table that waits are
one run. Nothing begins while some thread is still inside an OPTIMIZE or rewrite_data_files.

The user's job neither waits nor fails: what goes wrong is a warning in the log, once a table, and an error in
`Hook.outcomes`. At the end of the Python process, what was seen is still maintained first. `spark.stop()` takes the
session away before that: a job that calls it closes the hook first, or uses `with`. A job that changes the same table
again after its OPTIMIZE asks for `at_end`, so that its own commits never meet ours.

Not seen: what other applications do (`oreo-maintain TABLE --after-optimize` finds that in the table's log), Delta's
auto compaction, and a rewrite_data_files that found nothing to rewrite, which leaves no trace.
"""

from __future__ import annotations

import atexit
import logging
import re
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.errors import SetupError
from oreo_lakehouse.jvm import activate, compile_java, error_reason, java_list, java_session, jvm
from oreo_lakehouse.maintenance.fleet import TableRun
from oreo_lakehouse.maintenance.maintain import maintain
from oreo_lakehouse.maintenance.options import RunOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TICK = 0.5
"""Seconds after which the thread looks up from waiting."""
_KEPT = 100
"""Outcomes remembered."""

_log = logging.getLogger(__name__)
_running: dict[str, Hook] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class _Terms:
    config: Config
    options: RunOptions
    tables: tuple[str, ...]
    at_end: bool

    def cover(self, table: str) -> bool:
        """Whether this table is meant, however its name was written."""
        plain = table.removeprefix("spark_catalog.").removeprefix("file:")
        return not self.tables or any(fnmatchcase(name, wanted) for wanted in self.tables for name in (table, plain))


class Hook:
    """Maintenance after OPTIMIZE that is turned on for a Spark application."""

    def __init__(self, spark: SparkSession, watch: Any, terms: _Terms) -> None:
        self._spark, self._watch, self._terms = spark, watch, terms
        self._context = java_session(spark).sparkContext()
        self._application = str(spark.sparkContext.applicationId)
        self._outcomes: deque[TableRun] = deque(maxlen=_KEPT)
        self._warned: set[str] = set()
        self._closed, self._may_run = threading.Event(), threading.Event()
        if not terms.at_end:
            self._may_run.set()
        self._thread = threading.Thread(target=self._work, daemon=True, name="oreo-after-optimize")
        self._thread.start()
        atexit.register(self.close)

    @property
    def outcomes(self) -> tuple[TableRun, ...]:
        """How the newest runs went, in their order: each has the table and its outcome or its error."""
        return tuple(self._outcomes)

    @property
    def lost(self) -> int:
        """Events that could not be kept or read."""
        return int(self._watch.lost())

    def wait(self, timeout: float | None = None) -> bool:
        """Let every table be maintained whose rewrite has ended by now.

        Args:
            timeout: seconds to wait at most; by default as long as it takes.

        Returns:
            Whether all is done.
        """
        until = float("inf") if timeout is None else time.monotonic() + timeout
        told = False
        self._may_run.set()
        try:
            while self._thread.is_alive() and not self._context.isStopped():
                millis = max(1, int(1000 * min(_TICK, until - time.monotonic())))
                if not told:  # listeners hear of an execution a moment after its caller
                    with suppress(Exception):  # their queues are not empty in time
                        self._context.listenerBus().waitUntilEmpty(millis)
                        told = True
                elif self._watch.awaitIdle(millis):
                    return True
                if time.monotonic() >= until:
                    return False
            return int(self._watch.waiting()) == 0
        except Exception as error:
            self._warn("", f"the hook after OPTIMIZE has lost its JVM: {error_reason(error)}")
            return False
        finally:
            if self._terms.at_end:
                self._may_run.clear()

    def close(self, timeout: float | None = None) -> bool:
        """Let what was seen be maintained, then turn the hook off; a run that is under way at the timeout still ends.

        Args:
            timeout: seconds to wait at most; by default as long as it takes.

        Returns:
            Whether all was done.
        """
        atexit.unregister(self.close)
        if self._closed.is_set():
            return True
        done = self.wait(timeout)
        self._closed.set()
        _running.pop(self._application, None)
        with suppress(Exception):  # the JVM may be gone, and with it all that is left to do
            left = int(self._watch.waiting())
            if left:
                self._warn("", f"{left} tables that were rewritten have not been maintained; run oreo-maintain on them")
            if self.lost:
                self._warn(
                    "lost", f"{self.lost} rewrites were not understood; `oreo-maintain --after-optimize` finds them"
                )
            self._watch.close()
            self._context.removeSparkListener(self._watch)
        return done

    def __enter__(self) -> Hook:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self) -> None:
        """The thread: one table after the other, until the hook is closed or Spark is stopped."""
        while not self._closed.is_set() and self._spark.sparkContext._jsc is not None:
            if not self._may_run.wait(_TICK):
                continue
            try:
                table = self._watch.take(int(1000 * _TICK))
            except Exception as error:
                if not self._closed.is_set():
                    self._warn("", f"the hook after OPTIMIZE has lost its JVM: {error_reason(error)}")
                return
            if table is None:
                continue
            try:
                if self._terms.cover(str(table)):
                    self._outcomes.append(self._maintained(str(table)))
            finally:
                with suppress(Exception):
                    self._watch.done()

    def _maintained(self, table: str) -> TableRun:
        try:
            return TableRun(table, maintain(self._session(), table, self._terms.config, options=self._terms.options))
        except Exception as error:  # the user's job goes on, whatever it is
            self._warn(table, f"{table} was rewritten, but not maintained after it: {error_reason(error)}")
            return TableRun(table, error=error)

    def _session(self) -> SparkSession:
        """A copy of the user's session as it is now, with its catalogs and settings; what we set stays in the copy."""
        from pyspark.sql import SparkSession

        copy = SparkSession(self._spark.sparkContext, java_session(self._spark).cloneSession())
        activate(copy)
        return copy

    def _warn(self, about: str, message: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            _log.warning(message)


def after_optimize(
    spark: SparkSession,
    config: Config | None = None,
    *,
    tables: Iterable[str] = (),
    options: RunOptions | None = None,
    at_end: bool = False,
) -> Hook:
    """Maintain each table of this Spark application after an OPTIMIZE or rewrite_data_files of it has ended.

    Args:
        spark: any session of the application; its catalogs and settings are those that maintenance uses.
        config: settings; by default those that `load_config()` finds.
        tables: names, patterns such as `db.*`, or paths of the tables that are meant; by default all.
        options: what each run may do and spend.
        at_end: begin no run before `wait`, `close` or the end of the process.

    Returns:
        The hook. Asked again with the same arguments for the same application, it is the one that is on.

    Raises:
        SetupError: the session is a Connect session, its JVM takes no listener, or another hook is on.
    """
    if not hasattr(spark, "_jvm"):
        raise SetupError(
            "a Spark Connect client cannot hear of what the server's sessions do: run `oreo-maintain TABLE "
            "--after-optimize` after the job instead."
        )
    terms = _Terms(
        config=load_config() if config is None else config,
        options=replace(options or RunOptions(), after_optimize=True),
        tables=tuple(re.sub(r"^delta\.`(.+)`$", r"\1", name) for name in tables),
        at_end=at_end,
    )
    with _lock:
        running = _running.get(str(spark.sparkContext.applicationId))
        if running is None:
            running = _running[str(spark.sparkContext.applicationId)] = Hook(spark, _listening(spark), terms)
        elif running._terms != terms:
            raise SetupError("a hook after OPTIMIZE is on in this application with other arguments: close() it first.")
        return running


def _listening(spark: SparkSession) -> Any:
    """The listeners, compiled and at work."""
    try:
        watch = _made(spark, "OptimizeWatch")
        java_session(spark).sparkContext().listenerBus().addToQueue(watch, "oreo-after-optimize")
        if _has_iceberg(spark):
            _made(spark, "IcebergWatch", watch)
        return watch
    except Exception as error:  # whatever the JVM throws
        raise SetupError(f"the hook after OPTIMIZE cannot be turned on in this JVM: {error_reason(error)}") from error


def _has_iceberg(spark: SparkSession) -> bool:
    try:
        jvm(spark).java.lang.Thread.currentThread().getContextClassLoader().loadClass("org.apache.iceberg.Table")
    except Exception:  # py4j wraps ClassNotFoundException
        return False
    return True


def _made(spark: SparkSession, name: str, *arguments: Any) -> Any:
    source = files(__package__ or "").joinpath("java", f"{name}.java").read_text(encoding="utf-8")
    compiled = compile_java(spark, source, name)
    return compiled.getDeclaredConstructors()[0].newInstance(java_list(spark, arguments).toArray())
