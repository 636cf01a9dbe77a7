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


def test_packing_keeps_every_query_until_it_is_told_otherwise(shop: Any) -> None:
    imported = json.loads(shop.oreo("history", "import", shop.name, str(shop.log(count=30)), "--json").stdout)
    assert (imported["imported"], imported["unknown"]) == (30, 0)
    assert "packed" in shop.oreo("history", "compact", shop.name).stdout
    assert json.loads(shop.oreo("history", shop.name, "--json").stdout)["queries"] == 30
    assert shop.maintained()["queries_seen"] == 30
    done = json.loads(shop.oreo("history", "compact", shop.name, "--bytes", "1", "--json").stdout)
    assert (done["batches"], done["dropped"]) == (0, 1)
    assert json.loads(shop.oreo("history", shop.name, "--json").stdout)["queries"] == 0


def test_a_mistake_is_one_sentence(shop: Any) -> None:
    file = str(shop.log(count=2))
    for arguments, sentence in {
        (file, "--format", "sparql"): "no format 'sparql'; known are auto, oreo,",
        (file, "--parser", "antlr"): "no parser 'antlr'; known are auto, catalyst, sqlglot",
        (file, "--dialect", "klingon"): "'klingon' is not a dialect",
        ("nowhere.jsonl",): "cannot read nowhere.jsonl: No such file or directory",
    }.items():
        done = shop.oreo("history", "import", shop.name, *arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert sentence in done.stderr
        assert done.stderr.strip().count("\n") == 0


def test_settings_decide_what_an_import_keeps(shop: Any) -> None:
    with shop.config.open("a") as file:
        file.write('[history]\nstore_sql = true\nredact = ["K"]\n')
    shop.oreo("history", "import", shop.name, str(shop.log(count=5)))
    known = json.loads(shop.oreo("history", shop.name, "--json").stdout)
    assert known["exactness"] == {"unknown": 5}
    assert set(known["reasons"]) == {"redacted: k >=", "redacted: k <="}


def test_the_capture_jar_is_built_without_a_jdk(spark: Any, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["history", "jar", "-o", str(tmp_path / "capture.jar")])
    assert done.exit_code == 0, done.output
    assert "spark.plugins=oreo.capture.CapturePlugin" in done.stdout
    again = CliRunner().invoke(app, ["history", "jar", "-o", str(tmp_path / "capture.jar"), "--json"])
    assert json.loads(again.stdout)["plugin"] == "oreo.capture.CapturePlugin"
    nowhere = CliRunner().invoke(app, ["history", "jar", "-o", str(tmp_path / "no" / "x.jar")])
    assert (nowhere.exit_code, "cannot write" in nowhere.stderr) == (2, True)
    assert "oreo/capture/CapturePlugin.class" in zipfile.ZipFile(tmp_path / "capture.jar").namelist()
