"""The commands `backup` and `restore` on a Redis of one's own: what they say and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis
from typer.testing import CliRunner, Result

from deploy.cli.program import app
from shared.errors import BackupError, ConfigError, SitemapdError
from tests.integration.conftest import RedisServer
from tests.integration.rig import BASE, Rig

CONFIG = """
redis_url = "{url}"
[sites.{site}]
base_url = "{base}"
web_root = "public"
tokens = ["0123456789abcdef"]
"""


@pytest.fixture
def home(redis_server: RedisServer, store: redis.Redis, tmp_path: Path) -> Path:
    """A home whose state is in a Redis of one's own, with one page published."""
    config = CONFIG.format(url=redis_server.url, site="demo", base=BASE)
    (tmp_path / "sitemapd.toml").write_text(config)
    Rig(store, tmp_path / "public").do({"type": "upsert", "loc": "a"})
    return tmp_path


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--home", str(home)])


def answer(home: Path, *arguments: str) -> dict[str, Any]:
    result = run(home, *arguments, "--json")
    assert result.exit_code == 0, result.exception
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refusal(home: Path, *arguments: str) -> SitemapdError:
    error = run(home, *arguments).exception
    assert isinstance(error, SitemapdError)
    return error


def test_a_backup_says_what_it_holds_and_checks_later(home: Path) -> None:
    file = str(home / "saved")

    said = answer(home, "backup", file)

    assert (said["sites"][0]["site"], said["sites"][0]["urls"]) == ("demo", 1)
    assert said["bytes"] == (home / "saved").stat().st_size
    assert said == answer(home, "backup", "--check", file)


def test_the_secrets_of_the_configuration_are_not_in_it(home: Path) -> None:
    answer(home, "backup", str(home / "saved"))

    assert b"0123456789abcdef" not in (home / "saved").read_bytes()


@pytest.mark.parametrize("files", ["those of the backup", "newer", "none"])
def test_a_restore_says_what_comes_next(home: Path, store: redis.Redis, files: str) -> None:
    answer(home, "backup", str(home / "saved"))
    if files == "newer":
        Rig(store, home / "public").do({"type": "upsert", "loc": "b"})
    if files == "none":
        (home / "public").rename(home / "away")

    said = answer(home, "restore", str(home / "saved"), "--replace")

    rebuild, send = said["next"][-2:]
    assert rebuild.startswith("sitemapd rebuild --site demo")
    assert ("--adopt" in rebuild) == (files == "newer")
    assert "sitemapd import" in send
    assert said["taken"] in send


def test_what_is_asked_must_be_there(home: Path, store: redis.Redis) -> None:
    file = str(home / "saved")
    answer(home, "backup", file)

    assert isinstance(refusal(home, "backup", file, "--site", "nobody"), ConfigError)
    assert "--replace" in str(refusal(home, "restore", file))
    config = home / "sitemapd.toml"
    config.write_text(config.read_text().replace("[sites.demo", "[sites.shop"))
    assert "demo is not configured here" in str(refusal(home, "restore", file))
    error = refusal(home, "restore", file, "--site", "shop")
    assert "holds no state of shop; it holds: demo" in str(error)
    assert "nothing to back up" in str(refusal(home, "backup", file))
    store.flushall()
    assert not list(home.glob(".*"))


def test_a_damaged_file_changes_nothing(home: Path, store: redis.Redis) -> None:
    file = home / "saved"
    answer(home, "backup", str(file))
    file.write_bytes(file.read_bytes()[:-1])
    before = set(store.keys())

    for command in (("backup", "--check"), ("restore", "--replace")):
        error = refusal(home, *command, str(file))
        assert isinstance(error, BackupError)
        assert "damaged or cut off" in str(error)
    assert set(store.keys()) == before
