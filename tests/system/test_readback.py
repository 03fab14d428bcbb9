"""`sitemapd up` reads back from Google, Bing and Yandex: one page from its event to the indexes."""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.integration.webmasters import (
    SECRET,
    Account,
    Answer,
    Bing,
    Google,
    Yandex,
    bing_feed,
    bing_page,
    indexed,
    serving,
)
from tests.system.driver import System, wait_until

BASE = "https://www.example.com"
KNOWN, UNKNOWN = f"{BASE}/known", f"{BASE}/unknown"
TOKEN = "only-for-these-tests-only-for-these"
LATER = "2030-01-01T00:00:00Z"
CONFIG = """
[console.users.admin]
token = "{token}"
role = "operator"
[sites.demo]
base_url = "{base}"
web_root = "public"
secrets = ["whsec_b25seS1mb3ItdGhlc2UtdGVzdHMtb25seQ=="]
[sites.demo.notify]
hosts = ["127.0.0.1"]
[sites.demo.readback]
first_minutes = 0
unknown_hours = 0
unknown_pages = 1
[sites.demo.readback.google]
credentials = "file:{account}"
property = "{base}/"
endpoint = "{google}/webmasters/v3"
inspection_endpoint = "{google}/v1/urlInspection/index:inspect"
token_endpoint = "{google}/token"
allow_private = true
[sites.demo.readback.bing]
key = "{key}"
endpoint = "{bing}/json"
allow_private = true
[sites.demo.readback.yandex]
token = "{key}"
user_id = 7
host_id = "https:www.example.com:443"
endpoint = "{yandex}/v4"
allow_private = true
"""
LOOKS = [("light", 390), ("dark", 390), ("light", 1440), ("dark", 1440)]
PICTURES = os.environ.get("SITEMAPD_PICTURES", "")
"""A directory: the pages are kept there as pictures."""


@pytest.fixture(scope="module")
def google() -> Iterator[Google]:
    with serving(Google(None, f"{BASE}/")) as server:
        server.pages[KNOWN] = indexed(LATER, KNOWN)
        server.sitemaps = [{
            "path": f"{BASE}/sitemap.xml", "lastDownloaded": "2026-11-02T03:04:05.678Z",
            "isSitemapsIndex": True, "warnings": "0", "errors": "2",
            "contents": [{"type": "web", "submitted": "2", "indexed": "0"}],
        }]  # fmt: skip
        yield server


@pytest.fixture(scope="module")
def bing() -> Iterator[Bing]:
    with serving(Bing(BASE)) as server:
        now = time.time_ns() // 1_000_000
        server.pages[KNOWN] = bing_page(now + 3_600_000, now, 200)
        server.feeds = [bing_feed(f"{BASE}/sitemap.xml", now, 2)]
        yield server


@pytest.fixture(scope="module")
def yandex() -> Iterator[Yandex]:
    with serving(Yandex()) as server:
        server.down = Answer(403, {"error_code": "INVALID_OAUTH_TOKEN", "error_message": SECRET})
        yield server


@pytest.fixture(scope="module")
def system(
    tmp_path_factory: pytest.TempPathFactory, google: Google, bing: Bing, yandex: Yandex
) -> Iterator[System]:
    """Two pages are published: Google and Bing know the one; Yandex refuses the token."""
    home, account = tmp_path_factory.mktemp("readback") / "home", Account()
    google.public_key = account.public
    (home.parent / "google.json").write_text(account.json)
    system = System(home)
    system.configure(CONFIG.format(
        token=TOKEN, base=BASE, key=SECRET, account=home.parent / "google.json",
        google=google.url, bing=bing.url, yandex=yandex.url,
    ))  # fmt: skip
    system.start()
    try:
        system.send(*({"type": "upsert", "loc": loc} for loc in (KNOWN, UNKNOWN)))
        wait_until(lambda: {KNOWN, UNKNOWN} <= system.published().keys(), "they are published")
        wait_until(lambda: len(google.asked("inspect")) >= 2, "Google is asked about both", 60)
        wait_until(lambda: len(bing.asked("GetUrlInfo")) >= 2, "Bing is, too")
        with redis.Redis(unix_socket_path=str(system.home / "redis" / "redis.sock")) as client:
            summary = functools.partial(client.hget, "{demo}:readback", "summary")
            wait_until(lambda: b"pages" in (summary() or b""), "the delays are summed up")
        yield system
    finally:
        system.end()


