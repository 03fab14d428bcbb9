"""The state is held against itself: what is planted is found and cured, and nothing else is found
(RELIABILITY N14).
"""

from __future__ import annotations

import math
import random
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis

from shared.domain.batch_state import NEWS
from shared.domain.deferral import AT
from shared.domain.page_record import Claim, PageRecord, Place, digest_of, owner_of
from shared.domain.translation_groups import GroupMember
from shared.domain.translation_groups import digest_of as group_of
from shared.sitemap import blocks, fragments, w3c_dates
from shared.sitemap.blocks import Block
from shared.sitemap.shards import Shard, ShardState
from shared.store.keys import field
from shared.store.pages import buckets as stored_buckets
from tests.integration.checks.examined import found
from tests.integration.conftest import wait_until
from tests.integration.faults import CutError, Fuse, fused_client
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig
from worker.checks.consistency import flaws as kinds
from worker.checks.consistency.examination import Consistency
from worker.checks.consistency.flaws import Flaw
from worker.checks.consistency.repair import Repaired

CODES = ("de", "en", "fr")
OPTIONS: dict[str, Any] = {
    "shard_urls": 20, "block_urls": 5, "feed": True, "robots": "create", "index_shards": 3,
    "sections": {"posts": {}, "news": {"news": True}},
}  # fmt: skip


def article(hours_ago: float = 1) -> dict[str, Any]:
    published = datetime.now(UTC) - timedelta(hours=hours_ago)
    return {
        "publication": {"name": "The Example", "language": "en"}, "title": "An article",
        "publication_date": published.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }  # fmt: skip


def video() -> dict[str, Any]:
    expires = datetime.now(UTC) + timedelta(days=1)
    return {
        "thumbnail_loc": f"{BASE}t.png", "title": "t", "description": "d",
        "content_loc": f"{BASE}v.mp4", "expiration_date": expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }  # fmt: skip


def page(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc} | members


def events() -> list[dict[str, Any]]:
    """A site of everything that can be kept of pages."""
    return [
        *(page(f"p/{n}") for n in range(30)),
        *(page(f"i/{n}", id=str(n), section="posts") for n in range(12)),
        *(page(f"g/{n}/{c}", group=f"g{n}", lang=[c]) for n in range(4) for c in CODES),
        *(page(f"n/{n}", news=article(), section="news") for n in range(3)),
        page("n/soon", news=article(-20), section="news"),
        page("later", publish_at="2199-01-01"),
        *(page(f"v/{n}", videos=[video()]) for n in range(2)),
    ]


def deletes() -> list[dict[str, Any]]:
    """Some of these pages go."""
    gone = [{"type": "delete", "loc": f"p/{n}"} for n in range(0, 30, 7)]
    return [*gone, {"type": "delete", "id": "3"}]


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    rig = Rig(store, tmp_path, **OPTIONS)
    rig.do(*events())
    rig.do(*deletes())
    return rig


def flaws(rig: Rig) -> list[Flaw]:
    return list(Consistency(rig.client, rig.name, rig.site).flaws())


def rebuild(rig: Rig) -> Repaired:
    audit = rig.audit()
    audit.rebuild()
    return audit.repaired


