"""Layout and rollback on every kind of Delta table: rows, row ids, metadata and protocol stay; the rest is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from lake import BID, Lake, Modulo, lay_out, run_id, staged_layout, version_of

from oreo_lakehouse.errors import UnsupportedTableError
from oreo_lakehouse.tables.certificate import certify
from oreo_lakehouse.tables.delta.log import Log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THREE = ("id long, v int, s string", "id, cast(id % 7 as int), cast(id as string)")
NESTED = (
    "id long, st struct<a:int,b:array<string>>, m map<string,int>, n timestamp_ntz, d decimal(20,3), b binary",
    (
        "id, struct(cast(id as int), array('x')), map('k', cast(id as int)), timestamp_ntz'2024-01-01 00:00:00', "
        "cast(id as decimal(20,3)), cast(cast(id as string) as binary)"
    ),
)
KINDS: dict[str, tuple[tuple[str, str], str, dict[str, str]]] = {
    "partitioned, column mapping by name, deletion vectors": (
        (THREE[0].replace(" s ", " `s x` "), THREE[1].replace("% 7", "% 3")),
        "partitioned by (v)",
        {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
    ),
    "row tracking": (THREE, "", {"delta.enableRowTracking": "true"}),
    "row tracking, deletion vectors, column mapping by id, random file prefixes, change feed": (
        THREE,
        "",
        {
            "delta.enableRowTracking": "true",
            "delta.enableDeletionVectors": "true",
            "delta.columnMapping.mode": "id",
            "delta.randomizeFilePrefixes": "true",
            "delta.enableChangeDataFeed": "true",
        },
    ),
    "generated and identity columns": (("", ""), "", {}),
    "append only, change feed, constraint, NOT NULL, default, in-commit timestamps": (
        ("id long not null, v int default 3", "id, 1"),
        "",
        {
            "delta.appendOnly": "true",
            "delta.enableChangeDataFeed": "true",
            "delta.constraints.c": "id >= 0",
            "delta.feature.allowColumnDefaults": "supported",
            "delta.enableInCommitTimestamps": "true",
        },
    ),
    "nested and odd types, v2 checkpoint, optimizeWrite, autoCompact, type widening": (
        (NESTED[0] + ", v int", NESTED[1] + ", cast(id as int)"),
        "",
        {
            "delta.checkpointPolicy": "v2",
            "delta.checkpointInterval": "2",
            "delta.autoOptimize.optimizeWrite": "true",
            "delta.autoOptimize.autoCompact": "true",
            "delta.enableTypeWidening": "true",
        },
    ),
}


def computed(delta: Lake) -> tuple[str, Any]:
    """A table whose columns `g` and `k` Delta fills in; SQL cannot make one outside Databricks, Delta's builder can."""
    api: Any = delta.spark._jvm.io.delta.tables.DeltaTable
    session, name = delta.spark._jsparkSession, f"{delta.schema}.t"
    twice = api.columnBuilder(session, "g").dataType("BIGINT").generatedAlwaysAs("id * 2").build()
    counted = api.columnBuilder(session, "k").dataType("BIGINT").generatedByDefaultAsIdentity().build()
    made = api.create(session).tableName(name).addColumn("id", "BIGINT").addColumn(twice).addColumn(counted)
    made.execute()
    delta.sql(f"insert into {name} (id) select id from range(0, 80, 1, 4)")
    return name, delta.opener(delta.spark, name)


