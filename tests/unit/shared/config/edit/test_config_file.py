"""The configuration file is replaced whole, or not at all, by commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shared.config.edit import changes
from shared.config.edit.config_file import ConfigFile
from shared.config.settings import load
from shared.errors import ConfigError, InvalidError
from tests.unit.configured import CANARY, SITE

USERS = f'[console.users.root]\ntoken = "{CANARY}"\nrole = "operator"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sitemapd.toml"
    path.write_text(f"# ours{SITE}# the demo\n")
    path.chmod(0o640)
    return path


def test_a_site_is_added_with_credentials_beside_the_first(file: Path) -> None:
    made = changes.add_site(ConfigFile(file), "shop", "https://shop.example")

    site = load(file).sites["shop"]
    assert site.base_url == "https://shop.example/"
    assert site.web_root == file.parent / "public-shop"
    assert [one.secret.get_secret_value() for one in site.secrets] == [made.secret]
    assert [token.get_secret_value() for token in site.tokens] == [made.token]
    assert file.read_text().startswith(f"# ours{SITE}# the demo\n")
    assert file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(file.parent) == ["sitemapd.toml"]


def test_the_shown_lines_hold_no_secret(file: Path) -> None:
    made = changes.add_site(ConfigFile(file), "shop", "https://shop.example")
    user = changes.add_user(ConfigFile(file), "ann", "viewer")
    gone = changes.remove_site(ConfigFile(file), "shop")

    shown = "\n".join((*made.edit.lines, *user.edit.lines, *gone.lines))
    assert '+base_url = "https://shop.example"' in shown
    assert '+secrets = ["..."]' in shown
    assert not [each for each in (made.secret, made.token, user.token) if each in shown]


@pytest.mark.parametrize(
    ("name", "url", "root"),
    [
        ("demo", "https://a.example", ""), ("Shop", "https://a.example", ""),
        ("shop", "a.example", ""), ("shop", "https://a.example", "public"),
        ("shop", "https://a.example", "."), ("a.b", "https://a.example", ""),
        ("a\nb = 1", "https://a.example", ""), ("shop", 'https://a.example"\nx = "', ""),
    ],
)  # fmt: skip
def test_an_invalid_change_leaves_the_file_alone(
    file: Path, name: str, url: str, root: str
) -> None:
    before = file.stat(), file.read_bytes()

    with pytest.raises(InvalidError):
        changes.add_site(ConfigFile(file), name, url, web_root=root)

    assert (file.stat().st_ino, file.read_bytes()) == (before[0].st_ino, before[1])
    assert os.listdir(file.parent) == ["sitemapd.toml"]


def test_a_file_that_is_invalid_already_is_not_edited(file: Path) -> None:
    file.write_text(SITE + 'robots = "maybe"\n')

    with pytest.raises(ConfigError, match=r"sites\.demo\.robots"):
        changes.add_user(ConfigFile(file), "ann", "viewer")


def test_sections_and_users_are_added(file: Path) -> None:
    changes.add_section(ConfigFile(file), "demo", "blog", changes.section_values(split="month"))
    user = changes.add_user(ConfigFile(file), "ann.b@example.com", "viewer")

    settings = load(file)
    assert settings.sites["demo"].sections["blog"].split == "month"
    token = settings.console.users["ann.b@example.com"].token
    assert token is not None
    assert token.get_secret_value() == user.token


@pytest.mark.parametrize("again", ["blog", "pages-1", "Pages"])
def test_a_section_that_is_there_or_cannot_be_is_refused(file: Path, again: str) -> None:
    changes.add_section(ConfigFile(file), "demo", "blog", {})

    with pytest.raises(InvalidError):
        changes.add_section(ConfigFile(file), "demo", again, {})


def test_the_only_site_stays(file: Path) -> None:
    with pytest.raises(InvalidError, match="add the next one first"):
        changes.remove_site(ConfigFile(file), "demo")
    changes.add_site(ConfigFile(file), "shop", "https://shop.example")

    changes.remove_site(ConfigFile(file), "demo")

    assert list(load(file).sites) == ["shop"]


def test_a_link_to_the_file_stays_a_link(file: Path, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    file.rename(real / "config")
    file.symlink_to(real / "config")

    changes.add_user(ConfigFile(file), "ann", "viewer")

    assert file.is_symlink()
    assert "ann" in load(file).console.users


KILLED = """
import os, signal, sys
from pathlib import Path
from shared.config.edit import changes, config_file

def dying(call):
    def die(*arguments, **options):
        os.kill(os.getpid(), signal.SIGKILL)
    return die

setattr(os, sys.argv[2], dying(sys.argv[2]))
changes.add_user(config_file.ConfigFile(Path(sys.argv[1])), "ann", "viewer")
"""


@pytest.mark.parametrize("call", ["fdopen", "fchmod", "fsync", "rename"])
def test_a_command_that_is_killed_leaves_the_old_file_whole(file: Path, call: str) -> None:
    before = file.read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED, file, call], check=False)

    assert done.returncode == -signal.SIGKILL
    assert file.read_bytes() == before
    changes.add_user(ConfigFile(file), "ann", "viewer")
    assert "ann" in load(file).console.users


ADD = """
import sys
from pathlib import Path
from shared.config.edit import changes, config_file
for number in range(5):
    name = f"{sys.argv[2]}-{number}"
    changes.add_user(config_file.ConfigFile(Path(sys.argv[1])), name, "viewer")
"""


def test_edits_at_once_lose_none(file: Path) -> None:
    running = [subprocess.Popen([sys.executable, "-c", ADD, file, who]) for who in ("a", "b", "c")]

    assert [each.wait(60) for each in running] == [0, 0, 0]
    assert len(load(file).console.users) == 15
