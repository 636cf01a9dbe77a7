"""Spark's types by name."""

from __future__ import annotations

from oreo_lakehouse.predicates.values import Kind

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
