"""The tree of commands: each is loaded when it is asked for, and only then."""

from __future__ import annotations

import subprocess
import sys

import pytest

from deploy.cli.command_table import COMMANDS
from deploy.cli.program import Commands

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
    assert command.get_short_help_str(limit=1_000) == COMMANDS[name][1]


def test_the_help_lists_each_command_with_its_help() -> None:
    said = run("--help").stdout.splitlines()

    listed = said[said.index("Commands:") + 1 :]
    assert [each.split()[0] for each in listed] == list(COMMANDS)
    for each in listed:
        name, text = each.split(maxsplit=1)
        assert COMMANDS[name][1].startswith(text.removesuffix("..."))


@pytest.mark.parametrize("arguments", [(), ("console",), ("config",)])
def test_a_group_without_a_command_says_what_there_is(arguments: tuple[str, ...]) -> None:
    said = run(*arguments)

    assert (said.returncode, said.stdout) == (2, "")
    lines = said.stderr.splitlines()
    assert lines[0].startswith("Usage: ")
    assert "Commands:" in lines


def test_a_command_that_is_nearly_one_is_suggested() -> None:
    said = run("sttus")

    assert said.returncode == 2
    assert "Did you mean 'status'?" in said.stderr
