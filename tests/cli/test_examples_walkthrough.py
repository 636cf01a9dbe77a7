"""The walkthrough's commands are commands still, and the page is of those that its program runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import typer

from oreo_lakehouse.cli.main import app
from oreo_lakehouse.cli.maintain import app as maintain_app

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def parsed(command: str) -> None:
    """Have the command line's own parser take it; it raises a sentence where it cannot."""
    program, *words = shlex.split(command)
    found: click.Command = typer.main.get_command(maintain_app if program == "oreo-maintain" else app)
    while isinstance(found, click.Group):
        with click.Context(found, info_name=program) as context:
            if not words or found.get_command(context, words[0]) is None:
                break  # a group that is a command itself: `oreo history TABLE`
            found, words = found.get_command(context, words[0]), words[1:]
    found.make_context(program, words)


def test_every_command_of_the_page_is_accepted_and_run_by_its_program() -> None:
    shown = re.findall(r"^\$ (.+)$", (EXAMPLES / "walkthrough.md").read_text(), re.MULTILINE)
    run = re.findall(r'walk\.run\("([^"]+)"', (EXAMPLES / "walkthrough.py").read_text())
    assert len(shown) > 20
    assert shown == run
    for command in dict.fromkeys(shown):
        parsed(command)


def test_every_command_of_an_operator_s_day_has_its_place_in_the_page() -> None:
    page = (EXAMPLES / "walkthrough.md").read_text()
    day = (EXAMPLES.parent / "README.md").read_text().split("## An operator's day")[1].split("```")[1]
    commands = [line.split("#")[0].strip() for line in day.splitlines() if line.startswith("oreo")]
    assert len(commands) > 7
    for command in commands:
        parsed(command)
        words = command.split()[: 2 if command.startswith("oreo ") else 1]
        assert f"$ {' '.join(words)}" in page, command
