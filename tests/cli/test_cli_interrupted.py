"""Ctrl-C at the worst moments: the table reads the same, and the next run tidies up and goes on."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from oreo_lakehouse.cli.frame import CANCELLING
from oreo_lakehouse.config import load_config
from oreo_lakehouse.jvm import java_session, jvm
from oreo_lakehouse.maintenance.dossier import open_dossier
from oreo_lakehouse.maintenance.ledger import Ledger
from oreo_lakehouse.maintenance.story import Change, read_story
from oreo_lakehouse.tables.certificate import certify
from oreo_lakehouse.tables.delta import DeltaTable
from oreo_lakehouse.tables.iceberg import IcebergTable

KINDS: dict[str, Any] = {"delta": DeltaTable, "iceberg": IcebergTable}


def pending(shop: Any) -> list[Path]:
    return [p for p in (shop.folder / "store").glob("*/pending/*.json") if "begun" not in p.name]


def test_every_interrupted_run_is_tidied_up_after_by_the_next(
    spark: Any, shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four runs in a row are interrupted, each a step later; the fifth finds the fourth's commit."""
    before = certify(spark.table(shop.name), ["_oreo_bid"])
    shop.ask()
    kind = KINDS[shop.format]
    written: list[str] = []

    def interrupted_in(step: str, *, after: bool) -> None:
        real = getattr(kind, step)

        def interrupted(table: Any, *arguments: Any) -> None:
            if after:
                done = real(table, *arguments)
                written.extend(done.paths if step == "stage" else ())
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(kind, step, interrupted)
            stopped = shop.maintain()
        assert stopped.exit_code == 130, stopped.output
        assert "the next run tidies up" in stopped.stderr
        assert certify(spark.table(shop.name), ["_oreo_bid"]) == before
        assert len(pending(shop)) == (0 if step == "stage" else 1)

    def repaired() -> str:
        """What the next run does first, and says; a run that is interrupted in turn says nothing of it."""
        dossier = open_dossier(spark, shop.name, load_config(str(shop.config)))
        (fact,) = dossier.pending.repair(dossier.table)
        return str(fact["what"])

    interrupted_in("stage", after=True)
    assert f"died while writing: {len(written)} files deleted" in repaired()
    assert written
    assert not [path for path in written if Path(path.removeprefix("file:")).exists()]
    interrupted_in("verify", after=False)
    (staged,) = pending(shop)
    interrupted_in("commit", after=False)
    assert not staged.exists()
    assert "staged files deleted" in repaired()
    interrupted_in("commit", after=True)

    again = shop.maintain()
    assert again.exit_code == 0, again.output
    assert "had committed version" in again.stderr
    assert list((shop.folder / "store").glob("*/pending/*.json")) == []
    assert certify(spark.table(shop.name), ["_oreo_bid"]) == before
    assert shop.maintained()["layout_id"] is not None


def test_a_real_ctrl_c_while_spark_works_is_one_sentence(
    spark: Any, shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = certify(spark.table(shop.name), ["_oreo_bid"])
    shop.ask()
    real, here = KINDS[shop.format].stage, threading.get_ident()
    assert threading.current_thread() is threading.main_thread()  # signals come to no other

    def staged(table: Any, *arguments: Any) -> Any:
        threading.Timer(0.3, signal.pthread_kill, (here, signal.SIGINT)).start()
        return real(table, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(KINDS[shop.format], "stage", staged)
        stopped = shop.maintain("--json")
    # A command's process ends here. This one goes on when all jobs are cancelled, and over a new connection whose
    # thread knows no session yet.
    for thread in threading.enumerate():
        if thread.name == CANCELLING:
            thread.join()
    jvm(spark).org.apache.spark.sql.classic.SparkSession.setActiveSession(java_session(spark))
    assert (stopped.exit_code, stopped.stdout) == (130, "")
    assert "interrupted; the table reads as before" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert certify(spark.table(shop.name), ["_oreo_bid"]) == before
    assert shop.maintained()["decision"] == "move"
    assert certify(spark.table(shop.name), ["_oreo_bid"]) == before


def test_an_error_while_tidying_up_after_ctrl_c_does_not_hide_it(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.ask()

    def interrupted(*_: Any) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise OSError("the connection is gone")

    monkeypatch.setattr(KINDS[shop.format], "stage", interrupted)
    stopped = shop.maintain("--json")
    assert (stopped.exit_code, stopped.stdout) == (130, "")
    assert "interrupted" in stopped.stderr


def test_an_undoing_that_died_before_its_record_is_found_by_the_next_run(
    spark: Any, shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.ask()
    first = shop.maintained()["layout_id"]
    assert shop.oreo("history", "import", shop.name, str(shop.log(200, "d", 1, "more.jsonl"))).exit_code == 0
    second = shop.maintained()["layout_id"]
    assert second != first

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    def found_after(*command: str) -> Change:
        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "append", interrupted)
            assert shop.oreo("rollback", shop.name, *command).exit_code == 130
        assert len(pending(shop)) == 1
        assert "had committed version" in shop.maintain().stderr
        assert pending(shop) == []
        dossier = open_dossier(spark, shop.name, load_config(str(shop.config)))
        last = read_story(dossier.ledger.lines()).changes[-1]
        assert (last.version, last.alpha) == (dossier.table.version(), 0.0)
        return last

    assert found_after("--to", first).layout == first
    assert found_after().layout == second
    refused = shop.oreo("rollback", shop.name, "--to", second)
    assert refused.exit_code == 2
    assert pending(shop) == []
