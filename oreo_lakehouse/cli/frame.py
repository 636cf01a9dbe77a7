"""What all commands share: common options, a session with a progress bar, and errors as one sentence and a code."""

from __future__ import annotations

import functools
import logging
import os
import signal
import threading
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.errors import ExitCode, OreoError, was_interrupted
from oreo_lakehouse.jvm import forget_connection
from oreo_lakehouse.maintenance.dossier import Dossier, open_dossier
from oreo_lakehouse.maintenance.offline import TableView, open_offline, open_view
from oreo_lakehouse.report import console
from oreo_lakehouse.session import require_java, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oreo_lakehouse.layouts.blocks import Blocks
    from oreo_lakehouse.maintenance.progress import Progress

Arguments = ParamSpec("Arguments")

INTERRUPTED = 130
"""The shell's own code for Ctrl-C."""
CANCELLING = "oreo-cancelling"
"""The name of the thread that cancels Spark's jobs after it."""

EXIT_CODES = (
    f"Exit codes: {ExitCode.DONE} done or nothing to do; {ExitCode.CONFLICT} somebody else was faster, run again "
    f"later; {ExitCode.CANNOT_RUN} could not run; {ExitCode.UNKNOWN} a commit's outcome is not known yet, the next run "
    "finds out."
)

TableArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="table, db.table, catalog.namespace.table, or a path.")
]
ConfigOption = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="Settings; else OREO_CONFIG, else ./oreo.toml, else defaults."),
]
MasterOption = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="Where Spark runs, such as spark://host:7077.")
]
ShardOption = Annotated[
    str | None,
    typer.Option("--shard", metavar="SHARD", help="Of a partitioned table, one shard, as oreo status names it."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line on standard output, nothing else.")]


def guarded(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Turn errors into a sentence on standard error and the exit code that belongs to it."""

    @functools.wraps(command)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (typer.Exit, typer.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            if was_interrupted(error):
                console.fail("interrupted; the table reads as before, and the next run tidies up")
                raise typer.Exit(INTERRUPTED) from error
            if os.environ.get("OREO_DEBUG") and not isinstance(error, OreoError):
                traceback.print_exc()
            console.fail(sentence(error))
            raise typer.Exit(error.exit_code if isinstance(error, OreoError) else ExitCode.CANNOT_RUN) from error

    return run


def sentence(error: BaseException) -> str:
    """What a user is told of an error: ours are sentences already, of others the first line and what to do."""
    if isinstance(error, OreoError):
        return str(error)
    text = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
    return f"unexpected {type(error).__name__}: {text} (OREO_DEBUG=1 shows where; please report it)"


def settings(config: str | None, master: str | None = None, **flags: Any) -> Config:
    """The settings in force for a command."""
    return load_config(config, {"spark.master": master, **flags})


@contextmanager
def dossier_of(table: str, config: Config) -> Generator[tuple[Dossier, Progress]]:
    """A table and all that is kept about it, through Spark."""
    with running_spark(config) as (spark, progress):
        progress("opening the table", None)
        yield open_dossier(spark, table, config), progress


@contextmanager
def looking(table: str, config: Config) -> Generator[TableView]:
    """The table for reading only: without Spark if that can be done, else through it."""
    view = open_offline(table, config)
    if view is not None:
        yield view
        return
    with running_spark(config) as (spark, progress):
        progress("opening the table", None)
        yield open_view(spark, table, config)


@contextmanager
def looking_at_files(table: str, config: Config) -> Generator[tuple[TableView, Blocks]]:
    """The same with the files' statistics, which need Spark more often."""
    view = open_offline(table, config)
    blocks = None if view is None else view.table.blocks()
    if view is not None and blocks is not None:
        yield view, blocks
        return
    with running_spark(config) as (spark, progress):
        progress("reading the table's file statistics", None)
        view = open_view(spark, table, config)
        blocks = view.table.blocks()
        assert blocks is not None  # Spark always tells
        yield view, blocks


@contextmanager
def running_spark(config: Config) -> Generator[tuple[SparkSession, Progress]]:
    """A session, and a progress bar for what is done with it."""
    require_java()
    with console.progress_bar() as progress:
        spark = spark_session(config, lambda step: progress(step, None))
        with _interruptible(spark):
            yield spark, progress


@contextmanager
def _interruptible(spark: SparkSession) -> Generator[None]:
    """Ctrl-C cancels what Spark is doing, and is a KeyboardInterrupt for us.

    pyspark's own handler asks the JVM to cancel in the middle of what this thread is saying to it, which garbles both.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def cancel() -> None:
        with suppress(Exception):  # the process ends anyway, and Spark with it
            spark.sparkContext.cancelAllJobs()

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        logging.disable()  # py4j would log the interrupted call with its whole stack; we say it in a sentence
        forget_connection()
        threading.Thread(target=cancel, name=CANCELLING, daemon=True).start()  # by a connection of its own
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.default_int_handler)
        logging.disable(logging.NOTSET)
