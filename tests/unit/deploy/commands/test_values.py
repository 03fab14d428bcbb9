"""Values of options and arguments: read without pydantic where they need no conversion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer._coercion import build_runtime_param
from typer.core import TyperGroup
from typer.main import get_command

from deploy.cli.program import app
from deploy.cli.values import ValueReader

TEXTS = (
    "", " ", "3", "0", "-1", "1.5", "1e3", "nan", "yes", "bash", "operator", "https://a.example",
    "n\u00e9", "/",
)  # fmt: skip


def leaves(command: Any) -> Iterator[Any]:
    below = getattr(command, "commands", {})
    for name in below:
        yield from leaves(below[name])
    if not below:
        yield command


COMMANDS = {
    f"{each.callback.__module__}.{each.name}": each.params for each in leaves(get_command(app))
}


def outcome(reader: Any, value: object, parameter: Any) -> object:
    context = typer.Context(TyperGroup(name="sitemapd"))
    try:
        found = reader.coerce(value, param=parameter, ctx=context)
    except (typer.BadParameter, OSError) as error:
        return type(error), str(error)
    return repr(found)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_value_is_read_or_refused_as_by_typer(name: str) -> None:
    for parameter in COMMANDS[name]:
        kind = parameter.type_descriptor
        ours, theirs = ValueReader(kind), build_runtime_param(kind)
        several = parameter.multiple or parameter.nargs == -1
        given = [(text, "b") if several else text for text in TEXTS]

        for value in (None, parameter.default, *given):
            assert outcome(ours, value, parameter) == outcome(theirs, value, parameter)
