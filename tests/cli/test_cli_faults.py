"""A full disk, a log that may not be written, a layout whose files are gone: a sentence, an exit code, nothing lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faultystorage import METADATA, ROOM, files_below

from oreo_lakehouse.tables.certificate import certify


@pytest.fixture
def faulty_shop(spark: Any, shop: Any, storage: Any) -> Any:
    """The shop's table on storage that can fail, with queries for which a layout pays."""
    name = f"{shop.name}_faulty"
    rows = spark.table(shop.name)
    rows.writeTo(name).using(shop.format).tableProperty("location", f"faulty://{shop.folder}/t").create()
    made = replace(shop, name=name)
    made.ask()
    return made


def data_files(folder: Path) -> set[Path]:
    """Without the log: the clustering column comes by a commit of its own, before anything is staged."""
    return {file for file in files_below(folder) if "_delta_log" not in file.parts}


def failed(done: Any) -> str:
    """What a command that could not run told the user: one sentence, nothing for machines, no stack."""
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr
    return " ".join(done.stderr.split())


def test_storage_that_fails_is_named_and_the_next_run_goes_on(spark: Any, faulty_shop: Any, storage: Any) -> None:
    shop, folder = faulty_shop, faulty_shop.folder / "t"
    want, before = certify(spark.table(shop.name)), data_files(folder)

    storage.fault(20_000, None)  # a little of the rewrite fits
    told = failed(shop.maintain("--json"))
    assert "No space left on device" in told
    assert shop.name in told
    storage.fault(ROOM, None)
    assert data_files(folder) == before

    storage.fault(ROOM, METADATA[shop.format])
    told = failed(shop.maintain("--json"))
    assert "Permission denied" in told
    assert shop.name in told
    storage.fault(ROOM, None)
    assert data_files(folder) == before
    assert certify(spark.table(shop.name), ["_oreo_bid"]) == want

    assert shop.maintained()["decision"] == "move"  # the queries of the runs that failed were not lost
    assert certify(spark.table(shop.name), ["_oreo_bid"]) == want
    storage.fault(ROOM, METADATA[shop.format])
    assert "Permission denied" in failed(shop.oreo("rollback", shop.name, "--json"))
    storage.fault(ROOM, None)
    assert shop.oreo("rollback", shop.name).exit_code == 0
    assert certify(spark.table(shop.name), ["_oreo_bid"]) == want


def test_a_layout_past_retention_is_told_and_cannot_be_undone(spark: Any, shop: Any) -> None:
    want = certify(spark.table(shop.name))
    shop.ask()
    first = shop.maintained()
    assert first["decision"] == "move"
    if shop.format == "delta":
        spark.sql(f"VACUUM {shop.name} RETAIN 0 HOURS")
    else:
        plain = shop.name.removeprefix("iceberg.")
        for tag in spark.sql(f"SELECT name FROM {shop.name}.refs WHERE type = 'TAG'").collect():
            spark.sql(f"ALTER TABLE {shop.name} DROP TAG `{tag.name}`")
        expire = f"table => '{plain}', older_than => timestamp '2999-01-01', retain_last => 1"
        spark.sql(f"CALL iceberg.system.expire_snapshots({expire})")
    told = failed(shop.oreo("rollback", shop.name, "--json"))
    assert first["layout_id"][:8] in told or "gone" in told
    assert "oreo" in told  # the way out is a command
    assert certify(spark.table(shop.name), ["_oreo_bid"]) == want
    shown = json.loads(shop.oreo("status", shop.name, "--json").stdout)
    assert shown["layout_id"] == first["layout_id"]
