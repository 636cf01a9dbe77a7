"""A run that finds nothing new ends before Spark is started, and leaves what a run with Spark leaves."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from oreo_lakehouse.cli import maintain as command
from oreo_lakehouse.config import load_config
from oreo_lakehouse.maintenance import fleet, offline
from oreo_lakehouse.maintenance.dossier import open_dossier
from oreo_lakehouse.maintenance.idle import idle
from oreo_lakehouse.maintenance.lock import locked
from oreo_lakehouse.maintenance.options import RunOptions
from oreo_lakehouse.maintenance.shards import shard_folder, shard_id
from oreo_lakehouse.maintenance.state import State, StateStore
from oreo_lakehouse.tables.delta import DeltaTable


@pytest.fixture
def quiet(spark: Any, shop: Any, warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The shop after a first layout and a run that found nothing new, under a name that needs no metastore, where it
    looks as if no session ran."""
    place = open_dossier(spark, shop.name, load_config(str(shop.config))).table.identity.location
    shop.ask()
    shop = replace(shop, name=place.removeprefix("file:")) if shop.format == "delta" else shop
    shop.config.write_text(f'{shop.config.read_text()}[spark]\nwarehouse = "{warehouse}"\n')
    assert shop.maintained()["decision"] == "move"
    assert "no new queries" in shop.maintained()["reason"]
    monkeypatch.setattr(offline, "_spark_is_here", lambda: False)
    return shop


def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(command, "running_spark", never)


