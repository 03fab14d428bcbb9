"""Workers in the console: what they said, and that they are told what is wanted."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis
from lxml import html

from shared.store.operations.worker_registry import HEARTBEAT, BusyThread, WorkerRegistry
from tests.integration.console.browsing import Browser, outcomes
from tests.integration.worked import beat

CANARY = "<script>alert(1)</script>"


@pytest.fixture
def workers(store: redis.Redis) -> WorkerRegistry:
    return WorkerRegistry(store)


def page(browser: Browser) -> Any:
    answer = browser.get("/admin/workers")
    assert answer.status_code == 200
    return html.fromstring(answer.text)


def text(node: Any) -> str:
    return " ".join(" ".join(node.itertext()).split())


def act(browser: Browser, what: str, name: str) -> str:
    """Press a button; what the page says then."""
    answer = browser.post(f"/admin/workers/{what}", subject=name, csrf=browser.csrf())
    assert answer.status_code == 303
    return browser.get(answer.location or "").text


def test_each_worker_is_shown_as_it_says_it_is(ann: Browser, workers: WorkerRegistry) -> None:
    busy = (BusyThread(site="demo", since=time.time() - 160),)
    workers.beat("w1", beat(busy=busy, clock_offset=7.25))

    card = text(page(ann).get_element_by_id("living"))

    for said in (
        "w1 working host1, process 4711", "Version 0.1.0 Python 3.11.2",
        "Busy threads 1 of 4", "Memory 95.0 MB", "Events decided 1,234", "Files published 56",
        "Started 2 h ago", "Clock of Redis +7.2 s", "Busy with demo since 2 min ago",
        "Works for demo, other", "sitemapd workers quiet w1", "sitemapd workers stop w1",
    ):  # fmt: skip
        assert said in card, said
    assert re.search(r"Heartbeat \d s ago", card)
    assert "Different versions" not in page(ann).text_content()


def test_different_versions_are_pointed_out(
    ann: Browser, workers: WorkerRegistry, store: redis.Redis
) -> None:
    workers.beat("w1", beat())
    workers.beat("w2", beat(version="0.2.0"))
    assert "Different versions run: 0.1.0, 0.2.0." in text(page(ann))

    workers.beat("w2", beat())
    store.set(HEARTBEAT + "w3", "1", ex=10)
    store.zadd("{_sitemapd}:workers", {"w3": time.time()})
    store.expire("{_sitemapd}:workers", 60)
    shown = text(page(ann))
    assert "Different versions run: 0.1.0, an older one." in shown
    assert "w3 alive, of an older version" in shown
    assert "sitemapd workers quiet w3" not in shown


def test_a_worker_is_quieted_resumed_and_stopped(
    ann: Browser, workers: WorkerRegistry, store: redis.Redis
) -> None:
    workers.beat("w1", beat())

    assert "asked to be quiet" in act(ann, "quiet", "w1")
    assert workers.wanted("w1") == "quiet"
    assert "working, to be quiet" in text(page(ann))
    workers.beat("w1", beat(state="quiet"))
    shown = text(page(ann))
    assert "sitemapd workers resume w1" in shown
    assert "sitemapd workers quiet w1" not in shown
    assert "asked to work" in act(ann, "resume", "w1")
    assert workers.wanted("w1") == "work"
    assert "asked to stop" in act(ann, "stop", "w1")
    assert workers.wanted("w1") == "stop"
    done = [(who, what, well) for who, what, _, well in outcomes(store)[1:]]
    assert done == [("ann", f"workers {what}", True) for what in ("quiet", "resume", "stop")]


def test_nobody_is_asked_who_would_not_hear(
    ann: Browser, workers: WorkerRegistry, store: redis.Redis
) -> None:
    store.set(HEARTBEAT + "old", "1", ex=10)
    workers.beat("gone", beat())
    store.zadd("{_sitemapd}:workers", {"old": time.time()})
    workers.forget("gone")

    assert "no such worker; there are: gone, old" in act(ann, "quiet", "nobody")
    assert "takes no commands" in act(ann, "stop", "old")
    assert "is gone already" in act(ann, "stop", "gone")
    assert [workers.wanted(name) for name in ("nobody", "old", "gone")] == ["work"] * 3
    assert [outcome[3] for outcome in outcomes(store)[1:]] == [False] * 3


def test_who_is_gone_is_listed_for_a_day_with_what_it_will_do(
    ann: Browser, workers: WorkerRegistry
) -> None:
    workers.beat("w1", beat())
    workers.want("w1", "quiet")
    workers.forget("w1")

    gone = text(page(ann).get_element_by_id("gone"))
    assert re.search(r"w1 \d+ s ago it stays quiet", gone)
    assert "No worker is alive." in text(page(ann))
    assert "asked to work" in act(ann, "resume", "w1")
    assert re.search(r"w1 \d+ s ago it works", text(page(ann).get_element_by_id("gone")))


def test_t26_a_viewer_asks_nothing_of_a_worker(vic: Browser, workers: WorkerRegistry) -> None:
    workers.beat("w1", beat())

    assert not page(vic).xpath("//main//form")
    for what in ("quiet", "resume", "stop"):
        answer = vic.post(f"/admin/workers/{what}", subject="w1", csrf=vic.csrf())
        assert answer.status_code == 403
    assert workers.wanted("w1") == "work"


def test_t27_no_look_at_workers_changes_them(
    ann: Browser, workers: WorkerRegistry, unchanged: Callable[[], Any]
) -> None:
    workers.beat("w1", beat())

    with unchanged():
        for path in ("", "/quiet?subject=w1", "/resume?subject=w1", "/stop?subject=w1"):
            ann.get(f"/admin/workers{path}")


def test_t28_what_workers_say_is_text(ann: Browser, workers: WorkerRegistry) -> None:
    said = {"version": CANARY, "python": CANARY, "host": CANARY, "sites": (CANARY,)}
    for name in (f"a{CANARY}", "b"):
        workers.beat(name, beat(**said, busy=(BusyThread(site=CANARY, since=0),)))
    workers.beat(f"gone{CANARY}", beat())
    workers.forget(f"gone{CANARY}")

    for path in ("/admin/workers", "/admin/"):
        answer = ann.get(path).text
        assert "<script>alert" not in answer
        assert not re.search(r"\son\w+=|\sstyle=|javascript:", answer)
    assert ann.get("/admin/workers").text.count("&lt;script&gt;") >= 12
    assert "<script>alert" not in act(ann, "quiet", CANARY)
