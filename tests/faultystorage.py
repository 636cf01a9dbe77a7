"""Storage that can be made full or closed to writing, for the table's own tests and for the commands'."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from oreo_lakehouse.jvm import compile_java, hadoop_conf, jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOM = 2**63 - 1
METADATA = {"delta": "/_delta_log/", "iceberg": "/metadata/"}
"""What must be closed so that nothing can be committed."""


def faulty_storage(spark: SparkSession) -> Any:
    """The file system behind `faulty:` locations; Hadoop looks a scheme's class up once, and finds it ever after."""
    made = compile_java(spark, Path(__file__).with_name("FaultyStorage.java").read_text(), "FaultyStorage")
    conf = hadoop_conf(spark)
    conf.setClassLoader(made.getClassLoader())
    conf.set("fs.faulty.impl", made.getName())
    jvm(spark).org.apache.spark.SparkEnv.get().conf().set(
        "spark.delta.logStore.faulty.impl", "io.delta.storage.LocalLogStore"
    )
    return jvm(spark).org.apache.hadoop.fs.FileSystem.get(jvm(spark).java.net.URI.create("faulty:///"), conf)


def files_below(folder: Path) -> set[Path]:
    """All files; metadata that Iceberg's own commits prepare and abandon is Iceberg's own matter."""
    return {p for p in folder.rglob("*") if p.is_file() and "metadata" not in p.parts and p.suffix != ".crc"}
