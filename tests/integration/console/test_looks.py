"""What looks at the pages found, in the console and on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from lxml import html
from typer.testing import CliRunner

from deploy.cli.program import app
from tests.integration.console.browsing import CANARY, Browser, Configure, with_site
from tests.integration.looks.visited import GONE, Visited, Website, page, website
from tests.unit.worker.sources.cms import Reply

CONFIG = """
redis_url = "{url}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["0123456789abcdef"]
[sites.demo.pages]
"""


@pytest.fixture
def web() -> Iterator[tuple[Website, str]]:
    with website() as found:
        yield found


@pytest.fixture
def site(store: redis.Redis, tmp_path: Path, web: tuple[Website, str]) -> Visited:
    site = Visited(store, tmp_path / "public", *web)
    site.there("/a", "/b", "/c", "/d")
    site.web.pages |= {"/b": GONE, "/c": Reply(b"", 301, {"Location": f"/{CANARY}"})}
    site.look(8)
    assert site.summary is not None
    return site


def browser(configure: Configure, site: Visited, **pages: Any) -> Browser:
    browser = Browser(with_site(configure(), base_url=site.base, pages=pages))
    browser.login("ann")
    return browser


def text(answer: str) -> str:
    return " ".join(" ".join(html.fromstring(answer).itertext()).split())


def test_checks_lists_the_pages_that_are_not_good_with_the_alarm(
    configure: Configure, site: Visited
) -> None:
    answer = browser(configure, site).get("/admin/checks?site=demo")

    assert CANARY not in answer.text
    said = text(answer.text)
    assert "50 % of the pages in a sample are broken: 2 of 4." in said
    assert f"{site.loc('/b')} answers 404" in said
    assert "sitemapd check --pages --site demo" in said
    assert "50 % of the pages" in text(browser(configure, site).get("/admin/?site=demo").text)


def test_a_site_without_looks_says_nothing_of_them(configure: Configure, site: Visited) -> None:
    plain = Browser(with_site(configure(), base_url=site.base))
    plain.login("ann")

    assert "Pages looked at" not in plain.get("/admin/checks?site=demo").text
    assert "in a sample" not in plain.get("/admin/").text


def test_the_inspector_shows_the_last_look_and_the_proof(
    configure: Configure, site: Visited
) -> None:
    seen = browser(configure, site)
    first = site.record("/a")
    assert first is not None
    assert first.print.hex() in seen.get(f"/admin/inspector?loc={site.loc('/a')}").text

    site.web.pages["/a"] = page("<main><p>Another text that readers see.</p></main>")
    site.round()
    site.look(2)
    said = text(seen.get(f"/admin/inspector?loc={site.loc('/a')}").text)
    assert f"{first.print.hex()} before" in said
    broken = text(seen.get(f"/admin/inspector?loc={site.loc('/b')}").text)
    assert "answers 404, in" in broken
    assert "Listed, but broken" in broken
    assert "Looked at" in broken.partition("From event to index")[2]


def test_the_command_lists_them_and_ends_with_1_on_an_alarm(
    site: Visited, redis_server: Any, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / "public").mkdir(parents=True)
    (home / "sitemapd.toml").write_text(CONFIG.format(url=redis_server.url, base=site.base))

    def run(*words: str) -> Any:
        return CliRunner().invoke(app, ["check", "--pages", "--home", str(home), *words])

    done = run()
    assert done.exit_code == 1
    assert "answers 404" in done.stdout
    found = json.loads(run("--json").stdout)
    assert {each["loc"] for each in found["pages"]} == {site.loc("/b"), site.loc("/c")}
    assert found["alarms"] == ["50 % of the pages in a sample are broken: 2 of 4."]

    off = (home / "sitemapd.toml").read_text().replace("[sites.demo.pages]\n", "")
    (home / "sitemapd.toml").write_text(off)
    assert "add a table [sites.demo.pages]" in " ".join(run().stdout.split())
