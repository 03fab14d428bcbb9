"""Commands, options and sites completed by real shells, each on a terminal of its own."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.system.driver import SITEMAPD
from tests.system.nginx import needs
from tests.system.terminal import Terminal

SHELLS = {
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        "PS1='$ '; source <(sitemapd completion bash)",
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        "PS1='$ '; autoload -Uz compinit; compinit -D; source <(sitemapd completion zsh)",
    ),
    "zsh-file": (
        ["zsh", "-f", "-i"],
        "sitemapd completion zsh >_sitemapd; fpath+=$PWD; autoload compinit; compinit -u -D",
    ),
    "fish": (["fish", "--no-config", "--private", "-i"], "sitemapd completion fish | source"),
}
"""Each shell without the user's settings, and the line that lets it complete."""

TYPED = {
    "sitemapd stat": "sitemapd status ",
    "sitemapd queue pau": "sitemapd queue pause ",
    "sitemapd queue purge --sa": "sitemapd queue purge --save ",
    "sitemapd files list --site k": "sitemapd files list --site kitchen ",
    "sitemapd connect wordp": "sitemapd connect wordpress ",
}
_LEAD = ["sh", "-c", 'exec "$0" "$@" < "$(tty)"']
"""Opens the terminal again, which makes it that of the session: without one, fish ends."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    site = '[sites.{0}]\nbase_url = "https://{0}.example/"\nweb_root = "{0}"\ntokens = ["{1}"]\n'
    text = "".join(site.format(name, "0123456789abcdef") for name in ("garden", "kitchen"))
    (tmp_path / "sitemapd.toml").write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", SHELLS)
def test_a_shell_completes_commands_options_and_sites(home: Path, name: str) -> None:
    command, begin = SHELLS[name]
    needs(command[0])
    shell = Terminal([*_LEAD, *command], home)
    try:
        shell.type(f"{begin}; echo re''ady\n")
        shell.until(r"(?m)^\r*ready$")
        for typed, completed in TYPED.items():
            shell.said = ""
            shell.type(f"{typed}\t")
            shell.until(re.escape(completed))
            shell.type("\x15")
    finally:
        shell.process.kill()
        shell.process.wait()
        shell.close()


def test_fish_takes_no_part_of_a_help_for_a_command(home: Path) -> None:
    needs("fish")
    path = f"{SITEMAPD.parent}:{os.environ['PATH']}"
    ask = "sitemapd completion fish | source; complete -C 'sitemapd '"

    done = subprocess.run(
        ["fish", "--no-config", "--private", "-c", ask],
        cwd=home, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True,
        timeout=60,
    )  # fmt: skip

    listed = subprocess.run(
        [SITEMAPD, "--help"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    named = [each.split("\t")[0] for each in done.stdout.splitlines()]
    assert sorted(named) == sorted(re.findall(r"(?m)^  ([a-z][a-z-]*)  ", listed))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_lines_of_its_own(shell: str) -> None:
    done = subprocess.run(
        [SITEMAPD, "completion", shell], capture_output=True, text=True, check=True, timeout=60
    )

    assert f"complete_{shell}" in done.stdout
