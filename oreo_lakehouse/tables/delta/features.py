"""Which Delta tables we rewrite: an allow-list of table features, and a sentence for every refusal.

A feature that is not on the list may mean anything, so it is refused until a test shows that a layout keeps it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import IntegerType, StructType

from oreo_lakehouse.errors import UnsupportedTableError
from oreo_lakehouse.tables.delta.log import CATALOG_MANAGED, configuration

ALLOWED = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "materializePartitionColumns",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
_REFUSED = {
    "clustering": "it is liquid-clustered, and its own OPTIMIZE would undo every layout: ALTER TABLE … CLUSTER BY NONE "
    "and drop the feature first, or leave the layout to Delta",
    "catalogManaged": CATALOG_MANAGED,
    "coordinatedCommits-preview": "its commits are coordinated by a service, through which a layout cannot be "
    "committed yet",
    "icebergCompatV1": "it is also readable as Iceberg (UniForm), whose metadata a layout would leave behind",
    "icebergCompatV2": "it is also readable as Iceberg (UniForm), whose metadata a layout would leave behind",
    "icebergCompatV3": "it is also readable as Iceberg (UniForm), whose metadata a layout would leave behind",
    "geospatial": "it has geospatial columns, which are not tested yet",
    "variantType": "it has VARIANT columns, whose values cannot be checksummed yet",
    "variantType-preview": "it has VARIANT columns, whose values cannot be checksummed yet",
}


def refuse_unsupported(name: str, snapshot: Any) -> None:
    """Raise `UnsupportedTableError` with the reason, if a layout might damage the table."""
    protocol = json.loads(str(snapshot.protocol().json()))["protocol"]
    features = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    unknown = sorted(features - ALLOWED)
    if unknown:
        known = next((feature for feature in unknown if feature in _REFUSED), None)
        reason = _REFUSED[known] if known else f"its table feature {unknown[0]!r} is not known to this release"
        raise UnsupportedTableError(f"{name} cannot be rewritten: {reason}.")
    if protocol["minWriterVersion"] > 7 or protocol["minReaderVersion"] > 3:
        raise UnsupportedTableError(f"{name} needs a newer Delta protocol than this release knows: upgrade.")
    if configuration(snapshot).get("delta.universalFormat.enabledFormats"):
        raise UnsupportedTableError(f"{name} cannot be rewritten: {_REFUSED['icebergCompatV2']}.")


def warnings(snapshot: Any, statistics: str | None, new_column: str, writes: Mapping[str, int]) -> tuple[str, ...]:
    """What a user should know before the first rewrite, as sentences.

    `statistics` is the list of columns to be set, `new_column` the BID column to be added, if any; `writes` counts the
    operations in the table's history.
    """
    said: list[str] = []
    properties = configuration(snapshot)
    if properties.get("delta.autoOptimize.autoCompact", "false") != "false":
        said.append("autoCompact is on for this table and may merge files of different blocks after later writes.")
    if new_column:
        seen = ", ".join(
            f"{writes[operation]} {operation}" for operation in ("WRITE", "MERGE") if writes.get(operation)
        )
        said.append(
            f"ALTER TABLE will add the column {new_column} INT. Writers that then fail until they name their "
            "columns: INSERT by position (VALUES or SELECT *), insertInto, INSERT OVERWRITE, MERGE with *. "
            "DataFrame appends, streams and INSERT with a column list go on. Among the table's newest commits are "
            f'{seen or "none of either kind"}. Set bid_column = "" to do without.'
        )
    if statistics is not None:
        said.append("delta.dataSkippingStatsColumns will be set, so that the layout's columns have file statistics.")
    return tuple(said)


def resolve_bid_column(name: str, schema: StructType, bid_column: str) -> tuple[str, bool]:
    """The BID column as the table spells it, and whether it must be added."""
    if not bid_column:
        return "", False
    same = [field for field in schema.fields if field.name.lower() == bid_column.lower()]
    if not same:
        return bid_column, True
    if not isinstance(same[0].dataType, IntegerType):
        raise UnsupportedTableError(
            f"{name} already has a column {same[0].name} of type {same[0].dataType.simpleString()}, which is not a BID "
            "column: choose another name by bid_column in oreo.toml."
        )
    return same[0].name, False
