"""What a piece of work costs: seconds, CPU, memory, bytes, spill, as Spark's tasks and its JVM tell.

Also what every benchmark that runs for long needs: a look at memory and disk before it starts, and a folder that is
gone when it ends, however it ends.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.jvm import compile_java
from oreo_lakehouse.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GB = 1 << 30
_BUS_MILLIS = 60_000
_END_SECONDS = 30


@dataclass(frozen=True)
class Measured:
    """One piece of work. Memory: the highest use of the heap, garbage included, and of what tasks sort and hash in."""

    seconds: float
    cpu_seconds: float = 0.0
    heap_mb: float = 0.0
    execution_mb: float = 0.0
    read_mb: float = 0.0
    written_mb: float = 0.0
    shuffled_mb: float = 0.0
    spilled_mb: float = 0.0
    tasks: int = 0


class Meter:
    """Measures work on one Spark session, one piece after the other."""

    def __init__(self, spark: SparkSession) -> None:
        source = Path(__file__).with_name("Meter.java").read_text()
        self._java: Any = compile_java(spark, source, "Meter").getDeclaredConstructor(None).newInstance(None)
        self._context: Any = spark.sparkContext._jsc.sc()
        self._context.addSparkListener(self._java)
        self._local = str(spark.sparkContext.master).startswith("local")

    def measure(self, work: Callable[[], Any], collect: bool = True) -> tuple[Any, Measured]:
        """The work's result and its cost; `collect` frees garbage first, which takes a moment that is not counted."""
        self._settle()
        self._java.reset(collect)
        cpu, started = self._java.cpuNanos(), time.perf_counter()
        result = work()
        seconds = time.perf_counter() - started
        cpu = self._java.cpuNanos() - cpu
        self._settle()
        read, written, shuffled, _, spilled, execution, task_cpu, tasks = self._java.sums()
        if not self._local:  # then tasks run in other processes than this JVM
            cpu += task_cpu
        return result, Measured(
            seconds,
            cpu / 1e9,
            self._java.heap() / 1e6,
            execution / 1e6,
            read / 1e6,
            written / 1e6,
            shuffled / 1e6,
            spilled / 1e6,
            tasks,
        )

    def _settle(self) -> None:
        """Task ends arrive on a thread of their own."""
        self._context.listenerBus().waitUntilEmpty(_BUS_MILLIS)


@dataclass(frozen=True)
class Spread:
    """Several measurements of the same."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        return f"{self.median:.1f} ({self.low:.1f}-{self.high:.1f})"


def told(what: str) -> None:
    """One line of progress, where somebody looks."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{what}")
    elif os.environ.get("OREO_BENCHMARK_LOG"):
        sys.stderr.write(f"{what}\n")


def require(disk_gb: float, memory_gb: float, where: Path) -> None:
    """Say before the run what it would lack.

    Raises:
        SystemExit: too little disk or memory is free.
    """
    free = shutil.disk_usage(where).free / GB
    if free < disk_gb:
        raise SystemExit(
            f"needs {disk_gb:.1f} GB of disk in {where}, {free:.1f} GB are free: free some, set TMPDIR to a larger "
            "disk, or give fewer --rows"
        )
    memory = _memory_gb()
    if memory is not None and memory < memory_gb:
        raise SystemExit(
            f"needs {memory_gb:.1f} GB of memory, {memory:.1f} GB are free: end other programs, or give a smaller "
            "--memory and fewer --rows"
        )


def _memory_gb() -> float | None:
    """What programs could still use; None where the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024 / GB
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GB
    except (OSError, ValueError):
        return None


@contextmanager
def workshop() -> Generator[Path]:
    """A folder that is gone afterwards; a terminated run ends as an interrupted one does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="oreo-benchmark-"))
    try:
        yield folder
    except KeyboardInterrupt:
        raise SystemExit("interrupted: nothing is left behind") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        signal.signal(signal.SIGTERM, before)


@contextmanager
def session(
    folder: Path, master: str, memory: str, flags: dict[str, Any] | None = None
) -> Generator[tuple[SparkSession, Config]]:
    """Spark with both formats below the folder, stopped afterwards."""
    conf = {"spark.sql.catalogImplementation": "in-memory", "spark.local.dir": str(folder / "scratch")}
    given = {
        "spark.master": master,
        "spark.warehouse": str(folder / "warehouse"),
        "spark.driver_memory": memory,
        "spark.conf": conf,
        "store": str(folder / "store"),
        **(flags or {}),
    }
    config = load_config(None, given, {})
    spark = spark_session(config)
    # pyspark's own handler talks to the JVM in the middle of whatever was being said to it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        spark.sql("CREATE DATABASE IF NOT EXISTS bench")
        spark.sql("CREATE NAMESPACE IF NOT EXISTS iceberg.bench")
        yield spark, config
    finally:
        _end(spark)


def _end(spark: SparkSession) -> None:
    """Stop Spark and its JVM, so that nobody writes into the folder any more when it is deleted."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    with suppress(Exception):  # after an interruption, the line to the JVM may be out of step
        spark.stop()
    if gateway is not None and hasattr(gateway, "proc"):
        with suppress(Exception):
            gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM that pyspark started ends when this pipe does
        try:
            gateway.proc.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None