class Site(NamedTuple):
    """What a test plants into: the state of a rig's site, key by key."""

    rig: Rig

    @property
    def client(self) -> redis.Redis:
        return self.rig.client

    def record(self, key: str) -> PageRecord:
        page = self.rig.pages.lookup.find(key)
        assert page is not None
        return page

    def write(self, key: str, page: PageRecord | None) -> None:
        digest = digest_of(key)
        bucket = self.rig.keys.loc(digest)
        if page is None:
            self.client.hdel(bucket, field(digest))
        else:
            self.client.hset(bucket, field(digest), page.pack())

    def at(self, key: str) -> tuple[Shard, int]:
        page = self.record(key)
        shard = self.rig.pages.lookup.shard_of(page)
        assert shard is not None
        assert page.place is not None
        return shard, page.place.block

    def edit(self, shard: Shard, block: int, patches: dict[bytes, bytes | None]) -> None:
        """Change the lines of one block, and nothing else."""
        key = self.rig.keys.blocks(shard)
        stored: Any = self.client.hget(key, str(block))
        raw, count = blocks.edit(Block.unpack(stored).raw(), patches)
        packed = blocks.deflate(raw, count, fragments.uses(raw)).pack()
        self.client.hset(key, str(block), packed)

    def line(self, key: str) -> bytes:
        page = self.record(key)
        return self.rig.pages.lookup.current({key: page})[key]

    def lose_line(self, key: str) -> None:
        loc = key.removeprefix(NEWS)
        self.edit(*self.at(key), {fragments.key(loc): None})

    def state(self, shard: Shard, **changed: int) -> None:
        key = self.rig.keys.shards(shard.section)
        stored: Any = self.client.hget(key, str(shard.number))
        after = ShardState.unpack(stored)._replace(**changed)
        self.client.hset(key, str(shard.number), after.pack())

    def claim(self, ident: str, claim: Claim | None) -> None:
        owner = owner_of("", "", ident, "")
        event = self.rig.parse(page(f"{BASE}x", id=ident))
        owner = owner_of(event.source, event.kind, ident, event.locale)
        key = self.rig.keys.id(owner)
        if claim is None:
            self.client.hdel(key, field(owner))
        else:
            self.client.hset(key, field(owner), claim.pack())

    def far(self) -> int:
        return 1 << 60


FIRST = Shard("pages", 1)
P1, I1, N1, V1 = f"{BASE}p/1", f"{BASE}i/1", f"{BASE}n/1", f"{BASE}v/1"
G1, SOON, LATER = f"{BASE}g/1/en", f"{BASE}n/soon", f"{BASE}later"
GROUP = group_of("g1")


def delete_record(site: Site) -> None:
    site.write(P1, None)


def delete_record_of_an_owned_page(site: Site) -> None:
    site.write(I1, None)


def delete_record_of_a_translation(site: Site) -> None:
    site.write(G1, None)


def damage_record(site: Site) -> None:
    digest = digest_of(P1)
    site.client.hset(site.rig.keys.loc(digest), field(digest), b"junk")


def lose_a_line(site: Site) -> None:
    site.lose_line(P1)


def lose_a_line_of_a_translation(site: Site) -> None:
    site.lose_line(G1)


def lose_a_line_of_news(site: Site) -> None:
    site.lose_line(NEWS + N1)


def lose_a_block(site: Site) -> None:
    shard, block = site.at(P1)
    site.client.hdel(site.rig.keys.blocks(shard), str(block))


def lose_all_blocks(site: Site) -> None:
    site.client.delete(site.rig.keys.blocks(FIRST))


def write_a_line_of_a_deleted_page(site: Site) -> None:
    shard, block = site.at(f"{BASE}p/7")
    line = b"<url><loc>%b</loc></url>\n" % f"{BASE}p/7".encode()
    site.edit(shard, block, {fragments.key(f"{BASE}p/7"): line})


def write_a_line_twice(site: Site) -> None:
    site.edit(Shard("posts", 1), 0, {fragments.key(P1): site.line(P1)})


def move_a_record_away(site: Site) -> None:
    record = site.record(P1)
    assert record.place is not None
    site.write(P1, record._replace(place=Place(record.place.section, 1, 77)))


def put_a_record_nowhere(site: Site) -> None:
    site.write(P1, site.record(P1)._replace(place=None))


def put_a_lost_record_nowhere(site: Site) -> None:
    site.lose_line(P1)
    site.write(P1, site.record(P1)._replace(place=None))


def change_a_line(site: Site) -> None:
    line = site.line(P1).replace(b"</url>", b"<lastmod>2020-01-01</lastmod></url>")
    site.edit(*site.at(P1), {fragments.key(P1): line})


def miscount_a_shard(site: Site) -> None:
    site.state(FIRST, urls=3, size=9)


def forget_a_shard(site: Site) -> None:
    site.client.hdel(site.rig.keys.shards("pages"), "1")


