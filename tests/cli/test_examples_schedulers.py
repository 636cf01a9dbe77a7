"""The schedulers' examples call commands that exist, with options that exist.

Airflow and dbt are too big to be installed for this; each example names the command that runs it with them.
"""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

from oreo_lakehouse.cli.maintain import app

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
