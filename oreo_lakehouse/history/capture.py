"""Live capture: one line turns it on, and every query of the Spark application leaves a record per table that it read.

    import oreo_lakehouse
    oreo_lakehouse.capture(spark)

A listener, compiled in the running JVM, sees each SQL execution of every session of the context when it has ended, on a
thread of its own. It reads what Spark itself planned, so views, paths, common table expressions and time travel need
nothing. Records go to the store in batches, every few seconds and when the application ends. Nothing in it can fail a
query; what cannot be kept is counted as dropped.

Not seen: cached DataFrames, `.rdd`, and aggregates that a format answers from its log alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.errors import SetupError
from oreo_lakehouse.history.javasources import java_unit
from oreo_lakehouse.jvm import compile_java, error_reason, hadoop_conf, java_list, java_session
from oreo_lakehouse.store import default_root

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASSES = ("Json", "Reflect", "Scans", "Batches", "Listener")
"""The Java classes of live capture, in `java/`."""

_running: dict[str, Capture] = {}
_lock = threading.Lock()


class Capture:
    """Capture that is turned on for a Spark application."""

    def __init__(self, spark: SparkSession, listener: Any) -> None:
        self._context = java_session(spark).sparkContext()
        self._application = str(spark.sparkContext.applicationId)
        self._listener = listener

    def flush(self) -> None:
        """Wait until all queries that have ended are in the store."""
        self._context.listenerBus().waitUntilEmpty()
        self._listener.flush()

    def stop(self) -> None:
        """Turn it off; what was seen is written first."""
        self.flush()
        self._listener.stop()
        self._context.removeSparkListener(self._listener)
        _running.pop(self._application, None)

    @property
    def dropped(self) -> int:
        """Scans that could not be kept."""
        return int(self._listener.dropped())

    @property
    def seen(self) -> int:
        """SQL executions that were looked at."""
        return int(self._listener.seen())

    @property
    def milliseconds_per_query(self) -> float:
        """What looking at one execution takes, on the listener's thread."""
        return int(self._listener.spentNanos()) / max(self.seen, 1) / 1e6


def capture(
    spark: SparkSession,
    config: Config | None = None,
    *,
    redact: Iterable[str] | None = None,
    store_sql: bool | None = None,
    flush_seconds: float = 10.0,
) -> Capture:
    """Record what all queries of this Spark application ask of Delta and Iceberg tables.

    Args:
        spark: any session of the application; calling it again for the same application returns what is running.
        config: settings; by default those that `load_config()` finds. `store` and `[history]` matter here.
        redact: columns whose literals must not be stored: only that they were filtered, and by what operator. By
            default those of `history.redact`.
        store_sql: store the statements themselves too, unless columns are redacted. By default `history.store_sql`.
        flush_seconds: how often records are written.

    Raises:
        SetupError: the session is a Connect session, or its JVM does not take a listener.
    """
    if not hasattr(spark, "_jvm"):
        raise SetupError(
            "a Spark Connect client cannot capture queries; give the server the jar that `oreo history jar` makes."
        )
    config = load_config() if config is None else config
    root = config.store or default_root(spark)
    hidden = ",".join(config.history.redact if redact is None else redact)
    keep_sql = config.history.store_sql if store_sql is None else store_sql
    application = str(spark.sparkContext.applicationId)
    with _lock:
        if application not in _running:
            arguments = [application, hadoop_conf(spark), root, hidden, keep_sql, int(flush_seconds * 1000)]
            try:
                compiled = compile_java(spark, java_unit(*CLASSES), "Listener")
                listener = compiled.getDeclaredConstructors()[0].newInstance(java_list(spark, arguments).toArray())
                java_session(spark).sparkContext().listenerBus().addToQueue(listener, "oreo")
            except Exception as error:  # whatever the JVM throws
                raise SetupError(f"live capture cannot be turned on in this JVM: {error_reason(error)}") from error
            _running[application] = Capture(spark, listener)
        return _running[application]


def stop_capture(spark: SparkSession) -> None:
    """Turn capture off for a session's application, if it is on."""
    running = _running.get(str(spark.sparkContext.applicationId))
    if running is not None:
        running.stop()
