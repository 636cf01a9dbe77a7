"""Spark's types by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from oreo_lakehouse.predicates.values import Kind

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Kind.INTEGER),
    **dict.fromkeys(("float", "double"), Kind.FLOAT),
    **{kind.value: kind for kind in (Kind.BOOLEAN, Kind.STRING, Kind.BINARY, Kind.DATE)},
    "timestamp": Kind.TIMESTAMP,
    "timestamp_ntz": Kind.TIMESTAMP_NTZ,
}


def kind_of_type(name: str) -> Kind:
    """The kind of Spark's type of that name; what has no order that engines agree on is `OTHER`.

    >>> kind_of_type("decimal(10,2)"), kind_of_type("string collate UNICODE")
    (<Kind.DECIMAL: 'decimal'>, <Kind.OTHER: 'other'>)
    """
    return Kind.DECIMAL if name.startswith("decimal(") else _KINDS.get(name, Kind.OTHER)


def text_kinds(kinds: Mapping[str, Kind], schema: StructType) -> dict[str, Kind]:
    """A table's columns as SQL text may be read for them.

    A decimal with more than 28 digits before its point may be compared with a fractional literal only after Spark has
    rounded that (both sides share 38 digits), so without Spark nothing is certain about it.
    """
    from pyspark.sql.types import DecimalType

    wide = {
        field.name
        for field in schema
        if isinstance(field.dataType, DecimalType) and field.dataType.precision - field.dataType.scale > 28
    }
    return {name: Kind.OTHER if name in wide else kind for name, kind in kinds.items()}


def opaque_chars(schema: StructType) -> StructType:
    """The schema with CHAR columns of a type that no condition is understood for.

    What is stored in one may or may not be padded with blanks, and Spark pads one side of a comparison or the other.
    """
    from pyspark.sql.types import CharType, StringType, StructField, StructType

    def field(own: StructField) -> StructField:
        marked = str(own.metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")).startswith("char")
        plain = StringType("UNICODE") if marked or isinstance(own.dataType, CharType) else own.dataType
        return StructField(own.name, plain, own.nullable)

    return StructType([field(own) for own in schema.fields])
