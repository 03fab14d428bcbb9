"""Tree of the commands: each is loaded when it is asked for; help in panels, with examples."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, MutableMapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from deploy.cli.command_table import COMMANDS, PANELS
from deploy.cli.examples import examples_of
from deploy.cli.interrupts import leaving
from shared.lean_imports import load_little

PLAIN: dict[str, Any] = {
    "rich_markup_mode": None, "pretty_exceptions_enable": False, "add_completion": False
}  # fmt: skip


SERVICES = ("run", "up")
"""Commands whose process goes on as a service, with all that its libraries may need."""


class Commands(MutableMapping[str, Any]):
    """Commands by name. Each is loaded when it is requested: all together take over a second."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            module, _, attribute = COMMANDS[name].place.partition(":")
            if name not in SERVICES:
                load_little()
            with leaving():
                found = getattr(importlib.import_module(f"deploy.commands.{module}"), attribute)
            parent = typer.Typer(**PLAIN)
            if isinstance(found, typer.Typer):
                parent.add_typer(found, name=name)
            else:
                parent.command(name)(found)
            command = get_group(parent).commands[name]
            _show_examples(command)
            self._loaded[name] = command
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]


def _show_examples(command: Any) -> None:
    """Add the examples of a command, or of each command of a group, to its help."""
    for each in getattr(command, "commands", {}).values():
        _show_examples(each)
    if lines := examples_of(command.callback):
        # \b keeps the lines of a paragraph as they are
        command.epilog = "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


class CommandTree(TyperGroup):
    """The program as a group of commands, listed from COMMANDS without loading them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = Commands()

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """List the commands, each panel under its heading, one line each."""
        widest = max(map(len, COMMANDS))
        room = formatter.width - 6 - widest
        for panel in PANELS:
            rows = [
                (name.ljust(widest), TyperCommand(name, help=each.help).get_short_help_str(room))
                for name, each in COMMANDS.items()
                if each.panel == panel
            ]
            with formatter.section(panel):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the commands and options that begin with `incomplete`, without loading any."""
        from typer._click.shell_completion import CompletionItem

        names = (name for name in COMMANDS if name.startswith(incomplete))
        found = [CompletionItem(name, help=COMMANDS[name].help) for name in names]
        return found + super(TyperGroup, self).shell_complete(ctx, incomplete)