def state(spark: SparkSession, name: str) -> dict[str, Any]:
    """All that a layout must leave as it is."""
    snapshot = Log.for_name(spark, name).snapshot()
    rows = spark.newSession().table(name)
    tracked = '"delta.enableRowTracking":"true"' in str(snapshot.metadata().json())
    if tracked:
        rows = rows.select("*", "_metadata.row_id", "_metadata.row_commit_version")
    return {
        "rows": certify(rows, [BID]),
        "metadata": json.loads(str(snapshot.metadata().json())),
        "protocol": json.loads(str(snapshot.protocol().json())),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_layout_and_rollback_keep_rows_metadata_and_protocol(delta: Lake, kind: str) -> None:
    (columns, select), clause, properties = KINDS[kind]
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in {**properties, "oreo.test": "x"}.items())
    if columns:
        name, table = delta.create(columns, select, rows=80, clause=f"{clause} tblproperties ({listed})")
    else:
        name, table = computed(delta)
    delta.sql(f"alter table {name} add column {BID} int")
    if "append only" not in kind:
        delta.sql(f"delete from {name} where id in (5, 6)")
    if "type widening" in kind:
        delta.sql(f"alter table {name} alter column v type long")
        delta.sql(f"insert into {name} (id, v) values (1000, 5000000000)")
    if kind == "row tracking":
        delta.sql(f"update {name} set v = 100 where id = 50")
    before = state(delta.spark, name)
    lay_out(table)
    assert state(delta.spark, name) == before
    bids = table.blocks().columns[BID]
    assert set(bids.lower) == set(bids.upper) == {0, 1, 2, 3}
    assert delta.sql(f"select * from {name} where {BID} != pmod(id, 4)").count() == 0
    if not columns:  # identity values go on after a layout
        top = delta.sql(f"select max(k) m from {name}").first()
        delta.sql(f"insert into {name} (id) values (-1)")
        new = delta.sql(f"select k, g from {name} where id = -1").first()
        assert new["k"] > top["m"]
        assert new["g"] == -2
        before = state(delta.spark, name)
    version_of(table.revert(table.layout_commits()[0], run_id()))
    assert state(delta.spark, name) == before


@pytest.mark.parametrize(
    ("clause", "reason"),
    [
        ("cluster by (v)", "liquid-clustered"),
        (
            (
                "tblproperties ('delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'name', "
                "'delta.enableDeletionVectors' = 'false')"
            ),
            "UniForm",
        ),
        ("tblproperties ('delta.feature.variantType' = 'supported')", "VARIANT"),
        ("tblproperties ('delta.feature.variantShredding' = 'supported')", "VARIANT|variantShredding"),
    ],
)
def test_what_a_layout_might_damage_is_refused_with_its_reason(delta: Lake, clause: str, reason: str) -> None:
    _, table = delta.create(clause=clause, rows=4)
    version = table.version()
    with pytest.raises(UnsupportedTableError, match=reason):
        table.plan(Modulo(), BID)
    assert table.version() == version


def test_automatic_compaction_is_warned_of(delta: Lake) -> None:
    _, table = delta.create(clause="tblproperties ('delta.autoOptimize.autoCompact' = 'true')", rows=4)
    assert any("autoCompact" in warning for warning in table.plan(Modulo(), "").warnings)


def test_settings_that_forgive_missing_files_do_not_lose_rows(delta: Lake) -> None:
    from pathlib import Path

    name, table = delta.create()
    lay_out(table)
    delta.spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        victim = next(Path(table.identity.location.removeprefix("file:")).glob("oreo-*.parquet"))
        hidden = victim.rename(victim.with_name("_hidden"))
        with pytest.raises(Exception, match="The table is as it was"):
            table.stage(table.plan(Modulo(3), BID), run_id())
        hidden.rename(victim)
    finally:
        delta.spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    assert delta.certificate(name).rows == 400
    assert not list(Path(table.identity.location.removeprefix("file:")).glob("oreo-run*-part-*-*_*"))


def test_a_block_far_above_its_share_becomes_several_files(delta: Lake) -> None:
    _name, table = delta.create(select="if(id < 300, 0, id), 1, 's'")
    staged = staged_layout(table)
    assert len(staged.paths) > 4
    version_of(table.commit(staged, {}))
    blocks = table.blocks()
    assert max(blocks.rows) <= 150
    assert (blocks.columns[BID].lower == blocks.columns[BID].upper).all()


def test_a_table_by_path_and_by_name_is_the_same_table(delta: Lake) -> None:
    from oreo_lakehouse.tables.delta import DeltaTable

    name, table = delta.create()
    other = DeltaTable.for_path(delta.spark, table.identity.location)
    assert other.identity.uuid == table.identity.uuid
    want = delta.certificate(name)
    lay_out(other)
    assert delta.certificate(name) == want
    assert [c.layout_id for c in table.layout_commits()] == [Modulo().id]
    version_of(table.revert(other.layout_commits()[0], run_id()))
    assert delta.certificate(name) == want