def crawl(system: System) -> None:
    """Googlebot fetches the known page in an hour, by the log of a web server."""
    when = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(time.time() + 240))
    agent = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
    log = system.home.parent / "access.log"
    log.write_text(f'66.249.66.1 - - [{when}] "GET /known HTTP/1.1" 200 5 "-" "{agent}"\n')
    made = system.run("crawl", "--log", str(log), "--json")
    assert made.returncode == 0, made.stderr


def test_one_line_has_the_change_the_publish_the_fetch_and_what_engines_know(
    system: System,
) -> None:
    crawl(system)
    found = system.run("readback", KNOWN, "--json")
    line = system.run("readback", KNOWN).stdout

    page = json.loads(found.stdout)
    assert page["changed"] <= page["published"] < page["fetched"]["Googlebot"]
    assert page["engines"]["google"]["said"] == "Submitted and indexed"
    assert page["engines"]["google"]["known"]
    assert page["engines"]["bing"]["known"]
    assert line.startswith(f"{KNOWN}  changed ")
    for part in (", published ", ", fetched by Googlebot ", ", known to Google as of "):
        assert part in line


def test_what_is_unknown_is_listed_and_a_failing_engine_is_red(
    system: System,
) -> None:
    late = system.run("readback", "--unknown")
    whole = system.run("readback", "--json")
    states = {each["engine"]: each for each in json.loads(whole.stdout)["engines"]}
    loops = json.loads(system.run("status", "--json").stdout)[0]["failing"]

    assert late.returncode == 1
    assert UNKNOWN in late.stdout
    assert KNOWN not in late.stdout
    assert "URL is unknown to Google" in late.stdout
    assert (states["google"]["known"], states["google"]["unknown_late"]) == (1, 1)
    assert states["google"]["requests_today"] >= 3
    assert (whole.returncode, states["yandex"]["failing"]) == (1, True)
    assert [(each["loop"], each["part"]) for each in loops] == [("readback", "yandex")]
    sitemaps = json.loads(whole.stdout)["sitemaps"]
    assert {(each["engine"], each["errors"]) for each in sitemaps} == {
        ("google", 2),
        ("bing", None),
    }


@pytest.fixture(scope="module")
def pages(system: System, chromium: Browser) -> Iterator[dict[tuple[str, int], Page]]:
    """A browser of each look, logged in."""
    opened = {}
    for colours, width in LOOKS:
        context = chromium.new_context(
            viewport={"width": width, "height": 1000},
            color_scheme=colours,  # type: ignore[arg-type]
        )
        page = context.new_page()
        made = system.run("console", "link", "--user", "admin", "--to", system.address)
        page.goto(made.stdout.strip())
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{system.address}/admin/")
        opened[colours, width] = page
    yield opened
    for page in opened.values():
        page.context.close()


def picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_the_inspector_shows_the_whole_chain_in_one_picture(
    system: System, pages: dict[tuple[str, int], Page], look: tuple[str, int]
) -> None:
    crawl(system)
    page = pages[look]
    page.goto(f"{system.address}/admin/inspector?loc={KNOWN}")
    steps = page.locator("#journey + ol > li")

    expect(page.get_by_text("From event to index")).to_be_visible()
    names = [each.strip() for each in steps.locator("b").all_inner_texts()]
    assert names[:4] == ["Accepted", "Decided", "Applied", "Published"]
    assert set(names[4:]) == {
        "Fetched", "Known to Google", "Known to Bing", "Not asked",
    }  # fmt: skip
    picture(page, f"inspector-{look[0]}-{look[1]}")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= look[1]


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_the_index_status_is_readable_in_every_look(
    system: System, pages: dict[tuple[str, int], Page], look: tuple[str, int]
) -> None:
    page = pages[look]
    page.goto(f"{system.address}/admin/index-status?site=demo")

    expect(page.get_by_role("heading", name="Published but unknown")).to_be_visible()
    expect(page.get_by_role("link", name=UNKNOWN).first).to_be_visible()
    picture(page, f"index-status-{look[0]}-{look[1]}")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= look[1]


def test_t30_no_key_and_no_token_is_in_a_log_or_an_answer(system: System) -> None:
    shown = "".join(system.run(*words).stdout for words in (
        ("readback",), ("readback", "--json"), ("status",), ("doctor", "--offline")))  # fmt: skip
    private = json.loads((system.home.parent / "google.json").read_text())["private_key"][60:120]
    assert system.stop() == 0
    logs = [system.home.parent / "home.log", *system.home.glob("logs/*")]
    log = "".join(path.read_text(errors="replace") for path in logs)

    assert "not read back" in log
    for secret in (SECRET, private):
        assert secret not in log + shown
