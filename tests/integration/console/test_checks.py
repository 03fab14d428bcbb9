"""What checks found in the console: in words, with what to do, and where each sample leads."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from lxml import html

from shared.store.notify.subscriptions import Subscription, Subscriptions
from shared.store.operations.checks import (
    CheckFinding,
    CheckReport,
    CheckStore,
    ComparisonSummary,
    FindingSample,
)
from shared.store.operations.worker_registry import WorkerRegistry
from tests.integration.checks.examined import examine, web_server
from tests.integration.console.browsing import CANARY, Browser, Configure, outcomes, with_site
from tests.integration.rig import BASE, Rig
from tests.integration.worked import beat
from tests.unit.worker.sources.cms import Reply
from worker.checks.examiner import Examiner

PAGE = "/admin/checks?site=demo"
ROBOTS = "User-agent: *\nDisallow: /p/\n"


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "a")


@pytest.fixture
def checks(rig: Rig) -> CheckStore:
    return CheckStore(rig.client, rig.name)


def page(browser: Browser, path: str = PAGE) -> Any:
    answer = browser.get(path)
    assert answer.status_code == 200, path
    return html.fromstring(answer.text)


def text(node: Any) -> str:
    return " ".join(" ".join(node.itertext()).split())


def ask(browser: Browser) -> str:
    return browser.act("/admin/checks/now", site="demo")


def links(node: Any) -> dict[str, str]:
    return {text(each): each.get("href") for each in node.xpath(".//a")}


def differs(missing: int = 0, extra: int = 0, **more: Any) -> ComparisonSummary:
    named = {
        "missing": [FindingSample(f"{BASE}gone/{n}", "not listed") for n in range(min(missing, 20))]
    }
    return ComparisonSummary(
        time.time_ns() // 1_000_000 - 7_200_000, missing, 0, extra, named, **more
    )


def test_a_site_that_was_never_checked_says_so_and_how_to(ann: Browser) -> None:
    shown = text(page(ann))

    assert "This site was never checked." in shown
    assert "sitemapd check --site demo" in shown
    assert "Missing pages cannot be detected." in shown
    assert "sitemapd verify --against configured --site demo" in shown
    assert "sitemapd verify --against SOURCE --site other" in text(
        page(ann, "/admin/checks?site=other")
    )


def test_what_a_check_found_is_shown_the_worst_first_with_what_to_do(
    ann: Browser, rig: Rig
) -> None:
    rig.do(
        *({"type": "upsert", "loc": f"p/{n}"} for n in range(30)), {"type": "upsert", "loc": "a"}
    )
    (rig.root / "robots.txt").write_text(ROBOTS)
    (rig.root / "pages-1.xml").unlink()
    (rig.root / "pages-7.xml").write_bytes((rig.root / "sitemap.xml").read_bytes())
    report = examine(rig)

    shown = page(ann)
    last, cards = text(shown.get_element_by_id("last")), shown.xpath("//article")

    wrong = [each.check for each in report.findings if each.severity == "error"]
    assert f"{len(wrong)} errors, 1 warning" in last
    for said in ("Requested by a test", "Pages 31", "Web server not checked", "wrong-host"):
        assert said in last
    grades = [each.get("class").split()[1] for each in cards]
    assert grades == sorted(grades) == ["bad"] * len(wrong) + ["warn"]
    barred = shown.get_element_by_id("finding-robots-blocked")
    assert "30 found" in text(barred)
    assert "robots.txt disallows listed pages" in text(barred)
    (said,) = barred.xpath("./div[@class='below']//code")
    first = barred.xpath(".//li/a")[0]
    assert said.text == f"sitemapd event send {first.text} --type delete --site demo"
    assert first.text in ann.get(first.get("href")).text
    assert len(barred.xpath("./ul/li")) == 5
    assert len(barred.xpath("./details/ul/li")) == 15
    assert "And 10 more that are not shown." in text(barred)
    missing = links(shown.get_element_by_id("finding-missing-file"))
    assert "As published" in ann.get(missing["pages-1.xml"]).text
    assert links(shown.get_element_by_id("finding-extra-file")) == {}


def test_a_check_at_work_shows_how_far_it_is(ann: Browser, checks: CheckStore) -> None:
    run = checks.begin("w1", "eve")
    run.advance("pages", 40, 100)

    now = page(ann).get_element_by_id("now")
    (bar,) = now.xpath(".//progress")
    assert (bar.get("value"), bar.get("max")) == ("40", "100")
    assert "w1 checks every page, for eve" in text(now)
    assert "40 of 100 pages checked" in text(now)
    checks.ask("ann")
    assert "It starts after the running one." in text(page(ann).get_element_by_id("now"))

    run.end()
    assert not page(ann).xpath("//progress")


def test_an_operator_asks_and_a_worker_checks(ann: Browser, rig: Rig, store: redis.Redis) -> None:
    rig.do({"type": "upsert", "loc": "a"})

    assert "requested a check: no worker is alive" in ask(ann)
    assert "The check starts once a worker is alive." in text(page(ann).get_element_by_id("now"))
    WorkerRegistry(store).beat("w1", beat())
    assert "requested a check: a worker starts it within seconds" in ask(ann)
    assert re.search(
        r"ann requested a check (now|\d+ s ago)", text(page(ann).get_element_by_id("now"))
    )
    Examiner(rig.settings, store, "w1", lambda: False).look()

    shown = page(ann)
    assert "requested a check" not in text(shown.get_element_by_id("now"))
    assert "Requested by ann" in text(shown.get_element_by_id("last"))
    assert [each[:2] + each[3:] for each in outcomes(store)[1:]] == [("ann", "check", True)] * 2


def test_t26_a_viewer_asks_for_no_check(vic: Browser, ann: Browser, checks: CheckStore) -> None:
    vic.login("vic")
    assert not page(vic).xpath("//main//form")
    assert vic.post("/admin/checks/now", site="demo", csrf=vic.csrf()).status_code == 403
    ann.login("ann")
    assert ann.post("/admin/checks/now", site="demo", csrf="x" * 43).status_code == 403
    assert "is not configured" in ann.act("/admin/checks/now", site="no")

    assert checks.asked() == {}


def test_t27_no_look_at_checks_changes_them(
    ann: Browser, rig: Rig, unchanged: Callable[[], Any]
) -> None:
    rig.do({"type": "upsert", "loc": "a"})
    examine(rig)

    with unchanged():
        for path in (PAGE, "/admin/checks/now", "/admin/checks/now?site=demo"):
            ann.get(path)


def test_t28_what_a_check_met_is_text(ann: Browser, checks: CheckStore) -> None:
    samples = tuple(FindingSample(f"{BASE}{n}{CANARY}", CANARY) for n in range(9))
    found = CheckFinding(
        f"robots-{CANARY}", "error", 99, samples, CANARY, f"{CANARY} sitemapd check {CANARY}",
        (f"sitemapd check {CANARY}",),
    )  # fmt: skip
    run = checks.begin(CANARY, CANARY)
    run.store(CheckReport(1, 2, CANARY, 9, True, (found,)))
    checks.set_compared(
        ComparisonSummary(1, 1, 1, 1, {"missing": samples, "extra": samples}, CANARY)
    )
    run.advance(CANARY, 1, 2)
    checks.ask(f"who{CANARY}")

    for path in (PAGE, "/admin/", "/admin/files?site=demo", f"/admin/checks?site={CANARY}"):
        answer = ann.get(path)
        assert "<script>alert" not in answer.text
        assert not re.search(r"\son\w+=|\sstyle=|javascript:", answer.text)
    assert ann.get(PAGE).text.count("&lt;script&gt;") >= 60


def test_a_report_of_an_older_version_is_shown_without_commands(
    ann: Browser, checks: CheckStore, rig: Rig
) -> None:
    """It states no commands beside its remedy; the next check does."""
    finding = ["served", "error", 1, [["a.xml", "answered 404"]], "means", "sitemapd rebuild."]
    report = json.dumps([1, 2, "ann", 9, True, [finding]])
    rig.client.hset(rig.keys.checks, "report", report)

    shown = page(ann).get_element_by_id("finding-served")

    assert "sitemapd rebuild." in text(shown)
    found = checks.latest()
    assert found is not None
    assert (found.findings[0].todo, found.findings[0].commands) == ("sitemapd rebuild.", ())


def test_a_comparison_with_the_source_is_shown_as_it_stands(
    ann: Browser, checks: CheckStore
) -> None:
    checks.set_compared(differs(missing=30, extra=2, incomplete="page 3 answered 500"))

    shown = page(ann).get_element_by_id("source")
    for said in (
        "2 h ago", "Missing 30", "Stale 0", "Extra 2", "could not be read completely",
        "page 3 answered 500", "And 10 more that are not shown.",
        "sitemapd reconcile --against configured --site demo",
    ):  # fmt: skip
        assert said in text(shown), said
    (first, *_) = shown.xpath(".//li/a/@href")
    assert "Not listed" in ann.get(first).text

    checks.set_compared(differs(missing=30, repaired=True))
    shown = page(ann).get_element_by_id("source")
    assert "Missing 30 repaired" in text(shown)
    assert "reconcile" not in text(shown)


def test_the_overview_says_in_a_line_what_was_found(
    ann: Browser, rig: Rig, checks: CheckStore
) -> None:
    def card() -> Any:
        return page(ann, "/admin/?site=demo").get_element_by_id("site-demo")

    rig.do({"type": "upsert", "loc": "p/1"})
    assert "Checked never" in text(card())
    examine(rig)
    assert re.search(r"Checked (now|\d+ s ago) nothing wrong", text(card()))
    assert not card().find_class("concern")

    (rig.root / "robots.txt").write_text(ROBOTS)
    examine(rig)
    checks.set_compared(differs(missing=3, extra=1))
    first, second = card().find_class("concern")
    assert re.match(r"Checked \d+ s ago: 1 error. robots-blocked. Checks", text(first))
    assert text(second).startswith("Compared with the source 2 h ago: 3 missing, 1 extra.")
    assert {each for node in (first, second) for each in links(node).values()} == {PAGE}
    assert "Needs you" in text(card())
    assert "Compared with source 2 h ago" in text(card())


def test_files_say_whether_they_are_served_as_they_were_published(
    configure: Configure, store: redis.Redis, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    with web_server(tmp_path / "a") as (server, address):
        rig = Rig(store, tmp_path / "a", base_url=address, shard_urls=2)
        rig.do(*({"type": "upsert", "loc": f"{address}{n}"} for n in range(8)))
        browser = Browser(with_site(configure(), base_url=address))
        browser.login("ann")

        def column() -> list[str]:
            rows = page(browser, "/admin/files?site=demo").xpath("//tbody/tr")
            return [text(row[2]) for row in rows]

        assert column() == ["unknown"] * 4
        (rig.root / "pages-3.xml").write_bytes(b"<urlset/>")
        server.instead = lambda asked: Reply({}, 404) if "pages-2" in asked.path else None
        examine(rig, served=True)
        assert column() == [
            "as published", "answered 404", "different content in the web root", "as published",
        ]  # fmt: skip
        shown = text(page(browser, "/admin/files?site=demo&file=pages-2.xml"))
        assert re.search(
            r"Served as published\? answered 404 according to the last check , (now|\d+ s ago)",
            shown,
        )

        later = int(time.time()) + 2
        stored = rig.state.files(["pages"])
        ((shard, file),) = [each for each in stored.items() if each[0].number == 4]
        store.hset(
            "{demo}:section:pages:files", str(shard.number), file._replace(lastmod=later).pack()
        )
        assert column()[3] == "written since"


def test_a_page_leads_to_its_file_and_events_and_they_back_to_it(ann: Browser, rig: Rig) -> None:
    rig.do({"type": "upsert", "loc": "a"})
    inspector = f"/admin/inspector?loc={BASE}a&site=demo"
    found = links(page(ann, inspector))

    assert "As published" in ann.get(found["pages-1.xml"]).text
    rows = links(page(ann, found["All events about it"]))
    event = links(page(ann, rows[f"{BASE}a"]))
    assert "Listed" in ann.get(event["Inspect this page"]).text
    for file in ("pages/1", "pages-1.xml"):
        assert "As published" in ann.get(event[file]).text
    (ident,) = [name for name in found if re.fullmatch(r"\d+-\d+", name)]
    assert f"{BASE}a" in ann.get(found[ident]).text


def test_feeds_are_shown_with_their_lease_and_without_what_may_be_a_key(
    configure: Configure, store: redis.Redis
) -> None:
    now, hour = time.time_ns() // 1_000_000, 3_600_000
    feeds = ["https://feeds.example/a?token=canary-t", "https://feeds.example/new"]
    key = "0123456789abcdef" * 4
    kept = [
        Subscription(feeds[0], state="active", hub="https://u:canary-p@hub.example/?k=canary-h",
                     until=now + 30 * hour + 60_000),
        Subscription("https://feeds.example/old", state="active", until=now - hour),
        Subscription("https://feeds.example/no", state="denied", why=f"no {CANARY} {key}"),
    ]  # fmt: skip
    for each in kept:
        store.hset("{demo}:websub", each.topic, json.dumps(each))
    assert len(Subscriptions(store, "demo").all()) == 3
    sources = {"websub": {"secret": "x" * 32, "topics": feeds}}
    browser = Browser(with_site(configure(), sources=sources))
    browser.login("ann")

    answer = browser.get("/admin/sites?site=demo").text
    rows = [text(row) for row in html.fromstring(answer).xpath("//section[h2/@id='feeds']//tr")][1:]

    assert rows == [
        "https://feeds.example/a?… active https://hub.example/?… in 30 h",
        "https://feeds.example/new new unknown none",
        f"https://feeds.example/no denied no {CANARY} … unknown none",
        "https://feeds.example/old lapsed unknown 1 h ago",
    ]
    for secret in ("canary-p", "canary-t", "canary-h", key[:16], "<script>alert"):
        assert secret not in answer
    assert 'id="feeds"' not in browser.get("/admin/sites?site=other").text
