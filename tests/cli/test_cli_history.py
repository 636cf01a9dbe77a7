"""`oreo history TABLE` shows what is known; its other words do what they say."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from oreo_lakehouse.cli.main import app


def test_the_history_of_a_table_for_people_and_machines(shop: Any) -> None:
    shop.oreo("history", "import", shop.name, str(shop.log(count=30)))
    shown = shop.oreo("history", shop.name)
    assert shown.exit_code == 0, shown.output
    assert "30, which scan the table 30 times" in shown.stdout
    assert "k 30" in shown.stdout
    known = json.loads(shop.oreo("history", shop.name, "--json").stdout)
    assert (known["queries"], known["exactness"]) == (30, {"exact": 30})


def test_packing_keeps_every_query(shop: Any) -> None:
    shop.oreo("history", "import", shop.name, str(shop.log(count=30)))
    assert shop.oreo("history", "compact", shop.name).exit_code == 0
    assert json.loads(shop.oreo("history", shop.name, "--json").stdout)["queries"] == 30
    assert shop.maintained()["queries_seen"] == 30


def test_the_capture_jar_is_built_without_a_jdk(spark: Any, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["history", "jar", "-o", str(tmp_path / "capture.jar")])
    assert done.exit_code == 0, done.output
    assert "spark.plugins=oreo.capture.CapturePlugin" in done.stdout
    assert "oreo/capture/CapturePlugin.class" in zipfile.ZipFile(tmp_path / "capture.jar").namelist()
