"""Events, queues and dead letters of all sites on one page each."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from shared.store.operations.queues import Queues
from shared.store.streams import newest
from tests.integration.console.browsing import Browser
from tests.integration.rig import Rig

Sites = tuple[Rig, Rig]


@pytest.fixture
def both(store: redis.Redis, tmp_path: Path) -> Sites:
    return (
        Rig(store, tmp_path / "a"),
        Rig(store, tmp_path / "b", name="other", base_url="https://b.example/"),
    )


def rows(browser: Browser, path: str) -> list[str]:
    tree = html.fromstring(browser.get(path).text)
    return [" ".join(" ".join(row.itertext()).split()) for row in tree.xpath("//main//tbody/tr")]


def test_events_of_all_sites_stand_by_time_with_their_site(ann: Browser, both: Sites) -> None:
    demo, other = both
    demo.do({"type": "upsert", "loc": "first"})
    other.do({"type": "upsert", "loc": "https://b.example/second"})
    demo.do({"type": "upsert", "loc": "third"})
    found = rows(ann, "/admin/events")

    assert [each.split()[0] for each in found] == ["demo", "other", "demo"]
    assert ["third" in found[0], "second" in found[1], "first" in found[2]] == [True] * 3
    assert len(rows(ann, "/admin/events?url=second")) == 1
    assert rows(ann, "/admin/events?kind=refused") == []
    assert ann.get("/admin/events?since=yesterday").status_code == 422
    assert len(rows(ann, "/admin/events?site=other")) == 1


def test_every_event_of_all_sites_is_reached_page_by_page(ann: Browser, both: Sites) -> None:
    for n in range(13):
        both[n % 2].do({"type": "upsert", "loc": f"https://{'b' if n % 2 else 'www'}.example"
                        f"{'' if n % 2 else '.com'}/{n}"})  # fmt: skip
    seen, path = list[str](), "/admin/events"
    while path:
        seen += rows(ann, path)
        tree = html.fromstring(ann.get(path).text)
        path = next(iter(tree.xpath("//a[@rel='next']/@href")), "")

    assert [int(each.split("/")[3].split()[0]) for each in seen] == list(range(13))[::-1]


def test_dead_letters_of_all_sites_are_counted_and_listed(ann: Browser, store: redis.Redis) -> None:
    assert "No failed events." in ann.get("/admin/failed").text
    for name, count in (("demo", 1), ("other", 3)):
        for n in range(count):
            entry = {"e": "{}", "id": f"{n + 1}-0", "error": f"no {name}"}
            store.xadd(f"{{{name}}}:dead", entry, id=f"{n + 1 + 10 * (name == 'other')}-0")
    text = " ".join(" ".join(html.fromstring(ann.get("/admin/failed").text).itertext()).split())

    assert "4 dead letters" in text
    assert text.index("other 3") < text.index("demo 1")
    assert [each.split()[0] for each in rows(ann, "/admin/failed")] == ["other"] * 3 + ["demo"]
    assert "Retry" in ann.get("/admin/failed?site=other").text


def test_queues_of_all_sites_show_what_waits_and_what_is_paused(ann: Browser, both: Sites) -> None:
    demo, other = both
    assert "Nothing waits." in ann.get("/admin/queues").text
    demo.send({"type": "upsert", "loc": "a"}, {"type": "upsert", "loc": "b"})
    Queues(other.client, other.name).pause("publish", "ann")
    found = rows(ann, "/admin/queues")

    assert found[0] == "other 0 none 0 0 none publish by ann"
    assert found[1].startswith("demo 2 ")


places = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 2)), unique=True, max_size=12)


@pytest.mark.parametrize("each", [1, 2, 5])
def test_merged_streams_lose_nothing_between_pages(store: redis.Redis, each: int) -> None:
    @given(st.lists(places, min_size=1, max_size=4), st.integers(1, 6))
    def check(streams: list[list[tuple[int, int]]], most: int) -> None:
        store.flushall()
        for n, entries in enumerate(streams):
            for ms, number in sorted(entries):
                if (ms, number) > (0, 0):
                    store.xadd(f"{{s}}:{n}", {"n": n}, id=f"{ms}-{number}")
        keys, seen, before = [f"{{s}}:{n}" for n in range(len(streams))], list[object](), ""
        while True:
            found = newest(store, keys, each=each, most=most, before=before)
            seen += [(key, ident) for key, ident, _ in found.entries]
            if not found.older:
                break
            before = found.older
        wanted = [(f"{{s}}:{n}", f"{a}-{b}") for n, of in enumerate(streams) for a, b in of]
        assert len(seen) == len(wanted)
        assert set(seen) == set(wanted)
        order = [tuple(map(int, ident.split("-"))) for _, ident in seen]  # type: ignore[misc, attr-defined]
        assert order == sorted(order, reverse=True)

    check()