def forget_a_shard_and_its_file(site: Site) -> None:
    site.client.hdel(site.rig.keys.shards("pages"), "2")
    site.client.hdel(site.rig.keys.files("pages"), "2")


def damage_a_shard_state(site: Site) -> None:
    site.client.hset(site.rig.keys.shards("pages"), "1", b"short")


def give_two_shards_one_ordinal(site: Site) -> None:
    site.state(Shard("pages", 2), ordinal=0)


def lower_the_number_of_shards(site: Site) -> None:
    site.client.hset(site.rig.keys.counters, "shards", "1")


def change_the_counter(site: Site) -> None:
    site.client.hincrby(site.rig.keys.counters, "urls", 5)


def lose_the_counter(site: Site) -> None:
    site.client.hdel(site.rig.keys.counters, "urls")


def set_a_tail_back(site: Site) -> None:
    for number in site.client.hkeys(site.rig.keys.tails):
        site.client.hset(site.rig.keys.tails, number, bytes(16))


def lose_the_tails(site: Site) -> None:
    site.client.delete(site.rig.keys.tails)


def lose_an_index_line(site: Site) -> None:
    site.client.hdel(site.rig.keys.index(0), "0")


def add_an_index_line(site: Site) -> None:
    line = fragments.index_line(f"{BASE}pages-99.xml", 1_767_225_600)
    site.client.hset(site.rig.keys.index(0), "99", line)


def miscount_a_block(site: Site) -> None:
    stored: Any = site.client.hget(site.rig.keys.blocks(FIRST), "0")
    block = Block.unpack(stored)._replace(urls=1, uses=7)
    site.client.hset(site.rig.keys.blocks(FIRST), "0", block.pack())


def miscount_a_file(site: Site) -> None:
    stored: Any = site.client.hget(site.rig.keys.files("pages"), "1")
    parts = stored.split(b" ")
    parts[2] = b"1"
    site.client.hset(site.rig.keys.files("pages"), "1", b" ".join(parts))


def forget_that_changes_wait(site: Site) -> None:
    site.rig.send(page("p/new"))
    site.rig.pump().apply_all()
    site.client.delete(site.rig.keys.dirty)


def misname_a_patch(site: Site) -> None:
    place = Place(1, 1, 0)
    name = digest_of(f"{BASE}somebody") + place.block.to_bytes(2, "big")
    site.client.hset(site.rig.keys.pending(FIRST), name, bytes(2) + b"U" + site.line(P1))
    site.rig.state.mark_dirty([FIRST])


def lose_a_claim(site: Site) -> None:
    site.claim("1", None)


def point_a_claim_elsewhere(site: Site) -> None:
    site.claim("1", Claim(site.far(), f"{BASE}p/2"))


def point_a_claim_to_the_page_of_another(site: Site) -> None:
    site.claim("99", Claim(site.far(), I1))


def empty_a_claim(site: Site) -> None:
    site.claim("1", Claim(1, ""))


def lose_an_owner(site: Site) -> None:
    site.write(I1, site.record(I1)._replace(owner=b""))


def drop_a_member(site: Site) -> None:
    site.client.hdel(site.rig.keys.cluster(GROUP), G1)


def drop_a_group(site: Site) -> None:
    site.client.delete(site.rig.keys.cluster(GROUP))


def add_a_member(site: Site) -> None:
    site.client.hset(site.rig.keys.cluster(GROUP), P1, GroupMember(1, ("pt",)).pack())


def change_the_languages_of_a_member(site: Site) -> None:
    site.client.hset(site.rig.keys.cluster(GROUP), G1, GroupMember(1, ("pt",)).pack())


def forget_the_group_of_a_page(site: Site) -> None:
    site.write(G1, site.record(G1)._replace(group=b""))


def change_the_links_of_a_page(site: Site) -> None:
    """Line and record agree; the others of its group do not list what it lists."""
    record, line = site.record(G1), site.line(G1)
    changed = fragments.with_alternates(line, (("en", G1), ("it", f"{BASE}p/2")))
    site.edit(*site.at(G1), {fragments.key(G1): changed})
    shard, _ = site.at(G1)
    stored: Any = site.client.hget(site.rig.keys.shards(shard.section), str(shard.number))
    size = ShardState.unpack(stored).size + len(changed) - len(line)
    site.state(shard, size=size)
    site.write(G1, record._replace(length=len(changed), digest=fragments.digest(changed)))


