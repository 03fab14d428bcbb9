"""The tree of commands: each is loaded when it is asked for, and only then."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from deploy.cli.command_table import COMMANDS, PANELS
from deploy.cli.command_tree import Commands
from deploy.cli.examples import examples_of
from deploy.cli.program import app

BEGIN = "from deploy.cli.entry import main; main()"


def run(*arguments: str, code: str = BEGIN) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_where_the_list_says_and_has_help(name: str) -> None:
    command = Commands()[name]

    assert command.name == name
    assert command.get_short_help_str(limit=1_000) == COMMANDS[name].help


def test_the_help_lists_each_command_with_its_help_under_the_heading_of_its_panel() -> None:
    said = run("--help").stdout

    for panel in PANELS:
        block = said.split(f"\n{panel}:\n")[1].split("\n\n")[0].splitlines()
        wanted = [name for name, each in COMMANDS.items() if each.panel == panel]
        assert [each.split()[0] for each in block] == wanted
        for each in block:
            name, text = each.split(maxsplit=1)
            assert COMMANDS[name].help.startswith(text.removesuffix("..."))


def leaves(command: Any, *words: str) -> Iterator[tuple[str, Any]]:
    """Every command of the tree with its words; groups have none of their own."""
    below = getattr(command, "commands", {})
    for name, each in below.items():
        yield from leaves(each, *words, name)
    if not below:
        yield " ".join(words), command


LEAVES = dict(leaves(get_command(app)))
EVERY = pytest.mark.parametrize("words", LEAVES)


@EVERY
def test_every_command_prints_json_and_takes_a_home_by_the_same_names(words: str) -> None:
    options = {each.name: each.opts for each in LEAVES[words].params}

    assert options["as_json"] == ["--json"]
    if words not in {"secret", "completion"}:  # these know no installation
        assert options["home"] == ["--home"]


@EVERY
def test_a_site_is_given_the_same_way_to_every_command(words: str) -> None:
    named = [each for each in LEAVES[words].params if "site" in (each.help or "").split(";")[0]]
    sites = [each.opts for each in LEAVES[words].params if each.name == "site"]

    assert sites in ([], [["--site"]])
    assert all(each.name != "former" or each.hidden for each in named)


@EVERY
def test_every_command_has_two_examples_that_are_commands(words: str) -> None:
    lines = examples_of(LEAVES[words].callback)

    assert len(set(lines)) == 2
    help_text = LEAVES[words].get_help(typer.Context(LEAVES[words]))
    for each in lines:
        assert f"    {each}\n" in help_text + "\n"
        assert each.startswith(f"sitemapd {words}")
        parsed(each)


def parsed(line: str) -> None:
    """Raise for a command line with a word, an option or a value that does not exist."""
    command, context, words = (
        get_command(app),
        None,
        shlex.split(line.split(" > ", maxsplit=1)[0])[1:],
    )
    while isinstance(command, TyperGroup):
        context = command.make_context("x", words[:1], parent=context, resilient_parsing=True)
        _, found, words = command.resolve_command(context, words)
        assert found is not None
        command = found
    try:
        command.make_context(command.name, words, parent=context)
    except typer.BadParameter as error:
        if "does not exist" not in str(error):  # a file of the reader's
            raise


@pytest.mark.parametrize("arguments", [(), ("console",), ("config",)])
def test_a_group_without_a_command_says_what_there_is(arguments: tuple[str, ...]) -> None:
    said = run(*arguments)

    assert (said.returncode, said.stdout) == (2, "")
    lines = said.stderr.splitlines()
    assert lines[0].startswith("Usage: ")
    assert "Everyday:" in lines if not arguments else "Commands:" in lines


def test_a_command_that_is_nearly_one_is_suggested() -> None:
    said = run("sttus")

    assert said.returncode == 2
    assert "Did you mean 'status'?" in said.stderr
