"""How long a catalog may take to answer: its own client may wait for ever, and a user should not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.errors import TableError
from oreo_lakehouse.jvm import activate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSWER_SECONDS = 60.0


def answered(spark: SparkSession, what: str, ask: Callable[[], Any]) -> Any:
    """The answer, waited for on a thread of its own, which is left behind if none comes.

    Raises:
        TableError: none came in time; `what` did not answer.
    """
    outcome: list[Any] = []

    def work() -> None:
        try:
            # A catalog is configured from the thread's active session when it is first used.
            activate(spark)
            outcome.append(ask())
        except BaseException as error:
            outcome.append(error)

    worker = threading.Thread(target=work, name="oreo-catalog", daemon=True)
    worker.start()
    worker.join(ANSWER_SECONDS)
    if not outcome:
        raise TableError(f"{what} did not answer within {ANSWER_SECONDS:.0f} s: check that it runs, and try again.")
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
