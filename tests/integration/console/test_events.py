"""The pages about events, and replays from them, on a real store with a real pump."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.store.pages.changes import log_entry
from tests.integration.conftest import wait_until
from tests.integration.console.browsing import SECRETS, TOKENS, Browser, Configure
from tests.integration.rig import BASE, Rig
from webhook.console.views import replays
from webhook.console.views.events import LOOKED_AT
from webhook.rejection_log import RejectionLog


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "a")


def page(path: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": path, **members}


def about(text: str) -> list[str]:
    """What the rows of a page are about, in their order."""
    return [
        html.unescape(each) for each in re.findall(r'<th scope="row".*?<a [^>]+>(.*?)</a>', text)
    ]


def decided(store: redis.Redis, count: int, subject: str) -> None:
    """As if a worker had decided so many events at once."""
    payload = json.dumps({"v": 1, "type": "upsert", "loc": subject}).encode()
    decisions = [(f"1-{n}", subject, "added", True) for n in range(count)]
    store.xadd("{demo}:recent", {"decided": log_entry(decisions, [payload] * count)})


def test_what_happened_is_listed_newest_first_with_why(ann: Browser, rig: Rig) -> None:
    rig.do(page("a", lastmod="2026-11-01"))
    rig.do(page("a", lastmod="2026-11-01"))
    rig.do(page("b", id="7"))

    text = ann.get("/admin/events?site=demo").text

    assert about(text) == [f"{BASE}b", f"{BASE}a", f"{BASE}a"]
    states = re.findall(r'badge (\w+)">(changed|unchanged)<', text)
    assert states == [("good", "changed"), ("quiet", "unchanged"), ("good", "changed")]
    assert "native upsert" in text
    assert "sitemapd event list --site demo" in text
    assert "No event waits" in text


def test_filters_choose_by_url_reason_outcome_and_time(ann: Browser, rig: Rig) -> None:
    rig.do(page("news/1"), page("blog/1"))
    rig.do(page("news/1"), page("blog/1", lastmod="2026-11-01"))

    def found(query: str) -> list[str]:
        return [
            each.removeprefix(BASE)
            for each in about(ann.get(f"/admin/events?site=demo&{query}").text)
        ]

    assert found("url=news") == ["news/1"] * 2
    assert found(f"url={BASE}blog/1") == ["blog/1"] * 2
    assert found(f"url={BASE}n*") == ["news/1"] * 2
    assert found("url=HTTPS://WWW.example.com:443/blog/1") == ["blog/1"] * 2
    assert found("kind=unchanged") == ["news/1"]
    assert found("kind=changed&url=news") == ["news/1"]
    assert found("reason=added") == ["blog/1", "news/1"]
    assert len(found("since=1h")) == 4
    assert found("since=2099-01-01") == found("kind=refused") == found("url=nothing") == []
    wrong = ann.get("/admin/events?site=demo&since=yesterday")
    assert (wrong.status_code, "an age: 30m, 2h, 1d" in wrong.text) == (422, True)
    assert "--url=*news*" in html.unescape(ann.get("/admin/events?site=demo&url=news").text)


def test_pages_follow_each_other_even_within_one_batch(ann: Browser, rig: Rig) -> None:
    rig.do(*(page(f"p{n:03}") for n in range(120)))
    rig.do(page("last"))

    text, seen = ann.get("/admin/events?site=demo").text, list[str]()
    while True:
        seen += about(text)
        older = re.search(r'href="([^"]+)" rel="next"', text)
        if older is None:
            break
        rig.do(page(f"meanwhile-{len(seen)}"))  # which moves nothing
        text = ann.get(html.unescape(older[1])).text

    assert seen == [f"{BASE}last", *(f"{BASE}p{n:03}" for n in reversed(range(120)))]
    assert ann.get("/admin/events?site=demo&before=nonsense").status_code == 200
    assert ann.get(f"/admin/events?site=demo&before={'9' * 40}-1").status_code == 200


def test_one_page_looks_through_so_much_and_the_next_goes_on(
    ann: Browser, store: redis.Redis
) -> None:
    decided(store, 1, f"{BASE}wanted")
    decided(store, LOOKED_AT, f"{BASE}other")

    first = ann.get("/admin/events?site=demo&url=wanted").text

    assert "there are older ones" in first
    older = re.search(r'href="([^"]+)" rel="next"', first)
    assert older is not None
    assert about(ann.get(html.unescape(older[1])).text) == [f"{BASE}wanted"]


def test_an_event_is_followed_to_the_lines_it_changed(ann: Browser, rig: Rig) -> None:
    rig.do(page("a", lastmod="2026-11-01"))
    (ident,) = rig.send(page("a", lastmod="2026-11-02", id="7"))
    rig.settle()

    text = ann.get(f"/admin/events/one?site=demo&id={ident}").text

    steps = re.findall(r"<li class=\"[a-z-]+\"><b>(\w+)</b>", text)
    assert steps == ["Accepted", "Decided", "Applied", "Published"]
    assert "pages-1.xml" in text
    assert re.search(r"[0-9]+ ms after arrival", text)
    assert "&lt;lastmod&gt;2026-11-<del>01</del>" in text
    assert "&lt;lastmod&gt;2026-11-<ins>02</ins>" in text
    assert f"sitemapd event replay {ident} --site demo" in text
    shown = html.unescape(text)
    assert '"lastmod": "2026-11-02"' in shown
    assert "curl -sS https://www.example.com/v1/sites/demo/events" in shown
    assert "Bearer $SITEMAPD_TOKEN" in shown
    assert "data-poll" not in text  # nothing more will happen to it
    assert [secret for secret in (*SECRETS.values(), *TOKENS.values()) if secret in shown] == []


def test_what_waits_is_found_and_says_why(ann: Browser, rig: Rig) -> None:
    first, second = rig.send(page("first"), page("second"))

    waiting = ann.get("/admin/events?site=demo&kind=waiting").text
    assert about(waiting) == [f"{BASE}first", f"{BASE}second"]
    assert "no worker has read it yet" in waiting
    rig.inbox.read("w1", 1)
    waiting = ann.get("/admin/events?site=demo&kind=waiting&url=first").text
    assert about(waiting) == [f"{BASE}first"]
    assert "with w1 for 0 s" in waiting
    one = ann.get(f"/admin/events/one?id={first}").text
    assert "With a worker" in one
    assert "No worker is alive" in one
    ann.act("/admin/queues/pause", site="demo", queue="events")
    two = ann.get(f"/admin/events/one?id={second}").text
    assert "Events are paused by ann" in two
    assert "Replay</button>" not in two
    assert "data-poll" in two
    assert "2 events waiting" in ann.get("/admin/events?site=demo").text


def test_what_is_refused_at_intake_has_its_page(
    ann: Browser, store: redis.Redis, configure: Configure
) -> None:
    refusals = RejectionLog(configure(), every_s=0.01)
    refusals.note("demo", {"request": "00ff" * 4, "status": 401, "code": "unauthorized",
                           "reason": "token"})  # fmt: skip
    wait_until(lambda: store.xlen("{demo}:refused"), "the refusal is noted")

    text = ann.get("/admin/events?site=demo").text
    one = ann.get(f"/admin/events/one?id={'00ff' * 4}").text

    assert about(text) == ["401 unauthorized"]
    assert about(ann.get("/admin/events?site=demo&kind=refused&reason=token").text) == [
        "401 unauthorized"
    ]
    assert "Refused at intake" in one
    assert "401 unauthorized: token" in one
    assert "Replay</button>" not in one


def test_an_event_that_is_not_kept_has_a_page_that_says_so(ann: Browser) -> None:
    assert "Not known" in ann.get("/admin/events/one?id=1-1").text
    assert ann.get("/admin/events/one?id=https://www.example.com/x").status_code == 404
    assert ann.get("/admin/events/one?id=nothing").status_code == 404
    assert ann.get("/admin/events/one").status_code == 404


def test_a_replayed_event_counts_whatever_is_known(
    ann: Browser, rig: Rig, store: redis.Redis
) -> None:
    (old,) = rig.send(page("a", lastmod="2026-11-01", version=1_000))
    rig.settle()
    rig.do(page("a", lastmod="2026-11-02", version=2_000))

    text = ann.act("/admin/events/replay", site="demo", id=old)

    assert "<b>Done:</b> 1 event accepted again" in text
    assert "Waiting</span>" in text
    wait_until(lambda: store.llen("sitemapd"), "a worker is woken")
    rig.settle()
    assert rig.listed() == {f"{BASE}a": "2026-11-01"}
    as_sent = ann.act("/admin/events/replay", site="demo", id=old, as_sent="yes")
    assert "1 event accepted again" in as_sent
    gone = ann.act("/admin/events/replay", site="demo", id="1-1")
    assert "Not done:" in gone
    assert "no longer kept" in gone


def test_all_that_match_are_replayed_after_their_number_was_seen(ann: Browser, rig: Rig) -> None:
    rig.do(*(page(f"a/{n}", lastmod="2026-11-01") for n in range(30)), page("b"))
    rig.do(*(page(f"a/{n}", lastmod="2026-11-02") for n in range(30)))
    query = "url=*a/*&reason=added"

    shown = ann.get(f"/admin/events/replay-all?{query}").text
    assert "30 events of demo" in shown
    assert "sitemapd event replay --matching &#39;--url=*a/*&#39; --reason=added" in shown
    form = {"site": "demo", "url": "*a/*", "reason": "added", "kind": "", "since": ""}
    path = "/admin/events/replay-all/now"
    for events in ("19", "41", "", "x", "-30"):
        assert "reload the page" in ann.act(path, events=events, **form)
    assert rig.quiet()
    nothing = ann.act(path, events="0", **form | {"url": "none"})
    assert "no event matches" in nothing
    assert "Done:</b> 30 events accepted again" in ann.act(path, events="25", **form)
    rig.settle()

    assert {when for loc, when in rig.listed().items() if "/a/" in loc} == {"2026-11-01"}


def test_more_than_one_click_should_do_is_left_to_the_command_line(
    ann: Browser, store: redis.Redis
) -> None:
    decided(store, replays.MOST + 1, f"{BASE}a")

    text = ann.get("/admin/events/replay-all").text
    events = str(replays.MOST + 1)
    done = ann.act("/admin/events/replay-all/now", site="demo", events=events)

    assert "More than 10,000 events" in text
    assert "Replay 10" not in text
    assert "Not done:" in done
    assert not store.exists("{demo}:inbox")
