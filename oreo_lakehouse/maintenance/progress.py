"""How a long step tells that it is alive: a name, and how far it is where that is known.

The rooms below show it; here it is only a function, so that the Python API stays silent unless asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress: TypeAlias = Callable[[str, float | None], None]
"""Called with what is being done, and the done share in [0, 1] or None."""


def silent(step: str, share: float | None = None) -> None:
    """Show nothing."""


@contextmanager
def spark_share(spark: SparkSession, progress: Progress, step: str) -> Generator[None]:
    """While the block runs Spark jobs, report the share of their tasks that is done."""
    progress(step, None)
    if progress is silent:
        yield
        return
    done = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def watch() -> None:
        while not done.wait(0.5):
            with suppress(Exception):  # a display must never disturb the work, e.g. while the context stops
                stages = [tracker.getStageInfo(s) for s in tracker.getActiveStageIds()]
                total = sum(s.numTasks for s in stages if s)
                if total:
                    progress(step, sum(s.numCompletedTasks for s in stages if s) / total)

    thread = threading.Thread(target=watch, daemon=True, name="oreo-progress")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