def forget_when_news_leaves(site: Site) -> None:
    site.client.zrem(site.rig.keys.expiry, NEWS + N1)


def put_off_when_a_video_leaves(site: Site) -> None:
    site.client.zadd(site.rig.keys.expiry, {V1: 1 << 50})


def forget_when_news_comes(site: Site) -> None:
    site.client.zrem(site.rig.keys.expiry, NEWS + SOON)


def forget_when_a_page_appears(site: Site) -> None:
    site.client.zrem(site.rig.keys.expiry, AT + LATER)


def put_off_when_news_comes(site: Site) -> None:
    site.client.zadd(site.rig.keys.expiry, {NEWS + SOON: 1 << 50})


def never_forget_a_deleted_page(site: Site) -> None:
    site.client.zrem(site.rig.keys.tombs, digest_of(f"{BASE}p/7"))


def never_forget_an_id(site: Site) -> None:
    site.client.delete(site.rig.keys.tombs)


def lose_a_feed_item(site: Site) -> None:
    site.client.hdel(site.rig.keys.feed_items, P1)


def put_a_deleted_page_into_the_feeds(site: Site) -> None:
    item: Any = site.client.hget(site.rig.keys.feed_items, P1)
    site.client.hset(site.rig.keys.feed_items, f"{BASE}p/7", item)
    site.client.zadd(site.rig.keys.feed, {f"{BASE}p/7": 1 << 45})


