"""Live capture as a small jar, for where no Python runs: spark-submit, spark-sql, Connect and Thrift servers.

    spark-sql --conf spark.jars=oreo-capture.jar --conf spark.plugins=oreo.capture.CapturePlugin

`spark.oreo.store`, `spark.oreo.redact` (columns, by commas), `spark.oreo.storeSql` and `spark.oreo.flushSeconds` set
what the arguments of `capture` do. The jar is compiled by Janino, which is among Spark's own jars: no JDK is needed.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from oreo_lakehouse.errors import SetupError
from oreo_lakehouse.history.capture import CLASSES
from oreo_lakehouse.history.javasources import PACKAGE, java_unit
from oreo_lakehouse.jvm import error_reason, jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAR_PACKAGE = "oreo.capture"
PLUGIN = f"{JAR_PACKAGE}.CapturePlugin"
"""What `spark.plugins` is to name."""
_FIXED_TIME = (2024, 1, 1, 0, 0, 0)
"""Of the files in the jar, so that the same sources give the same jar."""


def write_jar(spark: SparkSession, path: str | Path) -> Path:
    """Compile live capture to a jar.

    Raises:
        SetupError: the sources do not compile against this Spark, or the file cannot be written.
    """
    source = java_unit(*CLASSES, "CapturePlugin").replace(PACKAGE, JAR_PACKAGE)
    try:
        compiler = jvm(spark).org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm(spark).java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(source)
        classes = {str(name): bytes(code) for name, code in dict(compiler.getBytecodes()).items()}
    except Exception as error:  # whatever the compiler throws
        raise SetupError(f"live capture does not compile against this Spark: {error_reason(error)}") from error
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as jar:
            jar.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _FIXED_TIME), "Manifest-Version: 1.0\r\n\r\n")
            for name, code in sorted(classes.items()):
                jar.writestr(zipfile.ZipInfo(name.replace(".", "/") + ".class", _FIXED_TIME), code)
    except OSError as error:
        raise SetupError(f"cannot write {path}: {error.strerror}") from error
    return Path(path)
