"""What the program says to somebody who has never used it: version, help, and how to start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SITEMAPD = Path(sys.executable).with_name("sitemapd")
CONFIG = """
[sites.demo]
base_url = "https://www.example.com/"
web_root = "public"
tokens = ["0123456789abcdef"]
"""


def sitemapd(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if name != "SITEMAPD_HOME"}
    return subprocess.run(
        [SITEMAPD, *arguments],
        capture_output=True, text=True, timeout=60, check=False, cwd=directory, env=environment,
    )  # fmt: skip


def test_the_version_is_printed(tmp_path: Path) -> None:
    said = sitemapd(tmp_path, "--version")

    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith("sitemapd 0.")


def test_help_has_a_short_name_everywhere(tmp_path: Path) -> None:
    for command in ([], ["up"], ["event", "send"]):
        short, long = (sitemapd(tmp_path, *command, option) for option in ("-h", "--help"))
        assert (short.returncode, short.stdout) == (0, long.stdout)


@pytest.mark.parametrize("home", [".", "sitemapd-data", "demo"])
@pytest.mark.parametrize("command", [["status"], ["queue", "list"], ["entry", "/a"]])
def test_a_command_says_first_that_sitemapd_is_not_running_and_how_to_start_it(
    tmp_path: Path, home: str, command: list[str]
) -> None:
    (tmp_path / home).mkdir(exist_ok=True)
    (tmp_path / home / "sitemapd.toml").write_text(CONFIG, encoding="utf-8")

    said = sitemapd(tmp_path, *command)

    assert said.returncode == 1
    first = said.stderr.splitlines()[0]
    assert first == f"sitemapd is not running in {home}: start it with: sitemapd up --home {home}"


def test_a_command_without_any_configuration_names_where_it_looked(tmp_path: Path) -> None:
    said = sitemapd(tmp_path, "status")

    assert said.returncode == 78
    assert "sitemapd-data" in said.stderr
    assert "sitemapd up" in said.stderr


def test_one_site_needs_no_name_and_of_several_one_must_be_named(tmp_path: Path) -> None:
    other = CONFIG.replace("demo", "other").replace('"public"', '"other"')
    (tmp_path / "sitemapd.toml").write_text(CONFIG + other, encoding="utf-8")

    said = sitemapd(tmp_path, "files", "list")

    assert said.returncode == 78
    assert "configuration --site: several sites are configured, name one of them: demo, other" in (
        said.stderr
    )
    for command in (["config", "check"], ["config", "nginx", "--site", "other"]):
        assert sitemapd(tmp_path, *command).returncode == 0
