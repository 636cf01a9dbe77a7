"""The one place that builds a Spark session: Spark 4.1 with Delta and Iceberg together, quietly.

A session that is already there is used as it is: an active one, or the one spark-submit started. Otherwise a JVM is
started with the packages below (fetched by Spark's own resolution on first use), the `[spark.conf]` of the
configuration on top, and its console output in a log file, so that nothing but our own lines reaches the terminal.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.config import Config, load_config
from oreo_lakehouse.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA_PACKAGE = "io.delta:delta-spark_4.1_2.13:4.3.1"
ICEBERG_PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
SQLITE_PACKAGE = "org.xerial:sqlite-jdbc:3.50.3.0"
JAVA_VERSIONS = (17, 21)
SHIPPED_WITH_SPARK = (
    "com.fasterxml.jackson.core:jackson-annotations",
    "com.fasterxml.jackson.core:jackson-core",
    "com.fasterxml.jackson.core:jackson-databind",
    "com.fasterxml.jackson.datatype:jackson-datatype-jdk8",
    "com.github.luben:zstd-jni",
    "com.google.code.findbugs:jsr305",
    "commons-logging:commons-logging",
    "commons-pool:commons-pool",
    "io.airlift:aircompressor",
    "javax.annotation:javax.annotation-api",
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.apache.logging.log4j:log4j-api",
    "org.apache.logging.log4j:log4j-core",
    "org.apache.logging.log4j:log4j-slf4j2-impl",
    "org.apache.parquet:parquet-column",
    "org.apache.parquet:parquet-common",
    "org.apache.parquet:parquet-encoding",
    "org.apache.parquet:parquet-format-structures",
    "org.apache.parquet:parquet-hadoop",
    "org.apache.parquet:parquet-jackson",
    "org.roaringbitmap:RoaringBitmap",
    "org.roaringbitmap:shims",
    "org.slf4j:slf4j-api",
    "org.xerial.snappy:snappy-java",
)
"""Transitive packages that Spark's own class path has already: fetching them again costs a minute and wins nothing."""

Progress = Callable[[str], None]


def spark_session(config: Config | None = None, progress: Progress | None = None) -> SparkSession:
    """The running Spark session, or a new one with Delta and Iceberg ready.

    Args:
        config: settings; by default those that `load_config()` finds.
        progress: told in a few words what a slow start is doing.

    Raises:
        SetupError: no suitable Java, a Spark Connect session, or Spark did not start; the sentence says what to do.
    """
    config = load_config() if config is None else config
    from pyspark import SparkContext

    _refuse_connect(config)
    if SparkContext._active_spark_context is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        require_java()
        _launch(config, progress or (lambda _: None))
    return _open(config)


def require_java() -> int:
    """The major version of the Java that Spark would use.

    Raises:
        SetupError: there is none, or it is not one that Spark 4.1 runs on.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    install = f"install Java {JAVA_VERSIONS[0]} or {JAVA_VERSIONS[1]} (for example the package openjdk-17-jre-headless)"
    if java is None:
        raise SetupError(f"Spark needs Java and none was found: {install}, or set JAVA_HOME.")
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        where = f"JAVA_HOME={home}" if home else java
        raise SetupError(f"Java at {where} does not run: {install}, or correct JAVA_HOME.") from error
    found = re.search(r'version "(\d+)(?:\.(\d+))?', answer.stderr + answer.stdout)
    major = int(found[2] if found[1] == "1" and found[2] else found[1]) if found else 0
    if major not in JAVA_VERSIONS:
        version = f"Java {major}" if major else "not a Java that tells its version"
        raise SetupError(f"Spark 4.1 does not run on what {java} is ({version}): {install}, or set JAVA_HOME to one.")
    return major


def _refuse_connect(config: Config) -> None:
    from pyspark.sql import SparkSession

    remote = os.environ.get("SPARK_REMOTE") or os.environ.get("SPARK_CONNECT_MODE_ENABLED")
    active: Any = None if remote else SparkSession.getActiveSession()
    if remote or config.spark.master.startswith("sc://") or (active is not None and not hasattr(active, "_jvm")):
        raise SetupError(
            "this is a Spark Connect session, through which a layout cannot be committed safely: run it where the "
            "driver runs (spark-submit, a cluster job, or --master spark://… or local[2])."
        )


def spark_settings(config: Config) -> dict[str, str]:
    """Every Spark setting that a session of our own starts with; the user's `[spark.conf]` wins over ours."""
    user = dict(config.spark.conf)
    warehouse = str(Path(config.spark.warehouse).absolute()) if "://" not in config.spark.warehouse else ""
    warehouse = warehouse or config.spark.warehouse
    catalog = f"spark.sql.catalog.{config.spark.iceberg_catalog}"
    ours = {
        "spark.app.name": "oreo-lakehouse",
        "spark.master": config.spark.master,
        "spark.driver.memory": config.spark.driver_memory,
        "spark.sql.warehouse.dir": warehouse,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
    }
    if config.spark.master.startswith("local"):
        # One machine: bind to loopback, and do not split small metadata jobs into hundreds of tasks.
        ours |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "8",
            "spark.databricks.delta.snapshotPartitions": "2",
        }
    if not any(key == catalog or key.startswith(f"{catalog}.") for key in user):
        ours |= _embedded_iceberg_catalog(catalog, warehouse)
    if not any("metastore" in key or key == "spark.sql.catalogImplementation" for key in user):
        ours |= _embedded_hive_catalog(warehouse)
    packages = [DELTA_PACKAGE, ICEBERG_PACKAGE, SQLITE_PACKAGE]
    if "spark.jars" not in user:  # a site that ships its own jars resolves nothing
        ours["spark.jars.packages"] = ",".join([*packages, *filter(None, [user.pop("spark.jars.packages", "")])])
        ours["spark.jars.excludes"] = ",".join(SHIPPED_WITH_SPARK)
    return ours | user


