"""`sitemapd up` looks at its pages and reads back from Google, Bing and Yandex: one page from its
event to the indexes.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.integration.engines import Engine, engine, reply
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
from tests.system.website import WebPage, Website, website

TOKEN = "only-for-these-tests-only-for-these"
LATER = "2030-01-01T00:00:00Z"
TEXT = "<p>Bees live in hives, and make honey of the nectar that they find in flowers.</p>"
YANDEX = "https:www.example.com:443"
CONFIG = """
[alerts]
group_seconds = 0
[alerts.unknown]
after_minutes = 0
[alerts.slack]
url = "{slack}"
allow_private = true
[console.users.admin]
token = "{token}"
role = "operator"
[sites.demo]
base_url = "{base}"
web_root = "public"
secrets = ["whsec_b25seS1mb3ItdGhlc2UtdGVzdHMtb25seQ=="]
[sites.demo.pages]
interval = 0
confirm_minutes = 0.01
prove_lastmod = true
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
host_id = "{yandex_host}"
endpoint = "{yandex}/v4"
allow_private = true
[sites.ru]
base_url = "{base}/ru/"
web_root = "public-ru"
secrets = ["whsec_b25seS1mb3ItdGhlc2UtdGVzdHMtb25seQ=="]
[sites.ru.notify]
hosts = ["127.0.0.1"]
[sites.ru.readback]
first_minutes = 0
sitemaps_hours = 0.001
[sites.ru.readback.yandex]
token = "{key}"
user_id = 7
host_id = "{yandex_host}"
endpoint = "{known_to}/v4"
allow_private = true
"""
LOOKS = [("light", 390), ("dark", 390), ("light", 1440), ("dark", 1440)]
PICTURES = os.environ.get("SITEMAPD_PICTURES", "")
"""A directory: the pages are kept there as pictures."""


class Story(System):
    """A site that looks at its pages and reads back: Google and Bing know the page `known` and not
    `unknown`, Yandex refuses its token and knows the page of the site `ru`.
    """

    website: Website
    google: Google
    bing: Bing
    yandex: Yandex
    known_to: Yandex
    slack: Engine

    @property
    def known(self) -> str:
        return f"{self.base}/known"

    @property
    def unknown(self) -> str:
        return f"{self.base}/unknown"

    @property
    def russian(self) -> str:
        return f"{self.base}/ru/page"

    def begin(self) -> None:
        """Start it: pages are published, looked at, and the engines are asked."""
        account, address = Account(), self.website.base
        self.google.public_key = account.public
        (self.home.parent / "google.json").write_text(account.json)
        self.configure(CONFIG.format(
            token=TOKEN, base=address, key=SECRET, account=self.home.parent / "google.json",
            google=self.google.url, bing=self.bing.url, yandex=self.yandex.url,
            known_to=self.known_to.url, yandex_host=YANDEX, slack=self.slack.url,
        ))  # fmt: skip
        (self.home / "public-ru").mkdir()
        self.base = address
        self.tell_engines()
        self.start()
        self.send(*({"type": "upsert", "loc": loc} for loc in (self.known, self.unknown)))
        sent = self.run("event", "send", self.russian, "--site", "ru", "--to", self.address)
        assert sent.returncode == 0, sent.stderr
        wait_until(lambda: {self.known, self.unknown} <= self.published().keys(), "published")
        wait_until(lambda: len(self.google.asked("inspect")) >= 2, "Google is asked about both")
        wait_until(lambda: len(self.bing.asked("GetUrlInfo")) >= 2, "Bing is, too")
        with redis.Redis(unix_socket_path=str(self.home / "redis" / "redis.sock")) as client:
            summary = functools.partial(client.hget, "{demo}:readback", "summary")
            wait_until(lambda: b"pages" in (summary() or b""), "the delays are summed up")
        entry = ("entry", self.known, "--site", "demo", "--json")
        wait_until(lambda: "fingerprint" in self.run(*entry).stdout, "the page was looked at")
        self.website.pages["/known"] = WebPage(f"{TEXT} Bees see no red.")
        self.send({"type": "upsert", "loc": self.known, "lastmod": "2026-02-02"})
        wait_until(lambda: self.published()[self.known] == "2026-02-02", "its date is proven")
        wait_until(lambda: len(self.google.asked("inspect")) >= 3, "Google is asked again")
        wait_until(lambda: len(self.bing.asked("GetUrlInfo")) >= 3, "Bing is, too")

    def tell_engines(self) -> None:
        """What the website and the engines answer."""
        now, row = time.time_ns() // 1_000_000, {"url": self.russian, "title": "T"}
        self.website.pages |= {
            "/known": WebPage(TEXT), "/unknown": WebPage(TEXT, headers={"X-Robots-Tag": "noindex"})
        }  # fmt: skip
        self.google.pages[self.known] = indexed(LATER, self.known)
        self.google.sitemaps = [{
            "path": f"{self.base}/sitemap.xml", "lastDownloaded": "2026-11-02T03:04:05.678Z",
            "isSitemapsIndex": True, "warnings": "0", "errors": "2",
            "contents": [{"type": "web", "submitted": "2", "indexed": "0"}],
        }]  # fmt: skip
        self.google.site = f"{self.base}/"
        self.bing.pages[self.known] = bing_page(now + 3_600_000, now, 200)
        self.bing.feeds = [bing_feed(f"{self.base}/sitemap.xml", now, 2)]
        self.bing.site = self.base
        self.yandex.down = Answer(
            403, {"error_code": "INVALID_OAUTH_TOKEN", "error_message": SECRET}
        )
        self.known_to.lists = {"search-urls/in-search/samples": [row | {"last_access": LATER}]}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    story = Story(tmp_path_factory.mktemp("readback") / "home")
    with ExitStack() as servers:
        story.website = servers.enter_context(website())
        story.google = servers.enter_context(serving(Google(None)))
        story.bing = servers.enter_context(serving(Bing()))
        story.yandex = servers.enter_context(serving(Yandex(YANDEX)))
        story.known_to = servers.enter_context(serving(Yandex(YANDEX)))
        story.slack = servers.enter_context(engine(reply(200, b"ok")))
        servers.callback(story.end)
        story.begin()
        yield story


def crawl(system: Story) -> None:
    """Googlebot fetches the known page in minutes, by the log of a web server."""
    when = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(time.time() + 240))
    agent = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
    log = system.home.parent / "access.log"
    log.write_text(f'66.249.66.1 - - [{when}] "GET /known HTTP/1.1" 200 5 "-" "{agent}"\n')
    made = system.run("crawl", "--log", str(log), "--site", "demo", "--json")
    assert made.returncode == 0, made.stderr


def readback(system: Story, *words: str) -> subprocess.CompletedProcess[str]:
    return system.run("readback", "--site", "demo", *words)


def test_one_line_has_the_change_the_publish_the_fetch_and_what_engines_know(
    system: Story,
) -> None:
    crawl(system)
    found = readback(system, system.known, "--json")
    line = readback(system, system.known).stdout

    page = json.loads(found.stdout)
    assert page["changed"] <= page["published"] < page["fetched"]["Googlebot"]
    assert page["engines"]["google"]["said"] == "Submitted and indexed"
    assert page["engines"]["google"]["known"]
    assert page["engines"]["bing"]["known"]
    assert line.startswith(f"{system.known}  changed ")
    for part in (", published ", ", fetched by Googlebot ", ", known to Google as of "):
        assert part in line


def test_what_is_unknown_is_listed_and_a_failing_engine_is_red(
    system: Story,
) -> None:
    late = readback(system, "--unknown")
    whole = readback(system, "--json")
    states = {each["engine"]: each for each in json.loads(whole.stdout)["engines"]}
    loops = [each for site in json.loads(system.run("status", "--json").stdout)
             for each in site["failing"]]  # fmt: skip

    assert late.returncode == 1
    assert system.unknown in late.stdout
    assert system.known not in late.stdout
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


def test_delays_are_told_by_section_and_pages_unknown_for_long_are_an_alert(system: Story) -> None:
    sections = json.loads(readback(system, "--json").stdout)["sections"]
    (google,) = [each for each in sections if each["engine"] == "google"]

    def alerted() -> bool:
        return any(b"unknown" in each.body for each in system.slack.asked)

    assert (google["section"], google["pages"], google["known"]) == ("pages", 2, 1)
    assert 0 <= google["known_p50_s"] <= google["known_p95_s"]
    wait_until(alerted, "the channel is told")
    (alert,) = json.loads(system.run("alerts", "--json").stdout)["alerts"]
    assert (alert["condition"], alert["site"]) == ("unknown", "demo")


def test_yandex_knows_what_is_in_its_list_of_pages_in_search(system: Story) -> None:
    def known() -> bool:
        said = json.loads(system.run("readback", "--site", "ru", "--json").stdout)
        (state,) = said["engines"]
        assert not state["failing"], state
        return bool(state["known"])

    wait_until(known, "Yandex knows the page")


@pytest.fixture(scope="module")
def pages(system: Story, chromium: Browser) -> Iterator[dict[tuple[str, int], Page]]:
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
    system: Story, pages: dict[tuple[str, int], Page], look: tuple[str, int]
) -> None:
    crawl(system)
    page = pages[look]
    page.goto(f"{system.address}/admin/inspector?loc={system.known}")
    steps = page.locator("#journey + ol > li")

    expect(page.get_by_text("From event to index")).to_be_visible()
    names = [each.strip() for each in steps.locator("b").all_inner_texts()]
    # The event waited for a look that proved its date: it was decided twice.
    of_events = [name for name in names if name in {"Accepted", "Decided", "Applied", "Published"}]
    assert of_events == ["Accepted", "Decided", "Decided", "Applied", "Published"]
    assert sorted({*names} - {*of_events}) == [
        "Fetched", "Known to Bing", "Known to Google", "Looked at", "Not asked",
        "Seen to have changed",
    ]  # fmt: skip
    told = dict(zip(names, steps.all_inner_texts(), strict=True))
    proof = told["Seen to have changed"]
    assert re.search(r"fingerprint (\w{16}) before, (?!\1)\w{16} now", proof)
    assert names.index("Seen to have changed") < names.index("Published")
    assert "status 200, indexable; fingerprint" in told["Looked at"]
    assert all("after the event" in told[name] for name in ("Published", "Looked at", "Fetched"))
    picture(page, f"inspector-{look[0]}-{look[1]}")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= look[1]


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_the_index_status_is_readable_in_every_look(
    system: Story, pages: dict[tuple[str, int], Page], look: tuple[str, int]
) -> None:
    page = pages[look]
    page.goto(f"{system.address}/admin/index-status?site=demo")

    expect(page.get_by_role("heading", name="Published but unknown")).to_be_visible()
    expect(page.get_by_role("link", name=system.unknown).first).to_be_visible()
    picture(page, f"index-status-{look[0]}-{look[1]}")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= look[1]


def test_checks_and_the_inspector_name_a_page_that_forbids_to_index_it(
    system: Story, pages: dict[tuple[str, int], Page]
) -> None:
    page = pages[LOOKS[0]]
    page.goto(f"{system.address}/admin/checks?site=demo")
    expect(page.get_by_text("noindex in its header").first).to_be_visible()
    page.get_by_role("link", name=system.unknown).first.click()
    expect(page.get_by_text("Listed, but broken")).to_be_visible()


def test_t30_no_key_and_no_token_is_in_a_log_or_an_answer(system: Story) -> None:
    shown = "".join(system.run(*words).stdout for words in (
        ("readback", "--site", "demo"), ("readback", "--site", "demo", "--json"), ("status",),
        ("doctor", "--offline"),
    ))  # fmt: skip
    private = json.loads((system.home.parent / "google.json").read_text())["private_key"][60:120]
    assert system.stop() == 0
    logs = [system.home.parent / "home.log", *system.home.glob("logs/*")]
    log = "".join(path.read_text(errors="replace") for path in logs)

    assert "not read back" in log
    for secret in (SECRET, private):
        assert secret not in log + shown
