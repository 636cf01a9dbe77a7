"""Commands whose module is imported when they are called: `oreo status` loads no Spark to answer."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command

from oreo_lakehouse.cli.frame import EXIT_CODES


class LazyGroup(TyperGroup):
    """A group that knows where its commands live: `homes` has `module:name` of a function or an app by command."""

    homes: ClassVar[dict[str, str]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return [*self.homes, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.homes and cmd_name not in self.commands:
            module, _, name = self.homes[cmd_name].partition(":")
            found = getattr(import_module(f"oreo_lakehouse.cli.{module}"), name)
            if not isinstance(found, typer.Typer):
                app = typer.Typer(add_completion=False)
                app.command(cmd_name, epilog=EXIT_CODES)(found)
                found = app
            command = get_command(found)
            command.name = cmd_name
            self.add_command(command, cmd_name)
        return super().get_command(ctx, cmd_name)