PLANTED: dict[Callable[[Site], None], set[str]] = {
    delete_record: {kinds.UNKNOWN_LINE, kinds.WRONG_FEED},
    delete_record_of_an_owned_page: {kinds.UNKNOWN_LINE, kinds.WRONG_FEED},
    delete_record_of_a_translation: {
        kinds.UNKNOWN_LINE,
        kinds.NOT_RECIPROCAL,
        kinds.WRONG_FEED,
    },
    damage_record: {kinds.UNKNOWN_LINE, kinds.WRONG_FEED},
    lose_a_line: {kinds.LOST_LINE, kinds.WRONG_COUNT, kinds.WRONG_FILE},
    lose_a_line_of_a_translation: {kinds.LOST_LINE, kinds.WRONG_COUNT, kinds.WRONG_FILE},
    lose_a_line_of_news: {kinds.LOST_LINE, kinds.WRONG_COUNT, kinds.WRONG_FILE},
    lose_a_block: {kinds.LOST_LINE, kinds.WRONG_COUNT, kinds.WRONG_FILE},
    lose_all_blocks: {kinds.LOST_LINE, kinds.WRONG_COUNT, kinds.WRONG_FILE},
    write_a_line_of_a_deleted_page: {kinds.UNKNOWN_LINE, kinds.WRONG_COUNT, kinds.WRONG_FILE},
    write_a_line_twice: {kinds.UNKNOWN_LINE, kinds.WRONG_COUNT, kinds.WRONG_FILE},
    move_a_record_away: {kinds.UNKNOWN_LINE, kinds.LOST_LINE},
    put_a_record_nowhere: {kinds.UNKNOWN_LINE, kinds.LOST_LINE},
    put_a_lost_record_nowhere: {kinds.LOST_LINE, kinds.WRONG_COUNT, kinds.WRONG_FILE},
    change_a_line: {kinds.OTHER_LINE, kinds.WRONG_COUNT},
    miscount_a_shard: {kinds.WRONG_COUNT},
    forget_a_shard: {kinds.WRONG_COUNT, kinds.WRONG_FILE},
    forget_a_shard_and_its_file: {kinds.WRONG_COUNT, kinds.WRONG_FILE},
    damage_a_shard_state: {kinds.WRONG_COUNT, kinds.WRONG_FILE},
    give_two_shards_one_ordinal: {kinds.WRONG_COUNT, kinds.WRONG_FILE},
    lower_the_number_of_shards: {kinds.WRONG_COUNT},
    change_the_counter: {kinds.WRONG_COUNT},
    lose_the_counter: {kinds.WRONG_COUNT},
    set_a_tail_back: {kinds.WRONG_COUNT},
    lose_the_tails: {kinds.WRONG_COUNT},
    lose_an_index_line: {kinds.WRONG_FILE},
    add_an_index_line: {kinds.WRONG_COUNT, kinds.WRONG_FILE},
    miscount_a_block: {kinds.WRONG_COUNT},
    miscount_a_file: {kinds.WRONG_FILE},
    forget_that_changes_wait: {kinds.NOT_QUEUED},
    misname_a_patch: {kinds.WRONG_COUNT},
    lose_a_claim: {kinds.WRONG_CLAIM},
    point_a_claim_elsewhere: {kinds.WRONG_CLAIM},
    point_a_claim_to_the_page_of_another: {kinds.WRONG_CLAIM},
    empty_a_claim: {kinds.WRONG_CLAIM, kinds.NOT_SCHEDULED},
    lose_an_owner: {kinds.WRONG_CLAIM},
    drop_a_member: {kinds.NOT_RECIPROCAL},
    drop_a_group: {kinds.NOT_RECIPROCAL},
    add_a_member: {kinds.NOT_RECIPROCAL},
    change_the_languages_of_a_member: {kinds.NOT_RECIPROCAL},
    forget_the_group_of_a_page: {kinds.NOT_RECIPROCAL},
    change_the_links_of_a_page: {kinds.NOT_RECIPROCAL, kinds.WRONG_COUNT},
    forget_when_news_leaves: {kinds.NOT_SCHEDULED},
    put_off_when_a_video_leaves: {kinds.NOT_SCHEDULED},
    forget_when_news_comes: {kinds.NOT_SCHEDULED},
    forget_when_a_page_appears: {kinds.NOT_SCHEDULED},
    put_off_when_news_comes: {kinds.NOT_SCHEDULED},
    never_forget_a_deleted_page: {kinds.NOT_SCHEDULED},
    never_forget_an_id: {kinds.NOT_SCHEDULED},
    lose_a_feed_item: {kinds.WRONG_FEED},
    put_a_deleted_page_into_the_feeds: {kinds.WRONG_FEED},
}


def test_a_site_of_everything_agrees_with_itself(rig: Rig) -> None:
    assert flaws(rig) == []
    rig.check()


