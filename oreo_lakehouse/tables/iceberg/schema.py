"""A table's columns as its metadata file describes them: by field id, which survives renames, with their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oreo_lakehouse.predicates.values import Kind

_KINDS = {
    "boolean": Kind.BOOLEAN,
    "int": Kind.INTEGER,
    "long": Kind.INTEGER,
    "float": Kind.FLOAT,
    "double": Kind.FLOAT,
    "string": Kind.STRING,
    "binary": Kind.BINARY,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP_NTZ,
    "timestamptz": Kind.TIMESTAMP,
}


@dataclass(frozen=True)
class IcebergColumn:
    """One top-level column."""

    id: int
    name: str
    kind: Kind
    type: str
    """Iceberg's name of a primitive type, or `struct`, `list`, `map`."""
    scale: int = 0
    """Of a decimal; Iceberg never changes it."""


def kind_of_type(type_name: str) -> Kind:
    """The kind of an Iceberg primitive type; what engines order differently (uuid, time, variant) is `OTHER`.

    >>> kind_of_type("decimal(9, 2)"), kind_of_type("timestamptz"), kind_of_type("uuid")
    (<Kind.DECIMAL: 'decimal'>, <Kind.TIMESTAMP: 'timestamp'>, <Kind.OTHER: 'other'>)
    """
    if type_name.startswith("decimal("):
        return Kind.DECIMAL
    return Kind.BINARY if type_name.startswith("fixed[") else _KINDS.get(type_name, Kind.OTHER)


def columns_of(schema: Mapping[str, Any]) -> list[IcebergColumn]:
    """The top-level columns of a schema in Iceberg's JSON form."""
    found: list[IcebergColumn] = []
    for field in schema["fields"]:
        type_name = field["type"] if isinstance(field["type"], str) else field["type"]["type"]
        kind = kind_of_type(type_name)
        scale = int(type_name.rstrip(")").split(",")[1]) if kind is Kind.DECIMAL else 0
        found.append(IcebergColumn(field["id"], field["name"], kind, type_name, scale))
    return found


def types_in(schema: Mapping[str, Any]) -> set[str]:
    """Every primitive type in a schema, nested ones included, without parameters such as a precision."""
    found: set[str] = set()
    open_types: list[Any] = [field["type"] for field in schema["fields"]]
    while open_types:
        one = open_types.pop()
        if isinstance(one, str):
            found.add(one.partition("(")[0].partition("[")[0])
        elif one["type"] == "struct":
            open_types += [field["type"] for field in one["fields"]]
        elif one["type"] == "list":
            open_types.append(one["element"])
        else:
            open_types += [one["key"], one["value"]]
    return found
