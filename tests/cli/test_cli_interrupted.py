"""Ctrl-C at the worst moments: the table reads the same, and the next run tidies up and goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oreo_lakehouse.tables.certificate import certify
from oreo_lakehouse.tables.delta import DeltaTable
from oreo_lakehouse.tables.iceberg import IcebergTable

KINDS: dict[str, Any] = {"delta": DeltaTable, "iceberg": IcebergTable}


def pending(shop: Any) -> list[Path]:
    return [p for p in (shop.folder / "store").glob("*/pending/*.json") if "begun" not in p.name]


@pytest.mark.parametrize("moment", ["staged", "verified", "committed"])
def test_an_interrupted_run_is_finished_by_the_next(
    spark: Any, shop: Any, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    before = certify(spark.table(shop.name), ["_oreo_bid"])
    assert shop.oreo("history", "import", shop.name, str(shop.log())).exit_code == 0
    step = "verify" if moment == "staged" else "commit"
    real = getattr(KINDS[shop.format], step)

    def interrupted(table: Any, *arguments: Any) -> None:
        if moment == "committed":
            real(table, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(KINDS[shop.format], step, interrupted)
        stopped = shop.maintain()
    assert stopped.exit_code == 130
    assert "the next run tidies up" in stopped.stderr
    assert certify(spark.table(shop.name), ["_oreo_bid"]) == before
    assert len(pending(shop)) == 1

    again = shop.maintain()
    assert again.exit_code == 0, again.output
    told = "had committed version" if moment == "committed" else "staged files deleted"
    assert told in again.stderr
    assert list((shop.folder / "store").glob("*/pending/*.json")) == []
    assert certify(spark.table(shop.name), ["_oreo_bid"]) == before
    assert shop.maintained()["layout_id"] is not None


def test_files_of_a_run_that_died_while_writing_are_found_by_its_id(
    spark: Any, shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shop.oreo("history", "import", shop.name, str(shop.log())).exit_code == 0
    kind = KINDS[shop.format]
    real = kind.stage
    written: list[str] = []

    def dies(table: Any, *arguments: Any) -> None:
        written.extend(real(table, *arguments).paths)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(kind, "stage", dies)
        assert shop.maintain().exit_code == 130
    again = shop.maintain()
    assert again.exit_code == 0, again.output
    assert f"died while writing: {len(written)} files deleted" in again.stderr
    assert not [path for path in written if Path(path.removeprefix("file:")).exists()]
    assert list((shop.folder / "store").glob("*/pending/*.json")) == []
