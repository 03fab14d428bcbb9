"""The page Failed and what it does, on a real store with a real pump."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis

from shared.domain.page_record import digest_of
from tests.integration.conftest import wait_until
from tests.integration.console.browsing import Browser
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig
from worker.ingest.event_processor import MAX_TRIES


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "a")


def fail(rig: Rig) -> None:
    """Work until what cannot be applied is given up."""
    pump = rig.pump()
    with silence():
        for _ in range(MAX_TRIES):
            pump.run()
    assert not rig.inbox.waiting()


def poison(rig: Rig, payload: bytes = b"not an event") -> None:
    rig.client.xadd(rig.keys.inbox, {"e": payload})


def barred(rig: Rig, path: str) -> str:
    """Where the page `path` is kept, with something else at that place."""
    key = rig.keys.loc(digest_of(BASE + path))
    rig.client.set(key, "in the way")
    return key


def letters(store: redis.Redis) -> list[str]:
    rows: Any = store.xrange("{demo}:dead")
    return [ident.decode() for ident, _ in rows]


def test_a_failed_event_is_found_understood_and_replayed_in_three_clicks(
    ann: Browser, rig: Rig, store: redis.Redis
) -> None:
    key = barred(rig, "a")
    rig.send({"type": "upsert", "loc": "a"})
    fail(rig)

    overview = ann.get("/admin/").text
    first = re.search(r'1 event failed five times.*?href="([^"]+)"', overview, re.DOTALL)
    assert first is not None
    failed = ann.get(html.unescape(first[1])).text
    assert "WRONGTYPE" in failed
    second = re.search(rf'href="([^"]+)">{BASE}a<', failed)
    assert second is not None
    event = ann.get(html.unescape(second[1])).text
    assert "tried 5 times" in event
    (letter,) = letters(store)
    assert f"sitemapd dead retry {letter} --site demo" in event
    third = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', event.split("steps")[1]))
    assert third.pop("csrf") == ann.csrf()
    store.delete(key)
    done = ann.act("/admin/failed/retry", **third)

    assert "<b>Done:</b> 1 event accepted again" in done
    wait_until(lambda: store.llen("sitemapd"), "a worker is woken")
    rig.settle()
    assert list(rig.listed()) == [f"{BASE}a"]
    assert "No failed events." in ann.get("/admin/failed?site=demo").text


def test_failed_events_are_grouped_by_error_and_a_group_is_paged(
    ann: Browser, rig: Rig, store: redis.Redis
) -> None:
    for n in range(60):
        store.xadd("{demo}:dead", {
            "id": f"{n + 1}-0", "error": "Boom: it\r\nbroke", "tries": "5",
            "e": f'{{"v":1,"type":"upsert","loc":"{BASE}{n}"}}',
        })  # fmt: skip
    poison(rig)
    fail(rig)

    text = ann.get("/admin/failed?site=demo").text
    badges = re.findall(r'badge bad">([^<]+)<', text)
    assert badges == ["60 events", "1 event"]
    assert "an event that cannot be read" in text
    assert "All 61" in text
    group = ann.get(
        f"/admin/failed?site=demo&error={quote('Boom: it' + chr(13) + chr(10) + 'broke')}"
    ).text
    assert len(re.findall("<button>Retry", group)) == 50
    older = re.search(r'href="([^"]+)" rel="next"', group)
    assert older is not None
    assert len(re.findall("<button>Retry", ann.get(html.unescape(older[1])).text)) == 10
    assert "No event with this error is left" in ann.get("/admin/failed?site=demo&error=other").text


def test_a_group_is_tried_again_and_fails_again_if_nothing_was_mended(
    ann: Browser, rig: Rig, store: redis.Redis
) -> None:
    key = barred(rig, "a")
    rig.send({"type": "upsert", "loc": "a"})
    poison(rig)
    fail(rig)
    (error,) = {
        html.unescape(each)
        for each in re.findall(r">(SchemaError[^<]+)</a>", ann.get("/admin/failed?site=demo").text)
    }

    asked = ann.get(f"/admin/failed/ask?do=retry&error={quote(error)}").text
    assert "Retry: 1 event of demo" in asked
    done = ann.act("/admin/failed/retry", site="demo", error=error, events="1")
    assert "1 event accepted again" in done
    fail(rig)
    assert len(letters(store)) == 2
    store.delete(key)
    assert "reload the page" in ann.act("/admin/failed/retry", site="demo", all="yes", events="50")
    assert "2 events accepted" in ann.act("/admin/failed/retry", site="demo", all="yes", events="2")
    fail(rig)

    assert list(rig.listed()) == [f"{BASE}a"]
    assert len(letters(store)) == 1


def test_events_are_saved_before_they_are_forgotten_and_not_one_more_is(
    ann: Browser, rig: Rig, store: redis.Redis
) -> None:
    poison(rig, b"one")
    poison(rig, b"two")
    fail(rig)

    asked = ann.get("/admin/failed/ask?do=discard&all=yes").text
    link = re.search(r'href="([^"]+)" download', asked)
    assert link is not None
    file = ann.get(html.unescape(link[1]))
    assert file.headers["Content-Disposition"] == 'attachment; filename="demo-failed.ndjson"'
    assert file.data == b"one\ntwo\n"
    poison(rig, b"three")
    fail(rig)
    form = {"site": "demo", "all": "yes"}
    assert "reload the page" in ann.act("/admin/failed/discard", events="2", **form)
    assert len(letters(store)) == 3
    first = letters(store)[0]
    one = ann.act("/admin/failed/discard", site="demo", id=first, events="1")
    assert "1 event discarded" in one
    assert "no dead letter has this id" in ann.act(
        "/admin/failed/discard", site="demo", id=first, events="1"
    )
    assert "2 events discarded" in ann.act("/admin/failed/discard", events="2", **form)
    assert letters(store) == []
    for wrong in ("", "id=x", f"id={first}"):
        assert ann.get(f"/admin/failed/ask?{wrong}").status_code == 422
    assert "give ids" in ann.act("/admin/failed/discard", site="demo", events="0")
