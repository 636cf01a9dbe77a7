"""A user's mistake is one sentence on standard error and exit code 2, never a stack trace."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from oreo_lakehouse.cli.main import app
from oreo_lakehouse.cli.maintain import app as maintain_app
from oreo_lakehouse.errors import (
    ConflictError,
    ExitCode,
    HistoryError,
    OreoError,
    RollbackError,
    StoreError,
    TableError,
    TableNotFoundError,
    UnknownOutcomeError,
)


@pytest.mark.parametrize("command", ["status", "rollback", "maintain"])
def test_a_table_that_is_not_there(spark: Any, command: str) -> None:
    where = (maintain_app, ["db.nothing"]) if command == "maintain" else (app, [command, "db.nothing"])
    done = CliRunner().invoke(*where)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: there is no table 'nothing'")
    assert "Traceback" not in done.stderr


def test_a_wrong_setting(tmp_path: Any) -> None:
    file = tmp_path / "my.toml"
    file.write_text("[decide]\naplha = 3\n")
    done = CliRunner().invoke(maintain_app, ["t", "--config", str(file)])
    assert done.exit_code == 2
    assert "did you mean 'decide.alpha'?" in " ".join(done.stderr.split())


def test_no_java_is_said_before_anything_else_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    done = CliRunner().invoke(app, ["status", "db.t"])
    assert done.exit_code == 2
    assert "install Java 17 or 21" in " ".join(done.stderr.split())


def test_a_log_that_is_not_there(shop: Any) -> None:
    done = shop.oreo("history", "import", shop.name, "nowhere.jsonl")
    assert done.exit_code == 2
    assert "nowhere.jsonl" in done.stderr


def test_a_broken_log_is_counted_with_its_lines_and_the_rest_imported(shop: Any) -> None:
    file = shop.log(count=10)
    text = file.read_text()
    file.write_text("not json\n" + text + '{"statement_text": "SELECT 1"}\n')
    done = shop.oreo("history", "import", shop.name, str(file))
    assert done.exit_code == 0, done.output
    assert "10" in done.stdout
    assert "line 1" in done.stdout + done.stderr


def test_a_log_of_another_table_is_told_and_leaves_no_history(shop: Any) -> None:
    file = shop.log(count=10)
    file.write_text(file.read_text().replace(shop.name, f"{shop.name}_of_yesterday"))
    done = shop.oreo("history", "import", shop.name, str(file))
    assert done.exit_code == 2
    assert f"none of the 10 statements reads {shop.name}: 10 are about other tables" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OreoError, 2),
        (TableNotFoundError, 2),
        (TableError, 2),  # disk full, read-only storage, no permission: tests/tables/test_table_faults.py makes them
        (StoreError, 2),
        (HistoryError, 2),
        (RollbackError, 2),
        (ConflictError, 1),
        (UnknownOutcomeError, 3),
    ],
)
def test_exit_codes_mean_what_the_help_says(error: type[OreoError], code: int) -> None:
    assert error.exit_code == code
    assert f"{code} " in CliRunner().invoke(maintain_app, ["--help"]).stdout
    assert ExitCode.DONE == 0


def test_the_demo_leaves_a_folder_alone_that_it_did_not_make(tmp_path: Any) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    done = CliRunner().invoke(app, ["demo", "--folder", str(tmp_path)])
    assert done.exit_code == 2
    assert (tmp_path / "mine.txt").read_text() == "precious"