def _embedded_iceberg_catalog(catalog: str, warehouse: str) -> dict[str, str]:
    """One SQLite file that Spark's JdbcCatalog and pyiceberg's SqlCatalog share across processes."""
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        f"{catalog}.uri": f"jdbc:sqlite:{warehouse}/_iceberg.db",
        f"{catalog}.warehouse": f"{warehouse}/_iceberg",
        f"{catalog}.jdbc.schema-version": "V1",
    }


def _embedded_hive_catalog(warehouse: str) -> dict[str, str]:
    """A Derby database beside the tables, so that a later process finds Delta tables by name."""
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={warehouse}/_metastore;create=true",
        "spark.driver.extraJavaOptions": "-Dderby.stream.error.file=/dev/null",
    }


def _launch(config: Config, progress: Progress) -> None:
    """Start the JVM with its console in a log file, and the Spark context in it."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.logger import PySparkLogger

    settings = spark_settings(config)
    if "://" not in settings["spark.sql.warehouse.dir"]:
        Path(settings["spark.sql.warehouse.dir"]).mkdir(parents=True, exist_ok=True)
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    log = Path(config.spark.log or Path(tempfile.gettempdir(), f"oreo-spark-{os.getpid()}.log"))
    progress("Starting Spark")
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        # pyspark prints a failed query's whole stack as JSON on the console; the exception says it all already.
        PySparkLogger.getLogger(name).disabled = True
    with log.open("wb") as console, _told(log, progress):
        try:
            with _alone(settings, progress):
                gateway = launch_gateway(conf, {"stdout": console, "stderr": console})
            SparkContext(conf=conf, gateway=gateway)
        except Exception as error:  # whatever pyspark raises, the cause stands in the JVM's own console
            raise SetupError(f"Spark did not start: {_why(log, error)} (full log: {log})") from error
    if not config.spark.log:
        atexit.register(log.unlink, missing_ok=True)  # a start that failed keeps its log


@contextmanager
def _alone(settings: Mapping[str, str], progress: Progress) -> Generator[None]:
    """One process at a time: packages that two of them fetch into the same empty folder break each other's downloads.

    The JVM answers once its packages are resolved, so this does not wait for Spark itself to start.
    """
    if "spark.jars.packages" not in settings:
        yield
        return
    # Spark's own default: below the home that the system knows, which is Java's, and not below $HOME.
    folder = Path(settings.get("spark.jars.ivy") or Path(pwd.getpwuid(os.getuid()).pw_dir, ".ivy2.5.2"))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "oreo.lock").open("wb") as turn:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("Waiting for another process that fetches Spark packages")
            fcntl.flock(turn, fcntl.LOCK_EX)
        yield  # closing the file gives the turn away, and so does a process that dies


@contextmanager
def _told(log: Path, progress: Progress) -> Generator[None]:
    """Report the packages that Spark's resolution downloads, instead of its listing."""
    done = threading.Event()

    def follow() -> None:
        seen: set[str] = set()
        while not done.wait(0.3):
            text = log.read_text(errors="replace") if log.exists() else ""
            for name in re.findall(r"downloading \S+/([^/\s]+)\.jar", text):
                if name not in seen:
                    seen.add(name)
                    progress(f"Fetching Spark packages, once: {name} ({len(seen)})")

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _why(log: Path, error: Exception) -> str:
    """The one line of a failed start that tells most."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    if any("unresolved dependency" in line or "UNRESOLVED DEPENDENCIES" in line for line in lines):
        return "its packages could not be fetched from Maven Central; connect once, or set spark.jars in [spark.conf]"
    telling = [line for line in lines if re.search(r"Exception|Error|error:", line)]
    return (telling[0] if telling else str(error).splitlines()[0]).strip()[:300]


def _open(config: Config) -> SparkSession:
    from pyspark.sql import SparkSession

    try:
        return SparkSession.builder.appName("oreo-lakehouse").getOrCreate()
    except Exception as error:
        text = str(error)
        if "Another instance of Derby" in text or "XSDB6" in text:
            raise SetupError(
                f"the embedded catalog in {config.spark.warehouse} is open in another process: wait for it to end, "
                "name Delta tables by path, or configure a Hive metastore (conf/spark-hive-metastore.toml)."
            ) from error
        raise SetupError(f"Spark did not open a session: {text.splitlines()[0][:300]}") from error
