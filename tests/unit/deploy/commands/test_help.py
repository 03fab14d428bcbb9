"""The tree of commands: each is loaded when it is asked for, and only then."""

from __future__ import annotations

import subprocess
import sys

import pytest

from deploy.cli import COMMANDS, Commands

BEGIN = "from deploy.entry import main; main()"


def run(*arguments: str, code: str = BEGIN) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_where_the_list_says_and_has_help(name: str) -> None:
    command = Commands()[name]

    assert command.name == name
    assert command.get_short_help_str()


def test_no_command_is_loaded_before_it_is_asked_for() -> None:
    said = run(code="import sys, deploy.cli; print(*sys.modules, sep='\\n')")

    loaded = said.stdout.split()
    assert "deploy.cli" in loaded
    assert [name for name in loaded if name.startswith(("deploy.commands.", "worker"))] == []


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
