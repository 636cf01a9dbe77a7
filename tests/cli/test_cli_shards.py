"""A partitioned table of each format: each shard is decided about on its own, and only those that gain move."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import oreo_lakehouse as oreo
from oreo_lakehouse.config import load_config
from oreo_lakehouse.errors import ConflictError, ExitCode
from oreo_lakehouse.maintenance.rewrite import ATTEMPTS
from oreo_lakehouse.maintenance.shardtable import ShardTable
from oreo_lakehouse.tables.certificate import certify

REGIONS = ("AP", "EU", "US")
COLUMNS = (
    "id",
    "element_at(array('AP', 'EU', 'US'), cast(id % 3 + 1 AS int)) AS region",
    "cast(pmod(xxhash64(id), 1000) AS int) AS k",
    "cast(id AS double) AS d",
)


@pytest.fixture
def regions(spark: Any, shop: Any) -> Any:
    """The shop again, partitioned by region, 4 files a region."""
    spark.sql(f"DROP TABLE {shop.name}")
    rows = spark.range(0, 9_000, 1, 4).selectExpr(*COLUMNS).sortWithinPartitions("region")
    rows.writeTo(shop.name).using(shop.format).partitionedBy(rows.region).create()
    # Two of twelve blocks are the least that a shard may be: a sixth of the bytes, which every region has.
    shop.config.write_text(shop.config.read_text().replace("blocks = 8", "blocks = 12"))
    return shop


def ask(shop: Any, day: int, count: int, *conditions: str) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day)
    log = shop.folder / f"log{day}.jsonl"
    entries = [
        {
            "statement_text": f"SELECT count(*) FROM {shop.name} WHERE "
            + condition.format(low=(n * 37) % 900, high=(n * 37) % 900 + 50),
            "start_time": (start + timedelta(seconds=n)).isoformat(),
        }
        for n in range(count)
        for condition in conditions
    ]
    log.write_text("\n".join(map(json.dumps, entries)))
    done = shop.oreo("history", "import", shop.name, str(log))
    assert done.exit_code == 0, done.output


def files(spark: Any, shop: Any, region: str) -> set[str]:
    rows = spark.table(shop.name).where(f"region = '{region}'").selectExpr("input_file_name() AS p").distinct()
    return {row["p"] for row in rows.collect()}


def test_only_partitions_that_gain_are_rewritten(spark: Any, regions: Any) -> None:
    shop = regions
    before, rows = {r: files(spark, shop, r) for r in REGIONS}, certify(spark.table(shop.name), ["_oreo_bid"])
    ask(shop, 0, 60, "region = 'EU' AND k BETWEEN {low} AND {high}", "region = 'US'")

    dry = json.loads(shop.maintain("--dry-run", "--json").stdout)
    planned = {one["shard"]: one for one in dry["shards"]}
    assert {name: one["decision"] for name, one in planned.items()} == {"region=EU": "move", "region=US": "stay"}
    assert planned["region=EU"]["plan"]["files"] == len(before["EU"])
    assert not list(shop.folder.glob("store/*/shards"))

    moved = shop.maintained()
    assert moved["decision"] == "move"
    assert moved["reason"] == "1 of 3 shards gain: region=EU"
    after = {r: files(spark, shop, r) for r in REGIONS}
    assert (after["AP"], after["US"]) == (before["AP"], before["US"])
    assert not after["EU"] & before["EU"]
    assert certify(spark.table(shop.name), ["_oreo_bid"]) == rows

    # The other shard has its turn when its own queries ask for it; a third layout of the first one is not made.
    ask(shop, 1, 60, "region = 'US' AND d BETWEEN 10 * {low} AND 10 * {high}")
    second = shop.maintained()
    assert [(one["shard"], one["decision"]) for one in second["shards"]] == [("region=US", "move")]
    assert files(spark, shop, "EU") == after["EU"]
    assert shop.maintained()["reason"].startswith("no new queries since the last run")

    told = json.loads(shop.oreo("ledger", shop.name, "--json").stdout)
    by_shard = {one["shard"]: one for one in told["shards"]}
    assert {name: (one["queries"], one["rewrites"]) for name, one in by_shard.items()} == {
        "region=EU": (60, 1),
        "region=US": (120, 1),
    }
    assert all(one["bound"]["paid"] <= one["bound"]["limit"] for one in by_shard.values())
    assert told["total"]["rewrites"] == 2
    weights = {one["shard"]: one["share"] for one in told["shards"]}
    spent = sum(one["spent"]["total"] * weights[name] for name, one in by_shard.items())
    assert told["total"]["spent"] == pytest.approx(spent)
    assert "region=US" in shop.oreo("ledger", shop.name).stdout
    alone = shop.oreo("ledger", shop.name, "--shard", "region=EU")
    assert "receipt" in alone.stdout, alone.output

    page = shop.folder / "report.html"
    assert shop.oreo("report", shop.name, "-o", str(page)).exit_code == 0
    assert page.read_text().count("<details") == 2
    assert shop.oreo("report", shop.name, "--shard", "region=AP", "-o", str(page)).exit_code == 0
    assert "region=AP" in page.read_text()

    stands = json.loads(shop.oreo("status", shop.name, "--json").stdout)
    assert [one["shard"] for one in stands["shards"]] == ["region=AP", "region=EU", "region=US"]
    assert stands["shards"][0]["layout"] is None
    assert "region=AP" in shop.oreo("status", shop.name).stdout
    assert "region=EU" in shop.oreo("explain", shop.name).stdout
    why = json.loads(shop.oreo("explain", shop.name, "--shard", "region=EU", "--json").stdout)
    assert (why["decision"], why["shard"]) == ("move", "region=EU")
    nobody = shop.oreo("explain", shop.name, "--shard", "region=XX")
    assert nobody.exit_code == 2
    assert "region=AP, region=EU, region=US" in nobody.stderr

    # Undoing takes the last layout of one shard, and leaves the other's alone.
    undone = json.loads(shop.oreo("rollback", shop.name, "--json").stdout)
    assert undone["shard"] == "region=US"
    assert files(spark, shop, "US") == before["US"]
    assert files(spark, shop, "EU") == after["EU"]
    listed = json.loads(shop.oreo("layouts", shop.name, "--json").stdout)["layouts"]
    assert [(one["shard"], one["state"]) for one in listed] == [("region=US", "returnable"), ("region=EU", "live")]
    first = json.loads(shop.oreo("rollback", shop.name, "--shard", "region=EU", "--json").stdout)
    assert first["shard"] == "region=EU"
    assert {r: files(spark, shop, r) for r in REGIONS} == before


def test_what_is_appended_to_one_shard_is_folded_there(spark: Any, regions: Any) -> None:
    shop = regions
    ask(shop, 0, 60, "region = 'EU' AND k BETWEEN {low} AND {high}")
    assert shop.maintained()["decision"] == "move"
    before = {r: files(spark, shop, r) for r in REGIONS}
    spark.range(9_000, 9_180, 1, 1).selectExpr(*COLUMNS).writeTo(shop.name).append()
    ask(shop, 1, 40, "region = 'EU' AND k BETWEEN {low} AND {high}")
    folded = shop.maintained()
    assert {one["shard"]: one["decision"] for one in folded["shards"]}["region=EU"] == "fold"
    assert before["EU"] < files(spark, shop, "EU")  # what was laid out stays, what was appended joins it
    assert before["US"] < files(spark, shop, "US")  # nobody asked for it: what was appended lies as it was written
    # A new partition beyond the last one begins a shard of its own, if the last one is large enough without it.
    shop.config.write_text(shop.config.read_text().replace("blocks = 12", "blocks = 16"))
    spark.range(0, 1_500, 1, 2).selectExpr("id", "'ZA' AS region", *COLUMNS[2:]).writeTo(shop.name).append()
    ask(shop, 2, 60, "region = 'ZA' AND k BETWEEN {low} AND {high}")
    grown = shop.maintained()
    assert [(one["shard"], one["decision"]) for one in grown["shards"]] == [("region=ZA", "move")]
    # Whoever wants to may go on deciding about the table as a whole.
    shop.config.write_text(shop.config.read_text().replace("[layout]", "[layout]\nshards = 0"))
    ask(shop, 3, 60, "d BETWEEN 10 * {low} AND 10 * {high}")
    whole = shop.maintained()
    assert "shards" not in whole
    assert whole["decision"] == "move"


def test_a_shard_goes_back_to_an_earlier_layout_by_metadata_alone(spark: Any, regions: Any) -> None:
    shop = regions
    shop.config.write_text(shop.config.read_text().replace("[layout]", '[layout]\ngenerators = ["sort"]'))
    by_k, by_d = (
        "region = 'EU' AND k BETWEEN {low} AND {high}",
        "region = 'EU' AND d BETWEEN 10 * {low} AND 10 * {high}",
    )
    made: list[tuple[str, set[str]]] = []
    for day, condition in enumerate((by_k, by_d)):
        ask(shop, day, 60, condition)
        (moved,) = shop.maintained()["shards"]
        assert moved["decision"] == "move"
        made.append((moved["layout_id"], files(spark, shop, "EU")))
    # What came to the shard since is kept, and what others do to the rest of the table is no hindrance.
    spark.range(9_001, 9_002).selectExpr(*COLUMNS).writeTo(shop.name).append()
    appended = files(spark, shop, "EU") - made[1][1]
    spark.sql(f"DELETE FROM {shop.name} WHERE id = 2")
    rows = certify(spark.table(shop.name), ["_oreo_bid"])
    back = json.loads(shop.oreo("rollback", shop.name, "--to", made[0][0], "--json").stdout)
    assert (back["shard"], back["returned_to"]) == ("region=EU", made[0][0])
    assert files(spark, shop, "EU") == made[0][1] | appended
    listed = json.loads(shop.oreo("layouts", shop.name, "--json").stdout)["layouts"]
    assert [one["state"] for one in listed] == ["live", "returnable", "returnable"]
    # A run that wants a layout again whose files are still there finds them by itself.
    ask(shop, 2, 60, by_d)
    (again,) = shop.maintained()["shards"]
    assert (again["layout_id"], again["bytes_rewritten"]) == (made[1][0], 0)
    assert files(spark, shop, "EU") == made[1][1] | appended
    assert certify(spark.table(shop.name), ["_oreo_bid"]) == rows
    spark.sql(f"DELETE FROM {shop.name} WHERE id = 1")
    refused = shop.oreo("rollback", shop.name, "--shard", "region=EU", "--to", made[0][0])
    assert refused.exit_code == 2
    assert "oreo-maintain" in refused.stderr


@pytest.mark.parametrize("shop", ["iceberg"], indirect=True)
def test_a_shard_that_others_write_all_the_time_waits_and_the_others_do_not(spark: Any, regions: Any) -> None:
    shop = regions
    before = {r: files(spark, shop, r) for r in REGIONS}
    ask(shop, 0, 60, *(f"region = '{region}' AND k BETWEEN {{low}} AND {{high}}" for region in ("EU", "US")))
    deleted = list[int]()

    def interfere(step: str, _: float | None = None) -> None:
        if step == "region=EU: committing":
            deleted.append(spark.sql(f"SELECT min(id) FROM {shop.name} WHERE region = 'EU'").head()[0])
            spark.sql(f"DELETE FROM {shop.name} WHERE id = {deleted[-1]}")

    with pytest.raises(ConflictError, match="1 of 3 shards could not be maintained, 1 others were rewritten"):
        oreo.maintain(spark, shop.name, load_config(shop.config), progress=interfere)
    assert len(deleted) == ATTEMPTS
    assert not files(spark, shop, "US") & before["US"]
    assert spark.table(shop.name).count() == 9_000 - ATTEMPTS
    again = shop.maintained()
    assert {one["shard"]: one["decision"] for one in again["shards"]} == {"region=EU": "move"}


@pytest.mark.parametrize("shop", ["delta"], indirect=True)
def test_a_shard_that_cannot_be_verified_does_not_keep_the_others_waiting(
    spark: Any, regions: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = regions
    before = {r: files(spark, shop, r) for r in REGIONS}
    ask(shop, 0, 60, *(f"region = '{region}' AND k BETWEEN {{low}} AND {{high}}" for region in ("EU", "US")))
    stage = ShardTable.stage

    def forgetful(table: ShardTable, *given: Any) -> Any:
        staged = stage(table, *given)
        lost = table.shard.label == "region=EU"
        return replace(staged, added=staged.added[lost:], paths=staged.paths[lost:])

    monkeypatch.setattr(ShardTable, "stage", forgetful)
    done = shop.maintain()
    assert done.exit_code == ExitCode.CANNOT_RUN
    assert "1 of 3 shards could not be maintained, 1 others were rewritten. region=EU: " in done.stderr
    assert files(spark, shop, "EU") == before["EU"]
    assert not files(spark, shop, "US") & before["US"]
