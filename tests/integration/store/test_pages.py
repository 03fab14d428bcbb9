"""Applying decisions: all or nothing, whoever else is at it, and every page in its place."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.domain.batch_state import Policy
from shared.domain.decide_batch import ArrivedEvent, decide_all
from shared.domain.page_record import MAX_SECTIONS, TOMBSTONE_MS, Arrival
from shared.domain.routing import Routing
from shared.errors import ConfigError, StoreError
from shared.sitemap.shards import Limits, Shard
from shared.store.keys import AWAKE_MS, Keys
from shared.store.pages.page_repository import PageRepository
from tests.integration.rig import BASE, Rig

SEVEN_DAYS_MS = 7 * 24 * 3600 * 1000


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(
        store, tmp_path / "public", shard_urls=4, block_urls=2, sections={"posts": {}},
    )  # fmt: skip


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


def delete(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "delete", "loc": loc, **members}


def hold_back(rig: Rig, *items: dict[str, Any]) -> None:
    """Apply, and publish nothing."""
    rig.send(*items)
    rig.pump().apply_all()


def place(rig: Rig, loc: str) -> tuple[int, int]:
    page = rig.pages.lookup.find(BASE + loc)
    assert page is not None
    assert page.place is not None
    return page.place.shard, page.place.block


def test_a_record_that_changed_meanwhile_refuses_the_whole_batch(rig: Rig) -> None:
    events = [rig.parse(upsert(BASE + loc)) for loc in ("a", "b")]
    read = rig.pages.read(events)
    arrived = [ArrivedEvent(event, Arrival(2, 0)) for event in events]
    _, after = decide_all(read.state, arrived, Policy(Routing({})))
    rig.do(upsert("b", lastmod="2020-01-01"))

    assert not rig.pages.apply(read, after)
    assert rig.pages.lookup.find(BASE + "a") is None
    assert rig.quiet()


def test_new_pages_are_placed_in_the_order_of_their_arrival(rig: Rig) -> None:
    """In one batch or in many: a set of them would be in another order in every process."""
    rig.do(*(upsert(f"p/{n}") for n in range(9)))

    assert [place(rig, f"p/{n}") for n in range(9)] == [
        (1, 0), (1, 0), (1, 1), (1, 1), (2, 0), (2, 0), (2, 1), (2, 1), (3, 0),
    ]  # fmt: skip
    rig.check()


def test_new_shards_are_numbered_in_the_order_in_which_they_are_begun(rig: Rig) -> None:
    """The order of a Lua table is none."""
    rig.do(*(upsert(f"p/{n}", section=("pages", "posts")[n // 4 % 2]) for n in range(24)))

    ordinals = {str(s): state.ordinal for s, state in rig.state.shards(rig.site.limits).items()}
    assert ordinals == {
        "pages/1": 0, "posts/1": 1, "pages/2": 2, "posts/2": 3, "pages/3": 4, "posts/3": 5,
    }  # fmt: skip


def test_a_page_back_in_another_block_of_its_shard_is_listed_once(rig: Rig) -> None:
    """Its removal from the one block waits beside its entry into the other."""
    rig.do(*(upsert(f"p/{n}") for n in range(3)))
    for section in ("posts", "pages"):
        hold_back(rig, upsert("p/0", section=section))
    assert place(rig, "p/0") == (1, 1)

    rig.settle()

    rig.check()
    assert len(rig.listed()) == 3


def test_pages_deleted_and_added_again_before_a_publish_are_listed_once(rig: Rig) -> None:
    rig.do(*(upsert(f"p/{n}") for n in range(3)))
    hold_back(rig, *(delete(f"p/{n}") for n in range(3)))
    hold_back(rig, *(upsert(f"p/{n}") for n in range(3)))

    rig.settle()

    rig.check()
    assert len(rig.listed()) == 3


def test_a_page_that_lives_never_moves(rig: Rig) -> None:
    rig.do(*(upsert(f"p/{n}") for n in range(10)))
    before = [place(rig, f"p/{n}") for n in range(10)]

    rig.do(*(upsert(f"p/{n}", lastmod="2020-01-01") for n in range(10)))

    assert before == [place(rig, f"p/{n}") for n in range(10)]


def test_a_deleted_page_returns_to_its_hole_and_nobody_else_takes_it(rig: Rig) -> None:
    rig.do(*(upsert(f"p/{n}") for n in range(8)))
    rig.do(delete("p/1"), upsert("p/8"))
    assert place(rig, "p/8") == (3, 0)

    rig.do(upsert("p/1"))

    assert place(rig, "p/1") == (1, 0)
    rig.check()


def test_a_page_whose_hole_was_filled_meanwhile_goes_to_the_tail(rig: Rig) -> None:
    rig.do(*(upsert(f"p/{n}") for n in range(4)))
    rig.do(delete("p/1"))
    rig.do(upsert("p/4"))
    assert place(rig, "p/4")[0] == 1

    rig.do(upsert("p/1"))

    assert place(rig, "p/1") == (2, 0)
    rig.check()


def test_the_last_number_of_a_block_ends_its_shard(rig: Rig, store: redis.Redis) -> None:
    """A shard of pages that come and go all the time: the number has 16 bits."""
    number = rig.pages.sections.numbers()["pages"]
    tail = b"".join(n.to_bytes(4, "big") for n in (1, 65_535, 1, 100))
    store.hset(rig.keys.tails, str(number), tail)

    rig.do(upsert("a"), upsert("b"))

    assert [place(rig, loc) for loc in "ab"] == [(1, 65_535), (2, 0)]
    rig.check()


def test_deleted_pages_and_ids_are_forgotten_after_seven_days_and_not_before(rig: Rig) -> None:
    """RELIABILITY F13."""
    rig.do(upsert("a", id=1), upsert("b"), upsert("c"))
    rig.do({"type": "delete", "id": 1}, delete("b"), delete("c"))
    rig.do(upsert("c"))
    (_, first), *_ = rig.client.zrange(rig.keys.tombs, 0, 0, withscores=True)  # type: ignore[misc]
    assert TOMBSTONE_MS == SEVEN_DAYS_MS

    assert rig.pages.purge_tombstones(int(first) - 1) == 0
    assert rig.pages.lookup.find(BASE + "a") is not None
    assert rig.pages.purge_tombstones(int(first) + 60_000) == 4
    assert [rig.pages.lookup.find(BASE + loc) for loc in "ab"] == [None, None]
    assert rig.pages.lookup.find(BASE + "c") is not None, "it is back and stays"
    assert not list(rig.client.scan_iter("*:id:*"))
    rig.check()


def test_a_delete_that_is_repeated_is_remembered_for_longer(rig: Rig) -> None:
    rig.do(upsert("a"))
    rig.do(delete("a"))
    before = rig.client.zrange(rig.keys.tombs, 0, 0, withscores=True)
    rig.client.zadd(rig.keys.tombs, {before[0][0]: 1})  # type: ignore[index]

    rig.do(delete("a"))

    assert rig.pages.purge_tombstones(1) == 0


def test_sections_keep_their_numbers(store: redis.Redis) -> None:
    first = PageRepository(store, "demo", {"a": Limits(), "b": Limits()}).sections.numbers()

    again = PageRepository(store, "demo", {"c": Limits(), "a": Limits()}).sections.numbers()

    assert first.items() <= again.items()
    assert len(set(again.values())) == 3


def test_workers_that_number_a_section_at_once_agree(store: redis.Redis) -> None:
    found: list[dict[str, int]] = []
    limits = {f"s{n}": Limits() for n in range(20)}
    workers = [
        threading.Thread(
            target=lambda: found.append(PageRepository(store, "demo", limits).sections.numbers())
        )
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert all(each == found[0] for each in found)
    assert len(set(found[0].values())) == 20


def test_the_state_of_an_older_version_is_left_alone(rig: Rig) -> None:
    rig.do(upsert("a"))
    rig.client.hdel(rig.keys.counters, "form")

    sections = PageRepository(rig.client, rig.name, rig.site.limits).sections
    with pytest.raises(StoreError, match="sitemapd import"):
        sections.numbers()


def test_sections_are_bounded(store: redis.Redis) -> None:
    store.hset(Keys("demo").counters, "sections", MAX_SECTIONS)

    with pytest.raises(ConfigError, match="at most 4094"):
        PageRepository(store, "demo", {"a": Limits()}).sections.numbers()


def test_a_page_of_a_section_that_a_worker_does_not_know_yet_is_no_failure(
    store: redis.Redis, tmp_path: Path
) -> None:
    """RELIABILITY F21: two versions of the configuration at once."""
    old = Rig(store, tmp_path / "public")
    old_pump = old.pump()
    old.send(upsert("a"))
    old_pump.run()
    new = Rig(store, tmp_path / "public", sections={"fresh": {}})
    new.do(upsert("b", section="fresh"))

    old.send(upsert("b", lastmod="2020-01-01"))
    new.send(upsert("c", section="fresh"))
    old_pump.run()

    assert old.inbox.waiting() == 0
    assert new.listed() == {BASE + "a": None, BASE + "b": "2020-01-01", BASE + "c": None}


def test_a_site_is_awake_for_a_while_only(rig: Rig) -> None:
    rig.inbox.stay_awake()

    assert 0 < rig.client.pttl(rig.keys.awake) <= AWAKE_MS  # type: ignore[operator]


def test_two_sites_share_nothing(store: redis.Redis, tmp_path: Path) -> None:
    one = Rig(store, tmp_path / "a", name="one")
    other = Rig(store, tmp_path / "b", name="other")
    one.do(upsert("a"))
    other.do(upsert("b"))
    one.do(delete("a"))

    assert one.listed() == {}
    assert set(other.listed()) == {BASE + "b"}
    assert other.state.shards(["pages"])[Shard("pages", 1)].urls == 1
