"""Batches that come to much: every event is applied, and every call to the store is bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis
from lxml import etree

from shared.store.pages import changes
from shared.store.pages.page_repository import PageRepository
from tests.integration.rig import BASE, NS, Rig
from worker.ingest import inbox_consumer as pumps

LINK = "{http://www.w3.org/1999/xhtml}link"
CODES = [
    "ar", "bg", "cs", "da", "de", "el", "en", "es", "et", "fi",
    "fr", "ga", "he", "hi", "hr", "hu", "id", "is", "it", "ja",
]  # fmt: skip
GROUPS = 250


def _version(group: int, code: str) -> dict[str, Any]:
    loc = f"{BASE}{group}/{code}"
    return {"type": "upsert", "loc": loc, "group": f"g{group}", "lang": code}


def _links(rig: Rig) -> dict[str, int]:
    """How many alternates each listed page lists."""
    return {
        url.findtext(f"{NS}loc", ""): len(url.findall(LINK))
        for content in rig.shard_files().values()
        for url in etree.fromstring(content)
    }


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[changes.BatchChanges]:
    """What each call of apply.lua was given to write."""
    found: list[changes.BatchChanges] = []
    message = PageRepository._message

    def noted(self: PageRepository, what: changes.BatchChanges, *args: Any) -> Any:
        found.append(what)
        return message(self, what, *args)

    monkeypatch.setattr(PageRepository, "_message", noted)
    return found


@pytest.mark.parametrize("together", [True, False], ids=["one request", "behind a stopped worker"])
def test_a_twentieth_language_of_250_groups_is_listed_by_all_of_them(
    store: redis.Redis, tmp_path: Path, calls: list[changes.BatchChanges], together: bool
) -> None:
    rig = Rig(store, tmp_path)
    for group in range(GROUPS):
        rig.send(*(_version(group, code) for code in CODES[:-1]))
    rig.settle()
    calls.clear()

    last = [_version(group, CODES[-1]) for group in range(GROUPS)]
    if together:
        rig.send(*last)
    else:
        for item in last:
            rig.send(item)
    rig.settle(seconds=120)

    links = _links(rig)
    assert len(links) == GROUPS * len(CODES)
    assert set(links.values()) == {len(CODES)}
    assert store.xlen(rig.keys.dead) == 0
    assert max(len(call.pages) for call in calls) <= changes.MOST_PATCHES
    rig.check()


def test_one_call_applies_what_is_more_than_lua_passes_at_once(
    store: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    calls: list[changes.BatchChanges],
) -> None:  # fmt: skip
    count = 9_000
    monkeypatch.setattr(changes, "MOST_PATCHES", count)
    monkeypatch.setattr(pumps, "BATCH", count)
    rig = Rig(store, tmp_path)
    for at in range(0, count, 1_000):
        rig.send(*({"type": "upsert", "loc": f"{at + n}"} for n in range(1_000)))

    rig.settle(seconds=120)

    assert [len(call.pages) for call in calls] == [count]
    assert len(rig.listed()) == count
    rig.check()


def test_large_entries_are_applied_a_few_at_a_time_and_in_order(
    store: redis.Redis, tmp_path: Path, calls: list[changes.BatchChanges]
) -> None:
    rig = Rig(store, tmp_path)
    images = [{"loc": f"{BASE}{'i' * 1_500}{n}"} for n in range(60)]
    for n in range(100):
        rig.send({"type": "upsert", "loc": f"{n}", "images": images})
        rig.send({"type": "delete" if n % 2 else "upsert", "loc": f"{n % 50}", "version": n})

    rig.settle(seconds=120)

    sizes = [sum(len(page[4]) for page in call.pages) for call in calls]
    assert len(sizes) > 1
    assert max(sizes) <= changes.MOST_BYTES
    assert store.xlen(rig.keys.dead) == 0
    rig.check()


def test_one_event_of_a_large_group_is_applied_as_a_whole(
    store: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    calls: list[changes.BatchChanges],
) -> None:  # fmt: skip
    rig = Rig(store, tmp_path)
    rig.do(*(_version(1, code) for code in CODES[:-1]))
    monkeypatch.setattr(changes, "MOST_PATCHES", 4)
    calls.clear()

    rig.do(_version(1, CODES[-1]))

    assert [len(call.pages) for call in calls] == [len(CODES)]
    assert set(_links(rig).values()) == {len(CODES)}


def test_events_of_one_large_group_are_not_taken_one_by_one(
    store: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    calls: list[changes.BatchChanges],
) -> None:  # fmt: skip
    """Each of them would write the whole group again."""
    monkeypatch.setattr(changes, "MOST_PATCHES", 4)
    monkeypatch.setattr(changes, "MOST_BYTES", 1_000)
    rig = Rig(store, tmp_path)

    rig.do(*(_version(1, code) for code in CODES))

    assert [len(call.pages) for call in calls] == [len(CODES)]
    assert set(_links(rig).values()) == {len(CODES)}
    rig.check()