def last_lines(shop: Any, count: int) -> list[dict[str, Any]]:
    files = sorted((shop.folder / "store").glob("*/ledger/*.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [{"kind": line["kind"], **line["facts"]} for line in lines[-count:]]


def alone(shop: Any) -> Any:
    """What a run without Spark answers; None: it would start Spark."""
    return idle(shop.name, load_config(str(shop.config)), RunOptions())


def test_nothing_new_needs_no_spark(quiet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as started:
        started.setattr(offline, "_spark_is_here", lambda: True)
        by_spark = quiet.maintained()
    without_spark(monkeypatch)
    by_itself = quiet.maintained()
    assert by_itself | {"seconds": 0} == by_spark | {"seconds": 0}
    first, second = last_lines(quiet, 2)
    assert first == second
    assert first["decision"] == "stay"

    count = len(list((quiet.folder / "store").rglob("*")))
    dry = quiet.maintain("--dry-run", "--json")
    assert (dry.exit_code, json.loads(dry.stdout)["decision"]) == (0, "stay")
    assert len(list((quiet.folder / "store").rglob("*"))) == count

    if quiet.format == "iceberg":  # the Delta table is known by its name in the metastore, too, which takes Spark
        every: Result = CliRunner().invoke(command.app, ["--all", "--json", "--config", str(quiet.config)])
        assert [json.loads(line)["table"] for line in every.stdout.splitlines()] == [by_spark["table"]]

    dossier = quiet.folder / "store"
    (uuid,) = {path.parts[-3] for path in dossier.glob("*/ledger/*.jsonl")}
    with locked(offline.LocalStore(str(dossier)), uuid, "t"):
        busy = quiet.maintain()
    assert busy.exit_code == 1
    assert "is being maintained by" in busy.stderr


def new_queries(shop: Any, table: Path) -> None:
    named = replace(shop, name=f"delta.`{shop.name}`") if shop.format == "delta" else shop
    log = named.log(5, "d", 3, "new.jsonl")
    done = shop.oreo("history", "import", shop.name, str(log))
    assert done.exit_code == 0, done.output


def died(shop: Any, table: Path) -> None:
    (table / "pending").mkdir(exist_ok=True)
    (table / "pending" / f"{'a' * 32}.json").write_text('{"version": 2}')


def damaged(shop: Any, table: Path) -> None:
    state = max((table / "state").glob("*.json"))
    state.write_text(state.read_text()[:-5])


def another_weight(shop: Any, table: Path) -> None:
    shop.config.write_text(shop.config.read_text().replace("[decide]", '[decide]\nweigh = "bytes"'))


def unknown_name(shop: Any, table: Path) -> None:
    for file in (shop.folder / "store" / "names").rglob("*.json"):
        file.unlink()


def clock(shop: Any, table: Path) -> None:
    newest = max((table / "ledger").glob("*.jsonl"))
    newest.rename(newest.with_name(f"2999{newest.name[4:]}"))


def test_whatever_there_is_to_do_or_to_tell_is_left_to_a_run_with_spark(
    quiet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, settings = quiet.folder / "store", quiet.config.read_text()
    (table,) = {file.parents[1] for file in store.glob("*/ledger/*.jsonl")}
    assert alone(quiet) is not None
    assert idle(quiet.name, load_config(str(quiet.config)), RunOptions(after_optimize=True)) is None
    shutil.copytree(store, quiet.folder / "before")
    for what in (new_queries, died, damaged, another_weight, unknown_name, clock):
        with monkeypatch.context() as started:
            started.setattr(offline, "_spark_is_here", lambda: True)
            what(quiet, table)
        files = sorted(path.name for path in store.rglob("*.json*"))
        assert alone(quiet) is None, what.__name__
        assert sorted(path.name for path in store.rglob("*.json*")) == files
        shutil.rmtree(store)
        shutil.copytree(quiet.folder / "before", store)
        quiet.config.write_text(settings)
    assert alone(quiet) is not None


def test_a_table_that_is_too_small_for_any_layout_needs_no_spark(quiet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet.config.write_text(
        quiet.config.read_text().replace("blocks = 8", "").replace("window", 'mode = "bid"\nwindow')
    )
    with monkeypatch.context() as started:
        started.setattr(offline, "_spark_is_here", lambda: True)
        new_queries(quiet, quiet.folder)
        by_spark = quiet.maintain("--json", "--dry-run")
        assert "fits in one file" in by_spark.stdout
    assert "decide.mode is 'bid' for this table now" in by_spark.stderr
    assert "new queries are not known to have run with pruning" in by_spark.stderr
    without_spark(monkeypatch)
    by_itself = quiet.maintain("--json", "--dry-run")
    assert by_itself.stderr == by_spark.stderr
    assert json.loads(by_itself.stdout) | {"seconds": 0} == json.loads(by_spark.stdout) | {"seconds": 0}


def test_a_table_that_only_a_catalog_finds_is_not_read_by_spark(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.ask()
    assert shop.maintained()["decision"] == "move"
    with monkeypatch.context() as whole:
        whole.setattr(fleet, "idle", lambda *_: None)
        by_spark = shop.maintained()
    if shop.format == "delta":  # Spark reads an Iceberg table as fast as we do
        monkeypatch.setattr(DeltaTable, "for_name", staticmethod(lambda *_: pytest.fail("the table was opened")))
    by_itself = shop.maintained()
    assert by_itself | {"seconds": 0} == by_spark | {"seconds": 0}
    first, second = last_lines(shop, 2)
    assert first == second
    assert "no new queries" in first["reason"]


def test_a_table_dropped_and_made_again_under_its_name_is_told_of(
    spark: Any, shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.ask()
    assert shop.maintained()["decision"] == "move"
    rows = spark.table(shop.name).localCheckpoint()
    spark.sql(f"DROP TABLE {shop.name}")
    assert shop.maintain().exit_code == 2
    rows.writeTo(shop.name).using(shop.format).create()
    assert "is another table than in earlier runs" in shop.maintain().stderr


def test_a_shard_that_has_not_come_as_far_as_its_table_is_not_idle(spark: Any, quiet: Any) -> None:
    config = load_config(str(quiet.config))
    dossier = open_dossier(spark, quiet.name, config)
    dossier.book.add(["region=AP", "region=US"])
    assert alone(quiet) is not None
    assert last_lines(quiet, 1)[0]["shards"] == {}
    behind = StateStore(dossier.store, shard_folder(dossier.table.identity.uuid, shard_id("region=US")))
    behind.save(State(number=1, cursor={}))
    assert alone(quiet) is None
