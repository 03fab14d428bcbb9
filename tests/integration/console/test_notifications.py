"""What search engines were told, in the console: by real answers of engines on loopback."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from lxml import html
from typer.testing import CliRunner

from deploy.cli.program import app
from shared.store.notify.notification_queue import Breaker, RequestRecord
from shared.store.operations import crawl_report
from shared.store.operations.queues import Queues
from tests.integration.conftest import RedisServer
from tests.integration.console.browsing import Browser, Configure, outcomes, with_site
from tests.integration.engines import Engine, engine, reply
from tests.integration.notified import KEY, SECRET, TABLES, Desk
from tests.integration.rig import BASE
from tests.unit.shared.crawls.crawling import combined

CANARY = "<script>alert(1)</script>"
PAGE = "/admin/notifications?site=demo"
CONFIG = """
redis_url = "{url}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["0123456789abcdef"]
"""


@pytest.fixture
def server() -> Iterator[Engine]:
    with engine() as server:
        yield server


@pytest.fixture
def desk(store: redis.Redis, tmp_path: Path, server: Engine) -> Desk:
    """A site that tells IndexNow and Bing, now."""
    tables = {name: TABLES[name](server.url) for name in ("indexnow", "bing")}
    tables["indexnow"]["daily"] = 5
    desk = Desk(store, tmp_path / "public", tables)
    desk.now = time.time_ns() // 1_000_000
    return desk


@pytest.fixture
def enter(configure: Configure, desk: Desk) -> Callable[[str], Browser]:
    """Opens the console of that site for a user."""

    def log_in(user: str) -> Browser:
        notify = {name: each.model_dump() for name, each in desk.rig.site.notify.engines.items()}
        browser = Browser(with_site(configure(), notify={"hosts": ["127.0.0.1"], **notify}))
        assert browser.login(user).status_code == 303
        return browser

    return log_in


@pytest.fixture
def ann(enter: Callable[[str], Browser]) -> Browser:
    return enter("ann")


def text(browser: Browser, part: str = "main") -> str:
    answer = browser.get(PAGE)
    assert answer.status_code == 200
    found = html.fromstring(answer.text).get_element_by_id(part)
    return " ".join(" ".join(found.itertext()).split())


def act(browser: Browser, what: str, **form: str) -> str:
    """Press a button; what the page says then."""
    form = {"site": "demo", "csrf": browser.csrf()} | form
    answer = browser.post(f"/admin/notifications/{what}", **form)
    assert answer.status_code == 303
    return browser.get(answer.location or "").text


def tell(desk: Desk, server: Engine, engine_: str, status: int, *locs: str) -> RequestRecord:
    """Have one engine told, which answers so."""
    server.script = [reply(status, {"d": None} if status == 200 else b"because of that")]
    desk.notices.enqueue([engine_], locs, desk.now)
    desk.look()
    return desk.notices.records(1)[0]


def test_the_fate_of_each_request_is_shown(ann: Browser, desk: Desk, server: Engine) -> None:
    tell(desk, server, "indexnow", 200, BASE + "a", BASE + "b")
    again = tell(desk, server, "bing", 503, BASE + "c")
    assert again.next > desk.now

    shown = text(ann, "requests")

    host = server.url.removeprefix("http://")
    assert re.search(rf"indexnow {host} done 200 2 pages {BASE}a {BASE}b", shown)
    said = rf"bing {host} failed 503 1 page {BASE}c it answered 503: because of that .* in \d+"
    assert re.search(said, shown)
    assert shown.index("bing") < shown.index("indexnow"), "the newest first"


def test_each_engine_is_shown_with_what_waits_and_its_budget(
    ann: Browser, desk: Desk, server: Engine
) -> None:
    assert "indexnow active Waiting 0 0 due Next - Sent today 0 of 5" in text(ann)
    tell(desk, server, "indexnow", 200, *(BASE + x for x in "abcde"))
    desk.notices.enqueue(["indexnow"], [BASE + "f"], desk.now)

    shown = text(ann, "engines")

    assert "indexnow today's budget is spent Waiting 1 1 due Next on hold" in shown
    assert "Sent today 5 of 5" in shown
    assert 'aria-label="today&#39;s budget: 5 of 5"' in ann.get(PAGE).text


def test_an_engine_that_is_left_alone_is_shown_with_the_reason_and_told_again(
    ann: Browser, desk: Desk, server: Engine
) -> None:
    tell(desk, server, "bing", 403, BASE + "a")
    tell(desk, server, "bing", 200, BASE + "b")
    assert desk.waiting("bing") > 0, "nothing goes there"

    shown = text(ann, "engines")
    assert "bing paused: needs action" in shown
    assert "127.0.0.1" in shown
    assert "is paused until it is replayed: the engine rejects the key" in shown
    assert "sitemapd notify replay demo --engine bing" in shown

    assert "queued again, and all pauses ended" in act(ann, "replay", subject="bing")
    desk.look()
    fate = desk.notices.records(1)[0]
    assert (fate.outcome, fate.sample) == ("done", (BASE + "b",))
    assert outcomes(desk.rig.client)[-1][:2] == ("ann", "notify replay")


def test_what_was_given_up_is_shown_and_told_again(
    ann: Browser, desk: Desk, server: Engine
) -> None:
    tell(desk, server, "indexnow", 400, BASE + "a", BASE + "b")
    assert desk.dead() == {"indexnow": [BASE + "a", BASE + "b"]}

    shown = text(ann, "dead")
    assert f"indexnow 2 pages {BASE}a {BASE}b the engine rejects the format" in shown

    assert "2 pages queued again" in act(ann, "replay", subject="indexnow")
    assert desk.dead() == {}
    assert desk.waiting("indexnow") == 2
    assert "not configured" in act(ann, "replay", subject="none")


def test_all_engines_are_paused_and_resumed(ann: Browser, desk: Desk) -> None:
    assert "sitemapd queue pause notify --site demo" in text(ann, "queue")

    form = {"site": "demo", "queue": "notify"}
    ann.post("/admin/queues/pause", csrf=ann.csrf(), **form)
    desk.notices.enqueue(["bing"], [BASE + "a"], desk.now)
    assert desk.telling.due() == []
    assert "Notifications are paused by ann" in text(ann, "queue")
    assert "sitemapd queue resume notify --site demo" in text(ann, "queue")

    ann.post("/admin/queues/resume", csrf=ann.csrf(), **form)
    assert desk.telling.due() == ["bing"]
    done = [what for _, what, _, _ in outcomes(desk.rig.client)[1:]]
    assert done == ["queue pause", "queue resume"]


def test_a_site_that_tells_nobody_says_how_to(browser: Browser) -> None:
    browser.login("ann")

    assert "No search engine is configured." in text(browser)
    assert "sitemapd notify key demo" in text(browser)
    assert "sitemapd crawl --log /var/log/nginx/access.log --site demo" in text(browser)


def test_when_crawlers_came_is_shown_as_it_was_counted(
    ann: Browser, desk: Desk, redis_server: RedisServer, tmp_path: Path
) -> None:
    desk.rig.do({"type": "upsert", "loc": "a"}, {"type": "upsert", "loc": "b"})
    ((ident, _),) = desk.rig.client.xrevrange("{demo}:recent", count=1)  # type: ignore[misc]
    at = int(ident.partition(b"-")[0])
    log = tmp_path / "access.log"
    log.write_bytes(
        combined(at - 60_000, "/") + combined(at + 30_000, "/a") + combined(at + 900_000, "/b")
        + combined(at + 5_000, "/sitemap.xml")
    )  # fmt: skip
    (tmp_path / "sitemapd.toml").write_text(CONFIG.format(url=redis_server.url, base=BASE))
    result = CliRunner().invoke(app, ["crawl", "--home", str(tmp_path), "--log", str(log)])
    assert result.exit_code == 0, result.output

    shown = text(ann, "crawl")

    assert re.search(r"Googlebot user agent index 1 of 1 [45] s [45] s under 1 min: 1", shown)
    pages = (
        r"Googlebot user agent pages 2 of 2 (29|30) s 15\.0 min under 1 min: 1, 10 min to 1 h: 1"
    )
    assert re.search(pages, shown)
    assert 'aria-label="Delays: under 1 min: 1, 10 min to 1 h: 1"' in ann.get(PAGE).text
    assert "by 4 lines of access logs" in shown


def test_many_requests_come_in_parts(ann: Browser, desk: Desk) -> None:
    for n in range(120):
        desk.notices.record(
            RequestRecord(
                desk.now, "bing", "https://ssl.bing.com/", 1, (), 200, "done", n, f"number {n}."
            )
        )

    seen = [
        int(number)
        for page in range(4)
        for number in re.findall(r"number (\d+)\.", ann.get(f"{PAGE}&page={page}").text)
    ]

    assert seen == list(reversed(range(120)))


def test_t26_a_viewer_tells_nothing_again(
    enter: Callable[[str], Browser], desk: Desk, server: Engine
) -> None:
    tell(desk, server, "indexnow", 400, BASE + "a")
    vic = enter("vic")

    assert not html.fromstring(vic.get(PAGE).text).xpath("//main//form")
    form = {"site": "demo", "subject": "indexnow", "csrf": vic.csrf()}
    assert vic.post("/admin/notifications/replay", **form).status_code == 403
    assert desk.dead()


def test_t27_no_look_at_notifications_changes_them(
    ann: Browser, desk: Desk, server: Engine, unchanged: Callable[[], Any]
) -> None:
    tell(desk, server, "indexnow", 400, BASE + "a")

    with unchanged():
        for path in (PAGE, "/admin/notifications/replay?site=demo&subject=indexnow"):
            ann.get(path)


def test_t28_what_engines_and_logs_say_is_text(
    ann: Browser, desk: Desk, store: redis.Redis
) -> None:
    url = f"https://{CANARY}/{CANARY}"
    desk.notices.record(
        RequestRecord(1, CANARY, url, 1, (CANARY,), 1, CANARY, 1, CANARY, desk.now + 60_000)
    )
    desk.notices.record(
        RequestRecord(1, "bing", "https://[broken", 1, (CANARY,), 200, "done", 1, CANARY)
    )
    desk.notices.set_breaker("bing", url, Breaker(1, desk.now + 60_000, CANARY))
    store.xadd(
        "{demo}:notices:dead",
        {"at": 1, "engine": CANARY, "why": CANARY, "locs": json.dumps([CANARY])},
    )
    Queues(store, "demo").pause("notify", CANARY)
    kind = {
        "kind": CANARY, "fetched": 1, "published": 1, "p50_s": 1, "p95_s": 1, "latest": CANARY,
        "histogram": [1],
    }  # fmt: skip
    crawl_report.save(store, "demo", {
        "made": CANARY, "log": {"lines": 1}, "counted": {"from": CANARY, "to": CANARY},
        "verified_by_dns": False, "bounds_s": [60],
        "engines": [{"engine": CANARY, "verified": CANARY, "kinds": [kind]}],
    })  # fmt: skip

    answer = ann.get(PAGE)
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert not re.search(r"\son\w+=|\sstyle=|javascript:", answer.text)
    assert answer.text.count("&lt;script&gt;") >= 15
    for form in ({"subject": CANARY}, {"site": CANARY}):
        assert "<script>alert" not in act(ann, "replay", **form)


def test_t30_no_secret_of_an_engine_is_shown(ann: Browser, desk: Desk, server: Engine) -> None:
    for name in ("indexnow", "bing"):
        tell(desk, server, name, 403, BASE + "a")
    desk.notices.record(RequestRecord(
        1, "crawler", f"https://u:{SECRET}@c.example/?k={SECRET}", 1, (), 0, "failed", 1, "",
    ))  # fmt: skip

    page = ann.get(PAGE).text
    assert "c.example" in page
    assert SECRET not in page
    assert KEY not in page
