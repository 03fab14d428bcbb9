"""The page Queues and what it does, on a real store with a real pump."""

from __future__ import annotations

import html
import json
import re
import time
from pathlib import Path

import pytest
import redis

from shared.store.counting.counters import Counters
from tests.integration.conftest import wait_until
from tests.integration.console.browsing import Browser, Configure, outcomes
from tests.integration.rig import BASE, Rig, check_keys


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "a")


def card(text: str, queue: str) -> str:
    """What is said about one queue, without marks."""
    found = re.search(
        rf'<section class="card[^"]*" id="queue-{queue}".*?</section>', text, re.DOTALL
    )
    assert found is not None
    return " ".join(re.sub(r"<[^>]+>", " ", html.unescape(found[0])).split())


def test_each_queue_says_what_waits_and_how_fast_it_goes(
    ann: Browser, rig: Rig, store: redis.Redis
) -> None:
    minute = int(time.time() // 60) - 1
    store.hset(f"{{demo}}:pulse:{minute}", mapping={"accepted": 50, "changed": 5})
    store.expire(f"{{demo}}:pulse:{minute}", 600)
    store.rpush("sitemapd.reconcile", "x", "y")
    rig.send({"type": "upsert", "loc": "a"}, {"type": "upsert", "loc": "b"})
    rig.inbox.read("w1", 1)

    text = ann.get("/admin/queues?site=demo").text

    assert "open Accepts deliveries of senders" in card(text, "intake")
    assert "Accepted a minute 10 " in card(text, "intake")
    events = card(text, "events")
    assert "running" in events
    assert "Waiting 2" in events
    assert "In flight 1" in events
    assert "Oldest 0 s" in events
    assert "$ sitemapd queue pause events" in events.replace("Pause or", "$")
    assert 'aria-label="50 accepted within the last 30 minutes"' in text
    assert "Waiting 0" in card(text, "publish")
    assert re.search(r"sitemapd.reconcile</dt><dd>2<", text)


def test_a_paused_queue_waits_over_restarts_until_it_is_resumed(
    ann: Browser, rig: Rig, configure: Configure, store: redis.Redis
) -> None:
    assert "paused: events are accepted and wait" in ann.act(
        "/admin/queues/pause", site="demo", queue="events"
    )
    rig.send({"type": "upsert", "loc": "a"})
    rig.pump().run()
    assert rig.inbox.waiting() == 1
    again = Browser(configure())
    again.login("vic")
    said = card(again.get("/admin/queues?site=demo").text, "events")
    assert "Paused by ann" in said
    assert "nothing is decided" in said
    assert "sitemapd queue resume events --site demo" in said

    assert "was paused already" in ann.act("/admin/queues/pause", site="demo", queue="events")
    assert "resumed" in ann.act("/admin/queues/resume", site="demo", queue="events")
    wait_until(lambda: store.llen("sitemapd"), "a worker is woken")
    rig.settle()

    assert list(rig.listed()) == [f"{BASE}a"]
    assert [each[1:] for each in outcomes(store) if each[1] != "login"] == [
        ("queue pause", "paused: events are accepted and wait: nothing is decided", True),
        ("queue pause", "was paused already", True),
        ("queue resume", "resumed", True),
    ]
    assert "there are: events" in ann.act("/admin/queues/pause", site="demo", queue="none")
    assert "not configured" in ann.act("/admin/queues/pause", site="no", queue="events")


def test_a_drain_closes_the_intake_and_says_how_far_it_is(ann: Browser, rig: Rig) -> None:
    rig.send({"type": "upsert", "loc": "a"})

    asked = ann.get("/admin/queues/drain/ask?site=demo").text
    assert "The intake is closed until you open it again" in asked
    assert "Drain…" in ann.get("/admin/queues?site=demo").text
    text = ann.act("/admin/queues/drain", site="demo")

    assert "Remaining: 1 event and 0 files. No worker is alive." in card(text, "intake")
    event = rig.parse({"type": "upsert", "loc": f"{BASE}b"})
    assert rig.inbox.accept([event]).status == "closed"
    rig.settle()
    assert "Drained: no event" in card(ann.get("/admin/queues?site=demo").text, "intake")
    assert "resumed" in ann.act("/admin/queues/resume", site="demo", queue="intake")
    assert rig.inbox.accept([event]).status == "accepted"
    ann.act("/admin/queues/pause", site="demo", queue="publish")
    assert "a drain would never end" in ann.act("/admin/queues/drain", site="demo")


def test_a_purge_is_kept_downloaded_and_put_back(ann: Browser, rig: Rig) -> None:
    rig.send(*({"type": "upsert", "loc": f"p{n}"} for n in range(30)))

    asked = ann.get("/admin/queues/purge").text
    assert "30 events waiting" in asked
    assert f">{BASE}p0<" in asked
    assert "reload the page" in ann.act("/admin/queues/purge/now", site="demo", events="3")
    assert rig.inbox.waiting() == 30
    done = ann.act("/admin/queues/purge/now", site="demo", events="30")

    assert "30 events removed, kept for a week as" in done
    assert rig.quiet()
    found = re.search(r'href="([^"]+purge=(\d+))" download', done)
    assert found is not None
    file = ann.get(html.unescape(found[1]))
    assert file.headers["Content-Disposition"] == (
        f'attachment; filename="demo-purged-{found[2]}.ndjson"'
    )
    assert file.content_type == "application/x-ndjson"
    assert [json.loads(line)["loc"] for line in file.text.splitlines()] == [
        f"{BASE}p{n}" for n in range(30)
    ]
    assert ann.get("/admin/queues/purged?purge=1").status_code == 422
    back = ann.act("/admin/queues/put-back", site="demo", purge=found[2])
    assert "30 events accepted again" in back
    rig.settle()
    assert len(rig.listed()) == 30
    assert "No event waits." in ann.get("/admin/queues/purge").text


def test_what_comes_in_is_counted_by_the_minute(rig: Rig, store: redis.Redis) -> None:
    rig.send({"type": "upsert", "loc": "a"}, {"type": "upsert", "loc": "b"})
    rig.send({"type": "upsert", "loc": "c"})

    counts = [minute.counts.get("accepted", 0) for minute in Counters(store, "demo").minutes(2)]

    assert sum(counts) == Counters(store, "demo").totals()[0]["accepted"] == 3
    check_keys(store)
