"""Row certificates: evidence that a rewrite kept every row, as one number that does not depend on their order.

The engines do not check this for us. A row's hash covers every column's value and whether it is NULL: Spark's
`xxhash64` skips NULLs, so without the NULL marks (1, NULL) and (NULL, 1) would look the same. The certificate is the
number of rows and the sum of their hashes, which neither the order of rows nor their files can change.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from oreo_lakehouse.layouts.sqltext import quoted
from oreo_lakehouse.tables.contract import RowCertificate

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OBSERVATION_SECONDS = 60.0
"""How long an observed certificate may take to arrive after its query ended; Spark delivers it on another thread."""


def certify(df: DataFrame, exclude: Collection[str] = ()) -> RowCertificate:
    """The certificate of a DataFrame's rows, by one pass over them.

    `exclude` names the columns that a rewrite may change: the BID column, and row ids that are kept elsewhere.
    """
    return _certificate(df.agg(*aggregates(df, exclude)).collect()[0].asDict())


def observed(
    df: DataFrame, exclude: Collection[str], name: str
) -> tuple[DataFrame, Callable[[], RowCertificate | None]]:
    """The same rows, certified while the query that uses them runs, and a reader of the result.

    The reader answers None when no certificate arrived. A stage that Spark had to run twice may be counted twice, so a
    difference is a reason to take the certificate again by `certify`, not yet a proof that rows differ.
    """
    observation = Observation(name)
    # Spark observes whole rows, outside of the code that it generates for a stage, and copies each for that. Whatever
    # adds or drops a column after it copies them once more: rows are watched when nothing but their place will change.
    watched = df.observe(observation, *aggregates(df, exclude))

    def read() -> RowCertificate | None:
        java: Any = observation._jo
        deadline = time.monotonic() + OBSERVATION_SECONDS
        while not java.future().isCompleted():
            if time.monotonic() > deadline:
                return None
            time.sleep(0.01)
        answer = java.future().value().get()
        if answer.isFailure() or answer.get().length() == 0:  # a plan that proved empty is cut off with its observation
            return None
        return _certificate(observation.get)

    return watched, read


def hash_expression(df: DataFrame, exclude: Collection[str] = ()) -> Column:
    """One 64-bit hash a row, over all columns but the excluded ones, in the order of their names."""
    fields = sorted((f for f in df.schema.fields if f.name not in exclude), key=lambda f: f.name)
    parts = [part for field in fields for part in _parts(sf.col(quoted(field.name)), field.dataType)]
    return sf.xxhash64(*(parts or [sf.lit(0)]))


def aggregates(df: DataFrame, exclude: Collection[str]) -> tuple[Column, Column]:
    """`rows` and `checksum`: added up over any division of the rows, they are the certificate of all of them."""
    number = hash_expression(df, exclude)
    # A sum of longs would overflow, which ANSI mode makes an error, and a sum of decimals takes an object a row. So the
    # hash is added up in three parts of at most 22 bits, which 2^41 rows cannot make overflow, and put together again.
    bits = 22
    part = sf.lit((1 << bits) - 1).cast("long")
    parts = [number.bitwiseAND(part), sf.shiftright(number, bits).bitwiseAND(part), sf.shiftright(number, 2 * bits)]
    checksum = sum(
        (sf.sum(one).cast("decimal(20,0)") * sf.lit(Decimal(1 << at * bits)) for at, one in enumerate(parts)),
        start=sf.lit(Decimal(0)),
    )
    return sf.count(sf.lit(1)).alias("rows"), checksum.cast("decimal(38,0)").alias("checksum")


def _certificate(result: dict[str, Any]) -> RowCertificate:
    return RowCertificate(int(result["rows"]), str(result["checksum"] or 0))


def _parts(value: Column, dtype: DataType) -> list[Column]:
    """What goes into the hash for one value, with a NULL mark at every depth."""
    missing = value.isNull()
    if isinstance(dtype, StructType):
        inner = [p for f in dtype.fields for p in _parts(value.getField(f.name), f.dataType)]
        return [missing, *inner]
    if isinstance(dtype, MapType):
        entry = StructType([StructField("key", dtype.keyType), StructField("value", dtype.valueType)])
        return _parts(sf.map_entries(value), ArrayType(entry))
    if isinstance(dtype, ArrayType):
        element = dtype.elementType
        return [missing, sf.size(value), sf.transform(value, lambda item: sf.xxhash64(*_parts(item, element)))]
    if isinstance(dtype, StringType) and not dtype.isUTF8BinaryCollation():
        # Under a collation, strings that compare equal hash equal; their bytes do not. Other strings are hashed where
        # they lie: bytes would be a copy of each.
        return [missing, value.cast("binary")]
    return [missing, value]
