"""What is kept for people: decisions with their events, lines, counts, each within its room."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.sitemap import fragments
from shared.sitemap.blocks import split
from shared.sitemap.shards import Shard
from shared.store import retention
from shared.store.counting.counters import Counters
from shared.store.operations.event_log import DECIDED, EventLog, unpack
from shared.store.pages.changes import log_entry
from shared.store.publishing.publish_batch import PublishLease
from shared.store.publishing.revisions import Revisions
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig
from worker.ingest.inbox_consumer import InboxConsumer

ENGINE = "{demo}:notify:bing"


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


def history(rig: Rig) -> EventLog:
    return EventLog(rig.client, rig.name)


@pytest.mark.parametrize("count", [1, 500])
def test_each_decided_event_is_kept_with_what_was_accepted(
    store: redis.Redis, tmp_path: Path, count: int
) -> None:
    rig = Rig(store, tmp_path)
    ids = rig.send(*(upsert(f"p/{n}", id=n) for n in range(count)))
    stored = {ident.decode(): fields[b"e"] for ident, fields in store.xrange(rig.keys.inbox)}
    rig.settle()

    found = list(history(rig).latest())
    assert [past.event for past in found] == ids[::-1]
    assert {past.event: past.payload for past in found} == stored
    assert {(past.kind, past.reason, past.changed) for past in found} == {(DECIDED, "added", True)}
    assert [past.subject for past in found][-1] == f"{BASE}p/0"
    (past,) = history(rig).of_event(ids[0])
    assert (past.event, past.payload) == (ids[0], stored[ids[0]])


def test_an_event_that_fails_is_no_decision_and_its_neighbours_are(
    store: redis.Redis, tmp_path: Path
) -> None:
    """RELIABILITY F16."""
    rig = Rig(store, tmp_path)
    (before,) = rig.send(upsert("a"))
    poison: Any = store.xadd(rig.keys.inbox, {"e": b'{"v":1,"type":"upsert","loc":7}'})
    (after,) = rig.send(upsert("b"))
    rig.settle()

    assert {past.event for past in history(rig).latest()} == {before, after}
    assert history(rig).of_event(poison.decode()) == []
    assert [fields[b"id"] for _, fields in store.xrange(rig.keys.dead)] == [poison]
    assert Counters(store, rig.name).totals()[0]["failed"] == 1


def test_a_note_that_is_damaged_is_no_history_and_no_fault() -> None:
    note = log_entry([("1-0", "a", "added", True)], [b"{}"])

    assert unpack(note) == ([("1-0", "a", "added", True)], [b"{}"])
    assert unpack(note[:-3]) == unpack(b"") == ([], [])


@pytest.mark.parametrize("seed", range(4))
def test_revisions_are_the_difference_of_the_files_before_and_after(
    store: redis.Redis, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    rig = Rig(store, tmp_path, shard_urls=12, block_urls=4, sections={"posts": {}})
    seen, before = "0", _lines(rig)
    for _ in range(8):
        batch = []
        for n in dice.sample(range(40), dice.choice((1, 3, 12))):
            if dice.random() < 0.3:
                batch.append({"type": "delete", "loc": f"p/{n}"})
            else:
                section = dice.choice(("pages", "posts"))
                day = f"2026-01-{dice.randrange(1, 29):02}"
                batch.append(upsert(f"p/{n}", section=section, lastmod=day))
        rig.send(*batch)
        rig.pump().run()
        after = _lines(rig)
        for revision in reversed(list(Revisions(store, rig.name).latest())):
            if _order(revision.at) > _order(seen):
                seen = revision.at
                lines = before.setdefault(str(revision.shard), {})
                assert revision.lines is not None
                assert revision.changed == len(revision.lines)
                for line in revision.lines:
                    assert lines.pop(line.loc, None) == line.before
                    if line.after is not None:
                        lines[line.loc] = line.after
        assert {name: of for name, of in before.items() if of} == after
        before = {name: dict(of) for name, of in after.items()}
    assert seen != "0"


def test_a_line_that_changed_and_changed_back_before_a_publish_is_in_no_revision(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    rig.do(upsert("a"), upsert("b"))
    for day in ({"lastmod": "2026-01-01"}, {}):
        rig.send(upsert("a", **day))
        rig.pump().apply_all()
    rig.do(upsert("b", lastmod="2026-01-01"))

    newest = next(Revisions(store, rig.name).latest())
    assert (newest.changed, [line.loc for line in newest.lines or ()]) == (1, [f"{BASE}b"])


def _order(at: str) -> tuple[int, int]:
    ms, _, number = at.partition("-")
    return int(ms), int(number or 0)


def _lines(rig: Rig) -> dict[str, dict[str, bytes]]:
    """Shard -> loc -> line, as in the files."""
    found = {}
    for name, content in rig.shard_files().items():
        section, _, number = name.rpartition("-")
        raw = content[content.index(b"<url>") : -len(fragments.URLSET_END)]
        shard = str(Shard(section, int(number)))
        found[shard] = {fragments.loc_of(line): line for line in split(raw)}
    return found


class Telling:
    """A site whose changes the search engine `bing` is told of."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig

    def accept(self, *items: dict[str, Any], quiet: bool = False) -> None:
        self.rig.inbox.accept([self.rig.parse(item) for item in items], quiet=quiet)

    def pump(self, consumer: str = "w1") -> InboxConsumer:
        return self.rig.pump(consumer)

    def run(self) -> None:
        with silence():
            self.pump().run()
        assert self.rig.quiet()

    def told(self) -> set[str]:
        found: Any = self.rig.client.zrange(ENGINE, 0, -1)
        return {loc.decode().removeprefix(BASE) for loc in found}


