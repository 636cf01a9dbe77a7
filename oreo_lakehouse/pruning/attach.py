"""One call that turns history capture and pruning on, and one that undoes it."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.errors import SetupError
from oreo_lakehouse.history.capture import capture as start_capture
from oreo_lakehouse.history.capture import stop_capture
from oreo_lakehouse.jvm import error_reason, hadoop_conf, java_list, java_session
from oreo_lakehouse.pruning.units import FORMATS, compile_core, compile_format, unknown_versions
from oreo_lakehouse.store import default_root

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)
_lock = threading.Lock()


@dataclass
class _Pruning:
    """The compiled rule of one Spark application."""

    control: Any
    formats: list[Any]
    source: tuple[str, str] | None = None
    """The store that facts are read from and the BID column; None while pruning is off."""


_prunings: dict[str, _Pruning] = {}


def attach(
    spark: SparkSession, config: Config | None = None, *, capture: bool = True, prune: bool = True
) -> SparkSession:
    """Record what queries ask, and let them skip files that cannot match, in all sessions of this application.

    Works whether or not the session has run queries already; calling it again changes nothing that is on already. An
    engine whose internals we do not know is not pruned, with one warning; nothing here can make a query fail.

        spark = oreo_lakehouse.attach(spark)
        spark.sql("SELECT * FROM db.orders WHERE shipped < ordered").explain()

    The plan says `oreo skips 31 of 40 files, 77.5% of the rows` where a layout of ours knows more than min/max. One
    session leaves it out by `SET spark.oreo.pruning = false`.

    Args:
        spark: any session of the application.
        config: settings; by default those that `load_config()` finds. `store`, `bid_column` and `[history]` matter
            here. Called with another store than before, facts are read from that one.
        capture: record queries, as `capture(spark)` does.
        prune: leave out files of maintained tables by their recorded facts.

    Returns:
        The session that was given.

    Raises:
        SetupError: a Spark Connect client; what it asks is planned in the server.
    """
    if not hasattr(spark, "_jvm"):
        raise SetupError(
            "a Spark Connect client cannot be attached: its queries are planned in the server. Call attach there, or "
            "give the server the jar that `oreo history jar` makes to capture queries."
        )
    config = load_config() if config is None else config
    if capture:
        start_capture(spark, config)
    if prune:
        _start(spark, config.store or default_root(spark), config.bid_column)
    return spark


def detach(spark: SparkSession) -> None:
    """Undo `attach`: queries are neither recorded nor pruned from here on. What was recorded is written first."""
    stop_capture(spark)
    with _lock:
        found = _prunings.get(str(spark.sparkContext.applicationId))
        if found is not None:
            found.control.stop()
            found.source = None


def control(spark: SparkSession) -> Any:
    """The Java object that counts what the rule does; None if pruning was never on in this application."""
    found = _prunings.get(str(spark.sparkContext.applicationId))
    return None if found is None else found.control


def _start(spark: SparkSession, root: str, bid_column: str) -> None:
    application = str(spark.sparkContext.applicationId)
    with _lock:
        found = _prunings.get(application)
        if found is None:
            found = _compiled(spark)
            if found is None:
                return
            _prunings[application] = found
        if found.source != (root, bid_column):
            formats = java_list(spark, found.formats)
            found.control.start(java_session(spark), hadoop_conf(spark), root, bid_column, formats)
            found.source = (root, bid_column)


def _compiled(spark: SparkSession) -> _Pruning | None:
    try:
        core = compile_core(spark)
    except Exception as error:  # whatever the JVM throws
        _warn(f"pruning is off: Spark {spark.version} has other internals than we know ({error_reason(error)})")
        return None
    formats: list[Any] = []
    for name in FORMATS:
        strange = unknown_versions(spark, name)
        if strange is None:  # the format is not there
            continue
        if strange:
            _warn(f"{name} tables are not pruned: {strange}")
            continue
        try:
            formats.append(compile_format(spark, core, name))
        except Exception as error:
            _warn(f"{name} tables are not pruned: its internals differ from those we know ({error_reason(error)})")
    return _Pruning(core.control, formats)


def _warn(what: str) -> None:
    _log.warning("oreo: %s. Queries run as without it; upgrade oreo-lakehouse, or use a version it knows.", what)
