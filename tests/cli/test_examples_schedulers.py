"""The schedulers' examples call commands that exist, with options that exist.

Airflow and dbt take minutes to install: `OREO_FULL=1 uv run pytest -n 0 tests/cli/test_examples_schedulers.py` has them
run the examples for real, on a table each.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

from oreo_lakehouse.cli.maintain import app

full = pytest.mark.skipif(not os.environ.get("OREO_FULL"), reason="installs the scheduler first: OREO_FULL=1")
EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "schedulers"


def parsed(command: str) -> dict[str, Any]:
    """The options that `oreo-maintain` understands of a shell command."""
    words = shlex.split(command.split(">>")[0])
    start = next(i for i, word in enumerate(words) if word.endswith("oreo-maintain"))
    return typer.main.get_command(app).make_context("oreo-maintain", words[start + 1 :]).params


def test_the_airflow_dag(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks: list[dict[str, Any]] = []

    class Dag:
        def __init__(self, name: str, **settings: Any) -> None:
            assert settings["catchup"] is False

        def __enter__(self) -> Dag:
            return self

        def __exit__(self, *_: object) -> None: ...

    if "airflow" not in sys.modules:  # a stand-in for the two names that the file imports
        for name in (
            "airflow",
            "airflow.providers",
            "airflow.providers.standard",
            "airflow.providers.standard.operators",
        ):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        sdk, bash = ModuleType("airflow.sdk"), ModuleType("airflow.providers.standard.operators.bash")
        sdk.DAG, bash.BashOperator = Dag, lambda **task: tasks.append(task)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, sdk.__name__, sdk)
        monkeypatch.setitem(sys.modules, bash.__name__, bash)
    runpy.run_path(str(EXAMPLES / "airflow_dag.py"), run_name="dags")
    (task,) = tasks
    options = parsed(task["bash_command"])
    assert options["tables"] == ["analytics.orders", "analytics.events_*"]
    assert options["after_optimize"]
    assert (options["budget"], options["cooldown"]) == ("200GB", "6h")


def test_the_cron_line() -> None:
    (line,) = (line for line in (EXAMPLES / "crontab").read_text().splitlines() if not line.startswith("#"))
    when, command = re.fullmatch(r"((?:\S+ ){5})(.+)", line).groups()  # type: ignore[union-attr]
    assert when.split()[2:] == ["*", "*", "*"]
    options = parsed(command)
    assert options["every"]
    assert options["max_minutes"] == 180


def test_the_command_after_dbt() -> None:
    text = (EXAMPLES / "dbt" / "run.py").read_text()
    compile(text, "run.py", "exec")
    (command,) = re.findall(r"dbt build && (oreo-maintain .+)", text)
    assert parsed(command)["tables"] == ["shop.*"]
    assert "OPTIMIZE {{ this }}" in (EXAMPLES / "dbt" / "dbt_project.yml").read_text()


def ran(folder: Path, *words: str, **environ: str) -> str:
    """What a command says, in a folder and an environment without anything of ours but the commands."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("OREO_", "SPARK_", "PYSPARK_"))}
    plain["PATH"] = f"{Path(sys.executable).parent}:{plain['PATH']}"
    done = subprocess.run(words, cwd=folder, env=plain | environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@full
def test_airflow_s_own_test_runner_runs_the_dag(tmp_path: Path) -> None:
    make = (
        "import oreo_lakehouse; oreo_lakehouse.spark_session().range(0, 4000).writeTo('shop').using('delta').create()"
    )
    ran(tmp_path, sys.executable, "-c", make)
    log = tmp_path / "log.jsonl"
    asked = {"statement_text": "SELECT * FROM shop WHERE id < 9", "start_time": "2026-01-01T00:00:00Z"}
    log.write_text(json.dumps(asked))
    ran(tmp_path, "oreo", "history", "import", "shop", str(log))
    steps = "airflow db migrate && airflow dags reserialize && airflow dags test oreo_maintain"
    ran(
        *(tmp_path, "uv", "run", "--no-project", "--with", "apache-airflow==3.*", "sh", "-c", steps),
        AIRFLOW_HOME=str(tmp_path / "airflow"),
        AIRFLOW__CORE__DAGS_FOLDER=str(EXAMPLES),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        OREO_HOME=str(tmp_path),
        OREO_TABLES="shop",
    )
    lines = [json.loads(line) for file in tmp_path.glob("**/ledger/*.jsonl") for line in file.read_text().splitlines()]
    assert [line["facts"]["queries"] for line in lines if line["kind"] == "decision"] == [1]


@full
def test_dbt_builds_its_model_and_maintenance_follows(tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLES / "dbt", tmp_path / "dbt")
    ran(tmp_path, "uv", "venv", "env")
    packages = ("dbt-core<1.11", "dbt-spark[session]", str(EXAMPLES.parent.parent))
    ran(tmp_path, "uv", "pip", "install", "--python", "env", *packages)
    said = ran(project, str(tmp_path / "env" / "bin" / "python"), "run.py")
    assert re.search(r"shop\.orders.* stay: no query history yet", said), said
