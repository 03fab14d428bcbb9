"""New pages that wait until they were seen, and dates that wait until the page has changed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Protocol

import pytest
import redis

from shared.admin.site_status import Inspector
from tests.integration.looks.visited import GONE, Visited, Website, page
from tests.unit.worker.sources.cms import Reply

TEXT = "<main><h1>Bees</h1><p>Bees live in hives and make honey of the nectar they find.</p></main>"
OTHER = TEXT.replace("nectar", "pollen")
DAY_S = 24 * 3600


class Make(Protocol):
    def __call__(self, **pages: Any) -> Visited: ...


@pytest.fixture
def make(store: redis.Redis, tmp_path: Path, web: tuple[Website, str]) -> Make:
    def made(**pages: Any) -> Visited:
        return Visited(store, tmp_path / "public", *web, pages=pages)

    return made


def expire(site: Visited, ahead_s: float = 0) -> None:
    """Do what is due, as the sweep does, by a clock that is so many seconds ahead."""
    consumer = site.rig.pump()
    consumer.expiry._clock = lambda: time.time() + ahead_s
    consumer.expire()
    site.rig.settle()


def listed(site: Visited) -> dict[str, str | None]:
    expire(site)
    return {"/" + loc.removeprefix(site.base): at for loc, at in site.rig.listed().items()}


def send(site: Visited, path: str, day: int, **members: Any) -> None:
    lastmod = f"2026-01-{day:02}"
    site.rig.do({"type": "upsert", "loc": site.loc(path), "lastmod": lastmod} | members)


def test_a_new_page_is_listed_once_it_was_seen(make: Make) -> None:
    site = make(gate=True)
    send(site, "/a", 1)
    assert listed(site) == {}
    inspected = Inspector(site.client, "demo", site.rig.site).entry(site.loc("/a"))
    assert "a new page waits until it was seen" in inspected["why"]

    assert site.look() == ["/a"]  # not there yet
    assert listed(site) == {}
    assert site.broken()["/a"].why == "answers 404"
    site.web.pages["/a"] = page()
    assert site.look(again=True) == ["/a"]
    assert listed(site) == {"/a": "2026-01-01"}
    assert site.broken() == {}
    site.rig.check_consistency()


def test_the_gate_opens_at_its_deadline(make: Make) -> None:
    site = make(gate=True, wait_hours=24)
    send(site, "/a", 1)
    site.look()
    expire(site, DAY_S - 60)
    assert site.rig.listed() == {}

    expire(site, DAY_S + 60)
    assert listed(site) == {"/a": "2026-01-01"}


def test_a_newer_event_passes_one_that_waits(make: Make) -> None:
    site = make(gate=True)
    site.web.pages["/a"] = page()
    send(site, "/a", 1, version=1_700_000_000_000)
    site.rig.do({"type": "delete", "loc": site.loc("/a"), "version": 1_700_000_001_000})

    site.look(2)
    expire(site, 2 * DAY_S)
    assert listed(site) == {}


def test_a_known_page_passes_the_gate(make: Make) -> None:
    site = make(gate=True)
    site.web.pages["/a"] = page()
    send(site, "/a", 1)
    site.look()
    assert listed(site) == {"/a": "2026-01-01"}
    site.web.pages["/a"] = GONE
    send(site, "/a", 2)
    assert listed(site) == {"/a": "2026-01-02"}


def seen(make: Make, **pages: Any) -> Visited:
    """A page that was looked at once."""
    site = make(prove_lastmod=True, **pages)
    site.web.pages["/a"] = page(TEXT)
    send(site, "/a", 1)
    assert listed(site) == {"/a": "2026-01-01"}
    site.look(2)
    assert site.record("/a") is not None
    return site


def test_a_save_that_changed_nothing_moves_no_date(make: Make) -> None:
    site = seen(make)
    site.web.pages["/a"] = page(
        f'<nav><a href="/new">New</a></nav>{TEXT}<footer>2027</footer>', head="<style>p{}</style>"
    )
    before = site.rig.files()
    send(site, "/a", 2)
    assert listed(site) == {"/a": "2026-01-01"}

    site.look()
    expire(site, 2 * DAY_S)
    assert listed(site) == {"/a": "2026-01-01"}
    assert site.rig.files() == before
    assert any(said.startswith("its date stays: the page is as before") for said in reasons(site))
    site.rig.check_consistency()


def reasons(site: Visited) -> list[str]:
    return site.rig.reasons()


@pytest.mark.parametrize(
    "after",
    [
        page(OTHER), page(TEXT.replace("honey", '<a href="/honey">honey</a>')),
        page(TEXT, head='<script type="application/ld+json">{"price": 3}</script>'),
    ],
    ids=["text", "link", "structured data"],
)  # fmt: skip
def test_a_change_that_readers_see_moves_the_date_and_the_proof_is_kept(
    make: Make, after: Reply
) -> None:
    site = seen(make)
    first = site.record("/a")
    site.web.pages["/a"] = after
    send(site, "/a", 2)
    assert listed(site) == {"/a": "2026-01-01"}

    site.look()
    assert listed(site) == {"/a": "2026-01-02"}
    looked = Inspector(site.client, "demo", site.rig.site).entry(site.loc("/a"))["looked"]
    assert first is not None
    assert looked["before"] == first.print.hex() != looked["fingerprint"]
    assert "changed" in looked


def test_what_changes_with_each_save_in_structured_data_is_no_change(make: Make) -> None:
    site = seen(make)
    data = '<script type="application/ld+json">{"name": "b", "dateModified": "%s"}</script>'
    site.web.pages["/a"] = page(TEXT, head=data % "2026-01-01")
    site.round()
    site.look()
    first = site.record("/a")
    site.web.pages["/a"] = page(TEXT, head=data % "2026-01-02")
    site.round()
    site.look()

    second = site.record("/a")
    assert first is not None
    assert second is not None
    assert second.print == first.print


def test_what_is_served_from_a_cache_is_looked_at_again(make: Make) -> None:
    site = seen(make, confirm_minutes=30)
    send(site, "/a", 2)
    site.look()  # still the old content
    assert site.client.zscore("{demo}:looks:again", site.loc("/a")) is not None

    site.web.pages["/a"] = page(OTHER)
    site.client.zadd("{demo}:looks:again", {site.loc("/a"): 1})
    site.look()
    assert listed(site) == {"/a": "2026-01-02"}


def test_a_change_that_was_seen_before_its_event_moves_the_date(make: Make) -> None:
    site = seen(make)
    site.client.hset("{demo}:looks", "began", 1)
    record = site.record("/a")
    assert record is not None
    later = record._replace(at_s=record.at_s + 5)
    site.store.looked_at(site.loc("/a"), later, None, 0)
    site.round()
    site.store.change(cursor="")
    site.web.pages["/a"] = page(OTHER)
    site.store.add_due({site.loc("/a"): 1})
    site.look()
    changed = site.record("/a")
    assert changed is not None
    assert changed.fresh

    send(site, "/a", 2)
    site.look()
    assert listed(site) == {"/a": "2026-01-02"}
    done = site.record("/a")
    assert done is not None
    assert not done.fresh


def test_a_second_look_does_not_take_back_what_the_first_let_go(make: Make) -> None:
    site = seen(make)
    site.web.pages["/a"] = page(OTHER)
    send(site, "/a", 2)
    site.look()
    site.store.add_due({site.loc("/a"): 1})
    assert site.look() == ["/a"]

    assert listed(site) == {"/a": "2026-01-02"}


def test_an_event_that_changes_more_than_the_date_is_taken_as_it_is(make: Make) -> None:
    site = seen(make)
    send(site, "/a", 2, images=[{"loc": "https://www.example.com/a.jpg"}])

    assert listed(site) == {"/a": "2026-01-02"}


def test_a_date_is_taken_as_sent_at_the_deadline(make: Make) -> None:
    site = seen(make, daily=2)
    site.store.change(spent=2)  # nobody can look today
    send(site, "/a", 2)
    site.look()
    assert listed(site) == {"/a": "2026-01-01"}

    expire(site, DAY_S + 60)
    assert listed(site) == {"/a": "2026-01-02"}


def test_of_a_page_that_was_never_seen_the_date_is_taken(make: Make) -> None:
    site = make(prove_lastmod=True)
    site.web.pages["/a"] = page(TEXT)
    send(site, "/a", 1)
    send(site, "/a", 2)
    assert listed(site) == {"/a": "2026-01-01"}

    site.look()
    assert listed(site) == {"/a": "2026-01-02"}
