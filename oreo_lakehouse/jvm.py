"""The door to Spark's JVM: typed handles on an untyped gateway, Scala values, Java errors, Java compiled at run time.

pyspark has no public way to reach Delta's and Iceberg's Java API, so everybody here goes through these few functions.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_unit = itertools.count(1)


def jvm(spark: SparkSession) -> Any:
    """The JVM's classes by name: `jvm(spark).java.util.ArrayList()`."""
    return spark._jvm


def java_session(spark: SparkSession) -> Any:
    """The Java object behind a session."""
    return spark._jsparkSession


def activate(spark: SparkSession) -> None:
    """Make this the active session of the JVM thread behind ours.

    Delta and the catalogs ask that thread, not us; a Python thread that Spark has never seen has no active session.
    """
    jvm(spark).org.apache.spark.sql.classic.SparkSession.setActiveSession(java_session(spark))


def hadoop_conf(spark: SparkSession) -> Any:
    """The session's Hadoop configuration, `spark.hadoop.*` settings applied."""
    return java_session(spark).sessionState().newHadoopConf()


def scala_object(spark: SparkSession, name: str) -> Any:
    """The singleton of a Scala `object`, by its full class name without the trailing `$`."""
    return getattr(java_class(spark, f"{name}$"), "MODULE$")


def java_class(spark: SparkSession, name: str) -> Any:
    """A Java class by its full name, also where the name has a `$` in it."""
    found: Any = spark._jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found


def some(spark: SparkSession, value: Any) -> Any:
    """Scala's `Option(value)`."""
    return jvm(spark).scala.Option.apply(value)


def none(spark: SparkSession) -> Any:
    """Scala's `None`."""
    return jvm(spark).scala.Option.empty()


def scala_seq(spark: SparkSession, items: Iterable[Any]) -> Any:
    """A Scala `Seq` of the items."""
    return jvm(spark).PythonUtils.toSeq(list(items))


def scala_map(spark: SparkSession, pairs: Mapping[str, Any]) -> Any:
    """A Scala immutable `Map` of the pairs."""
    return jvm(spark).PythonUtils.toScalaMap(dict(pairs))


def java_list(spark: SparkSession, items: Iterable[Any]) -> Any:
    """A Java `ArrayList` of the items."""
    made = jvm(spark).java.util.ArrayList()
    for item in items:
        made.add(item)
    return made


def compile_java(spark: SparkSession, source: str, class_name: str) -> Any:
    """A class compiled in the running JVM by Janino, which is among Spark's own jars; no JDK is needed.

    `source` names its package `oreo.unit`; each compilation gets a package of its own, because py4j remembers methods
    by class name and would mix up two loads of the same one. Janino knows no generics, lambdas or `var`.
    """
    package = f"oreo.unit{os.getpid()}_{next(_unit)}"
    compiler = jvm(spark).org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm(spark).java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(source.replace("oreo.unit", package))
    return compiler.getClassLoader().loadClass(f"{package}.{class_name}")


def forget_connection() -> None:
    """What this thread was saying to the JVM was interrupted: it must not take the late answer for that to the next."""
    from pyspark import SparkContext

    client: Any = getattr(SparkContext._gateway, "_gateway_client", None)
    if client is not None and hasattr(client, "thread_connection"):
        client.thread_connection.connection = None  # the next call opens another one


def java_error(error: BaseException) -> Any:
    """The Java exception behind a Python one, or None."""
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def error_class(error: BaseException) -> str:
    """The full class name of the Java exception behind an error, or the Python one's name."""
    java = java_error(error)
    return str(java.getClass().getName()) if java is not None else type(error).__name__


def error_reason(error: BaseException) -> str:
    """The first telling line of what the engine said."""
    java = java_error(error)
    text = str((java.getMessage() if java is not None else str(error)) or "")
    return next((line.strip() for line in text.splitlines() if line.strip()), error_class(error))[:300]


def root_reason(error: BaseException) -> str:
    """What the deepest cause says: when a job of Spark's fails, that is the storage's or the table's own word."""
    java = java_error(error)
    while java is not None and java.getCause() is not None:
        java = java.getCause()
    if java is None:
        return error_reason(error)
    said = str(java.getMessage() or "").strip().split("\n", 1)[0].strip()
    name = str(java.getClass().getSimpleName())
    return f"{name}: {said}"[:300] if said else name
