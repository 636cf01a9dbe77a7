"""The house itself: style, types, the order of the rooms, the wheel, the documents. `uv run pytest` checks it all."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import oreo_lakehouse

HOME = Path(__file__).parent.parent


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-2000:]}"


def tool(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def test_lint() -> None:
    run(tool("ruff"), "check", "--no-cache", ".")


def test_format() -> None:
    run(tool("ruff"), "format", "--no-cache", "--check", ".")


def test_types() -> None:
    run(tool("pyright"), "--warnings")


def test_a_room_imports_only_from_rooms_above_it() -> None:
    run(tool("lint-imports"), "--no-cache")


def test_every_room_is_in_the_import_contract() -> None:
    layers = tomllib.loads((HOME / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    package = HOME / "oreo_lakehouse"
    rooms = {p.name for p in package.iterdir() if (p / "__init__.py").exists()} | {p.stem for p in package.glob("*.py")}
    assert rooms - {"__init__"} == {layer.removeprefix("oreo_lakehouse.") for layer in layers}


def test_the_wheel_has_the_package_and_what_it_needs_at_run_time(tmp_path: Path) -> None:
    run("uv", "build", "--wheel", "-q", "-o", str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    source = {
        str(p.relative_to(HOME))
        for p in (HOME / "oreo_lakehouse").rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    assert source <= packed
    assert "oreo_lakehouse/py.typed" in packed
    assert not [name for name in packed if name.startswith(("tests/", "examples/"))]
    run("uv", "venv", "-q", str(tmp_path / "env"))
    python = str(tmp_path / "env" / "bin" / "python")
    run("uv", "pip", "install", "-q", "--no-deps", "--python", python, str(wheel))
    run(python, "-c", "import oreo_lakehouse.errors; print(oreo_lakehouse.__doc__)")


def test_the_public_names_are_these_and_documented() -> None:
    assert sorted(oreo_lakehouse.__all__) == sorted(
        [
            "BidFilter",
            "Capture",
            "Config",
            "Hook",
            "OreoError",
            "Outcome",
            "RolledBack",
            "RunOptions",
            "TableStatus",
            "after_optimize",
            "attach",
            "bid_filter",
            "capture",
            "detach",
            "import_queries",
            "load_config",
            "maintain",
            "rollback",
            "spark_session",
            "status",
        ]
    )
    for name in oreo_lakehouse.__all__:
        assert getattr(oreo_lakehouse, name).__doc__, name


def test_the_readme_has_the_two_commands_as_they_are() -> None:
    readme = (HOME / "README.md").read_text()
    assert "pip install -q uv && uv run oreo demo" in readme
    assert "pip install -q uv && uv run pytest" in readme
    assert "pip install -q uv && uv run pytest" in (HOME / ".ci" / "run").read_text()


@pytest.mark.parametrize("document", ["README.md", ".github/CONTRIBUTING.md"])
def test_links_in_documents_lead_somewhere(document: str) -> None:
    file = HOME / document
    for link in re.findall(r"\]\(([^)#]+)", file.read_text()):
        if "://" not in link:
            assert (file.parent / link).exists(), f"{document} links to {link}"