def test_on_a_server_of_many_keys_the_same_is_found(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(rig)
    for plant in (lose_a_line, lose_an_owner, drop_a_member, never_forget_an_id):
        plant(site)
    few = flaws(rig)
    monkeypatch.setattr(stored_buckets, "FEW_KEYS", 0)

    many = flaws(rig)

    assert len(few) > 3
    assert many == few


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_what_is_planted_is_found_and_cured(rig: Rig, plant: Callable[[Site], None]) -> None:
    plant(Site(rig))

    met = {flaw.kind for flaw in flaws(rig)}

    assert met <= PLANTED[plant]
    assert met
    repaired = rebuild(rig)
    assert repaired.found.keys() & met
    assert repaired.left == []
    rig.settle()
    rig.check()


def test_check_and_verify_name_what_disagrees_until_it_is_rebuilt(
    rig: Rig,
) -> None:
    site = Site(rig)
    for plant in (delete_record, change_the_counter, drop_a_member, lose_a_claim):
        plant(site)

    named = found(rig)

    assert named[kinds.UNKNOWN_LINE] == {P1}
    assert named[kinds.WRONG_COUNT] == {"counters"}
    assert named[kinds.NOT_RECIPROCAL] == {G1}
    assert kinds.WRONG_CLAIM in named
    rebuild(rig)
    assert rebuild(rig) == Repaired({}, 0, 0, [])
    assert not found(rig)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_planted_together_is_cured(rig: Rig, seed: int) -> None:
    """Also where one difference hides another: a second rebuild finds what the first made plain."""
    rand = random.Random(seed)
    for plant in rand.sample(list(PLANTED), 8):
        with suppress(AssertionError, AttributeError, KeyError, TypeError, struct.error):
            plant(Site(rig))  # what is left to plant into

    repaired = rebuild(rig)

    assert repaired.found
    assert not repaired.left or rebuild(rig).left == []
    rig.settle()
    rig.check()


def test_a_lost_line_is_taken_from_its_file_where_that_has_it(rig: Rig) -> None:
    before = rig.listed()
    Site(rig).lose_line(P1)

    repaired = rebuild(rig)

    assert (repaired.lost, repaired.stale) == (0, 0)
    assert rig.listed() == before


def test_a_page_whose_line_is_nowhere_is_listed_again_by_its_next_event(rig: Rig) -> None:
    before = rig.listed()
    Site(rig).lose_line(P1)
    (rig.root / "pages-1.xml").write_bytes(b"spoilt")

    repaired = rebuild(rig)

    assert repaired.lost == 1
    assert rig.listed() == {loc: at for loc, at in before.items() if loc != P1}
    rig.do(page("p/1"))
    assert rig.listed() == before
    rig.check()


def test_a_line_without_its_record_gets_one_that_every_event_may_change(rig: Rig) -> None:
    Site(rig).write(I1, None)

    rebuild(rig)

    assert Site(rig).record(I1).owner
    rig.do({"type": "delete", "id": "1"})
    assert I1 not in rig.listed()
    rig.check()


def test_events_that_flow_meanwhile_are_no_finding_and_lose_nothing_to_a_rebuild(
    rig: Rig,
) -> None:
    stop = threading.Event()
    sent: list[int] = []
    other = Rig(rig.client, rig.root, **OPTIONS)

    def flow() -> None:
        rand = random.Random(1)
        with silence():
            while not stop.is_set():
                some = rand.sample(events(), 8) + rand.sample(deletes(), 2)
                rand.shuffle(some)
                other.send(*some)
                other.pump().run(1)
                sent.append(len(some))

    thread = threading.Thread(target=flow)
    thread.start()
    try:
        for _ in range(6):
            seen = len(sent)
            assert flaws(rig) == []
            audit = rig.audit()
            audit.rebuild()
            assert audit.repaired == Repaired({}, 0, 0, [])
            wait_until(lambda seen=seen: len(sent) > seen, "events to flow")
    finally:
        stop.set()
        thread.join()
    rig.settle()
    rig.check()


def test_differences_are_cured_while_events_flow_around_them(rig: Rig) -> None:
    """What a repair was decided on changes under it: it is decided again."""
    site = Site(rig)
    for plant in (delete_record, lose_a_claim, drop_a_member, miscount_a_shard):
        plant(site)
    other = Rig(rig.client, rig.root, **OPTIONS)
    audit = rig.audit()

    def meanwhile(_: int) -> None:
        other.send(
            page("p/2", lastmod=w3c_dates.from_epoch_s(next(times))), page(f"p/new-{next(times)}")
        )
        other.pump().apply_all()

    times = count(1_700_000_000)
    with silence():
        repaired = audit._repair.run(meanwhile)

    assert repaired.left == []
    rig.settle()
    rig.check()


def test_a_rebuild_that_is_killed_half_way_is_finished_by_the_next(rig: Rig) -> None:
    plants = (
        delete_record_of_a_translation, lose_a_block, lose_a_claim, add_a_member,
        change_the_counter, forget_a_shard,
    )  # fmt: skip
    steps, parts = math.inf, 5
    for part in range(parts):
        for plant in plants:
            plant(Site(rig))
        fuse = Fuse(steps * part // parts if part else math.inf)
        client = fused_client(rig.client, fuse)
        with suppress(CutError), silence():
            Rig(client, rig.root, **OPTIONS).audit().rebuild()
        client.connection_pool.disconnect()
        steps = steps if part else fuse.used
        assert fuse.burnt == bool(part)

        assert rebuild(rig).left == []
        rig.settle(seconds=60)
        rig.check()