@pytest.fixture
def telling(store: redis.Redis, tmp_path: Path) -> Telling:
    return Telling(Rig(store, tmp_path, notify={"bing": {"key": "0123456789"}}))


def test_engines_are_told_of_a_change_once_it_is_published_and_not_before(
    telling: Telling,
) -> None:
    telling.accept(upsert(f"{BASE}a"))
    telling.pump().apply_all()
    assert telling.told() == set()

    telling.run()

    assert telling.told() == {"a"}


def test_engines_are_not_told_of_quiet_changes_nor_of_what_changes_nothing(
    telling: Telling,
) -> None:
    telling.accept(upsert(f"{BASE}a"), quiet=True)
    telling.run()
    telling.accept(upsert(f"{BASE}a"))
    telling.run()

    assert telling.told() == set()


@pytest.mark.parametrize("quiet", [(False, True), (True, False)])
def test_a_quiet_change_before_the_publish_unsays_no_other(
    telling: Telling, quiet: tuple[bool, bool]
) -> None:
    for day, each in enumerate(quiet, 1):
        telling.accept(upsert(f"{BASE}a", lastmod=f"2026-01-0{day}"), quiet=each)
        telling.pump().apply_all()
    telling.accept(upsert(f"{BASE}b"), quiet=True)
    telling.run()

    assert telling.told() == {"a"}


def test_what_a_publisher_gave_back_is_still_told(telling: Telling) -> None:
    """A publisher that took the patches and died; a quiet change came after them."""
    telling.accept(upsert(f"{BASE}a"))
    telling.pump().apply_all()
    assert telling.rig.begin("dead") is not None
    telling.accept(upsert(f"{BASE}a", lastmod="2026-01-01"), quiet=True)
    telling.pump().apply_all()
    telling.rig.lease.release("dead")

    telling.run()

    assert telling.told() == {"a"}


class Meanwhile(PublishLease):
    """Somebody changes something while a publisher has read what it will write."""

    def __init__(self, telling: Telling, change: Callable[[], None]) -> None:
        super().__init__(telling.rig.client, telling.rig.name)
        self.change = change

    def begun(self, begin: Any) -> Any:
        found = super().begun(begin)
        self.change()
        return found


def test_what_is_held_and_changed_quietly_meanwhile_is_told_once_it_is_let_go(
    telling: Telling,
) -> None:
    """RELIABILITY T32: patches that are given back keep their mark, under newer ones, too."""
    telling.accept(*(upsert(f"{BASE}{n}") for n in range(120)), quiet=True)
    telling.run()
    telling.accept(*({"type": "delete", "loc": f"{BASE}{n}"} for n in range(100)))
    pump = telling.pump()
    pump.apply_all()

    def change() -> None:
        telling.accept(upsert(f"{BASE}7", lastmod="2026-01-01"), quiet=True)
        telling.pump("w2").apply_all()

    pump.publisher._lease = Meanwhile(telling, change)
    held = pump.publisher.publish()
    assert held is not None
    assert held.held == [Shard("pages", 1)]
    assert telling.told() == set()

    telling.rig.state.shrink.confirm({Shard("pages", 1): 21})
    telling.run()

    assert telling.told() == {str(n) for n in range(100)}
    assert telling.rig.listed()[f"{BASE}7"] == "2026-01-01"


def test_a_page_that_moved_is_told_with_both_its_urls(telling: Telling) -> None:
    telling.accept(upsert(f"{BASE}a", id=1), quiet=True)
    telling.run()
    telling.accept(upsert(f"{BASE}b", id=1))
    telling.run()

    assert telling.told() == {"a", "b"}


def test_minutes_are_the_counts_of_each_and_those_of_nothing_are_there(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    rig.do(upsert("a"), upsert("b"))
    rig.do(upsert("a"))
    stats = Counters(store, rig.name)
    totals, waits = stats.totals()
    minutes = stats.minutes(3)

    assert {name: totals[name] for name in ("accepted", "changed", "unchanged", "publishes")} == {
        "accepted": 3, "changed": 2, "unchanged": 1, "publishes": 1,
    }  # fmt: skip
    assert waits.files == 1
    assert [each.minute for each in minutes] == [minutes[-1].minute - n for n in (2, 1, 0)]
    assert sum(each.counts.get("changed", 0) for each in minutes) == 2
    assert sum(each.waits.files for each in minutes) == 1
    assert all(store.ttl(key) > 0 for key in store.scan_iter("{demo}:pulse:*"))
    far = stats.minutes(2, until_s=60.0 * 10_000)
    assert [each.minute for each in far] == [9_999, 10_000]
    assert not any(each.counts for each in far)


def test_what_takes_too_much_room_loses_its_oldest_part(store: redis.Redis) -> None:
    key = "{demo}:recent"
    pipe = store.pipeline()
    for n in range(3_000):
        pipe.xadd(
            key, {"ignored": json.dumps({"reasons": [str(n)], "x": random.randbytes(200).hex()})}
        )
    pipe.execute()
    used: Any = store.memory_usage(key)

    assert retention.trim(store, "demo", used + 1) == 0
    gone = retention.trim(store, "demo", used // 3)

    assert 1_700 < gone < 2_300, "two thirds, in whole nodes of the stream"
    assert next(EventLog(store, "demo").latest()).reason == "2999"
    assert len(list(EventLog(store, "demo").latest())) == 3_000 - gone
