"""`sitemapd readback`: what it shows, asks and deletes, and what it says where nothing is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deploy.cli.program import app
from shared.errors import InvalidError
from tests.integration.conftest import RedisServer
from tests.integration.readback.reading import ReadingRig
from tests.integration.rig import BASE
from tests.integration.webmasters import SECRET, Answer, Bing, bing_page

CONFIG = """
redis_url = "{redis}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["0123456789abcdef"]
"""
READ = """
[sites.demo.notify]
hosts = ["127.0.0.1"]
[sites.demo.readback.bing]
key = "{key}"
endpoint = "{bing}/json"
allow_private = true
"""


@pytest.fixture
def home(redis_server: RedisServer, tmp_path: Path, bing: Bing) -> Path:
    text = CONFIG + READ
    (tmp_path / "sitemapd.toml").write_text(
        text.format(redis=redis_server.url, base=BASE, bing=bing.url, key=SECRET)
    )
    return tmp_path


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["readback", "--home", str(home), *arguments])


def test_a_page_is_asked_about_and_its_line_is_printed(
    home: Path, site: ReadingRig, bing: Bing
) -> None:
    site.publish("a")
    unknown = run(home, BASE + "a")
    bing.pages[BASE + "a"] = bing_page(site.now, site.now, 200)
    known = run(home, BASE + "a")

    assert (unknown.exit_code, known.exit_code) == (1, 0)
    assert "unknown to Bing" in unknown.stdout
    assert ", known to Bing as of " in known.stdout
    assert run(home).stdout.count(BASE + "a") == 1


@pytest.mark.parametrize("page", ["nothing", "https://elsewhere.example/a"])
def test_a_page_that_is_not_listed_is_refused(home: Path, site: ReadingRig, page: str) -> None:
    asked = run(home, page if "://" in page else BASE + page)

    assert isinstance(asked.exception, InvalidError)
    assert site.reading.chains.count() == 0


def test_t30_an_engine_that_refuses_is_told_without_the_key(
    home: Path, site: ReadingRig, bing: Bing
) -> None:
    site.publish("a")
    bing.down = Answer(403, f"not with {SECRET}".encode())
    asked = run(home, BASE + "a", "--json")

    assert asked.exit_code == 1
    assert "***" in json.loads(asked.stdout)["faults"]["bing"]
    assert SECRET not in asked.stdout


def test_a_site_that_reads_nothing_back_says_how(home: Path, redis_server: RedisServer) -> None:
    text = CONFIG.format(redis=redis_server.url, base=BASE)
    (home / "sitemapd.toml").write_text(text)
    asked = run(home)

    assert isinstance(asked.exception, InvalidError)
    assert "[sites.NAME.readback.google]" in str(asked.exception)


def test_what_is_kept_is_deleted_also_once_it_is_switched_off(
    home: Path, site: ReadingRig, redis_server: RedisServer
) -> None:
    site.publish("a", "b")
    site.later(31)
    site.reading.read("bing")
    (home / "sitemapd.toml").write_text(CONFIG.format(redis=redis_server.url, base=BASE))
    forgotten = run(home, "--forget", "--json")

    assert json.loads(forgotten.stdout) == {"forgotten": 2}
    assert site.rig.client.keys("{demo}:readback*") == []
