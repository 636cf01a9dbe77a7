"""The rule's Java classes, compiled in the running JVM, and the engine versions that they were tested with.

The rule reaches into private classes of Spark, Delta and Iceberg, so each format is a unit of its own: where one does
not fit, the others still work.
"""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.history.javasources import PACKAGE, java_unit
from oreo_lakehouse.jvm import java_class, jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORE = (
    *("Warnings", "Order", "FactColumn", "Facts", "TableFacts", "FactCache"),
    *("Terms", "Condition", "Dictionary", "Choice", "Format", "PruneRule", "Control"),
)
FORMATS = {"Delta": ("DeltaFormat", "4.3"), "Iceberg": ("IcebergFormat", "1.11")}
"""The class of each format, and the release that it is written for."""
SPARK = "4.1"

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Core:
    """The format-independent part, loaded."""

    package: str
    loader: Any
    control: Any


def compile_core(spark: SparkSession) -> Core:
    """Compile the rule; raises what Janino raises where Spark's classes differ."""
    package = f"oreo.pruning{os.getpid()}_{next(_numbers)}"
    parent = jvm(spark).java.lang.Thread.currentThread().getContextClassLoader()
    loader = _cook(spark, parent, java_unit(*CORE, package=__package__).replace(PACKAGE, package))
    return Core(package, loader, _new(spark, loader.loadClass(f"{package}.Control")))


def compile_format(spark: SparkSession, core: Core, name: str) -> Any:
    """Compile one format's part on top of the rule; raises where the format's classes differ."""
    class_name, _ = FORMATS[name]
    loader = _cook(spark, core.loader, java_unit(class_name, package=__package__).replace(PACKAGE, core.package))
    return _new(spark, loader.loadClass(f"{core.package}.{class_name}"), core.loader)


def unknown_versions(spark: SparkSession, name: str) -> str | None:
    """Why a format's version is not one that we know, "" if it is one; None if the format is not there."""
    try:
        if name == "Delta":
            found = str(java_class(spark, "io.delta.package$").__getattr__("MODULE$").VERSION())
        else:
            found = str(java_class(spark, "org.apache.iceberg.IcebergBuild").version())
    except Exception:  # py4j has one error for everything: the class is not there
        return None
    for engine, version, known in ((name, found, FORMATS[name][1]), ("Spark", spark.version, SPARK)):
        if not re.match(rf"{re.escape(known)}(\.|$)", version):
            return f"{engine} is {version}, and pruning was tested with {known}"
    return ""


def _cook(spark: SparkSession, parent: Any, source: str) -> Any:
    compiler = jvm(spark).org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent)
    compiler.cook(source)
    return compiler.getClassLoader()


def _new(spark: SparkSession, java: Any, *arguments: Any) -> Any:
    gateway: Any = spark.sparkContext._gateway
    given = gateway.new_array(jvm(spark).java.lang.Object, len(arguments))
    for at, argument in enumerate(arguments):
        given[at] = argument
    constructor = java.getConstructors()[0]
    if constructor.getParameterCount() == 0:
        given = gateway.new_array(jvm(spark).java.lang.Object, 0)
    return constructor.newInstance(given)
