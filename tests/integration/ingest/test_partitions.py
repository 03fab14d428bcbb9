"""The same events, in any batches and by any workers, end in the same files: what the model says.

Three sites get the same accepted events. `one` settles each by itself, `all` settles them in order
in batches of any size, `mix` has three workers that hold batches and settle them in any order, two
at once at times. Groups of many languages, news, videos, feeds, moves by id and sections among
them. `SITEMAPD_EXAMPLES=1000` explores that many new histories; without it a fixed set is run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from shared.domain.page_record import Arrival
from shared.sitemap import w3c_dates
from shared.store.inbox.inbox import InboxEntry
from shared.telemetry.tracing import Trail
from tests import feeds as reader
from tests.integration.clocked import Clock, Clocked
from tests.integration.reconcile import wanted
from tests.integration.reconcile.wanted import HOUR, Accepted
from tests.integration.rig import BASE
from tests.integration.senders import swap
from tests.integration.worker.explored import explore
from worker.ingest.event_processor import EventProcessor

ROOMY: dict[str, Any] = {
    "feed": True, "feed_entries": 100,
    "sections": {
        "posts": {"paths": ["/q/*"]}, "articles": {"split": "language"},
        "nachrichten": {"news": True, "languages": ["de"]}, "news": {"news": True},
    },
}  # fmt: skip
TIGHT: dict[str, Any] = ROOMY | {"shard_urls": 3, "block_urls": 2, "block_size": 900}

LANGS = (["en", "x-default"], ["en"], ["de"], ["fr"], ["it"], ["de-AT", "fr"], ["ja"])
CODES = ("de", "en", "fr")
WORKERS = ("w1", "w2", "w3")
NEVER_NEWS = frozenset({"news", "section"})


def _link(code: str, path: str) -> dict[str, str]:
    return {"hreflang": code, "href": BASE + path}


def contents() -> st.SearchStrategy[dict[str, Any]]:
    """Members of an event. Hours count from the beginning; see Machine.dressed."""
    links = st.one_of(
        st.just({}),
        st.fixed_dictionaries({"group": st.sampled_from("hhg"), "lang": st.sampled_from(LANGS)}),
        st.just({"alternates": [_link("de", "c/a"), _link("en", "p/0")]}),
    )
    others = st.fixed_dictionaries(
        {},
        optional={
            "lastmod": st.sampled_from(
                ("2020-01-01", "2021-02-03T04:05:06Z", "2022-03-04T05:06:07Z")
            ),
            "title": st.sampled_from(("A title", "<Another> & title")),
            "images": st.just([{"loc": f"{BASE}i.png"}]),
            "videos": st.lists(st.sampled_from((None, -1, 2, 9)), min_size=1, max_size=2),
            "times": st.sampled_from(((-3, None), (2, None), (None, 3), (2, 5), (-1, 4), (3, 4))),
            "news": st.tuples(st.sampled_from((-50, -47, -40, 3)), st.sampled_from(("de", "en"))),
        },
    )
    return st.builds(lambda some, more: some | more, links, others)


saved = st.tuples(st.integers(0, 8), st.sampled_from(("pages", "posts")), contents())


class Machine(RuleBasedStateMachine):
    """Three sites, their senders and their workers."""

    client: redis.Redis
    options: dict[str, Any]

    def __init__(self) -> None:
        super().__init__()
        self.client.flushall()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.root = Path(tempfile.mkdtemp(prefix="sitemapd-machine-", dir=memory))
        self.start = time.time_ns() // 1_000_000
        self.clock, self.version = Clock(self.start), self.start - 24 * HOUR
        self.one, self.all, self.mix = (
            Clocked(self.clock, self.client, self.root / name, name=name, **options)
            for name, options in (("one", ROOMY), ("all", ROOMY), ("mix", self.options))
        )
        self.sites = (self.one, self.all, self.mix)
        for site in self.sites:
            site.root.mkdir()
        self.accepted: list[Accepted] = []
        self.late: list[dict[str, Any]] = []
        self.held_up, self.titles = 0, 0
        self.slugs: dict[str, int] = {}
        self.hands: list[tuple[str, list[InboxEntry]]] = []

    # What senders do.

    @rule(saves=st.lists(saved, min_size=1, max_size=5))
    def save(self, saves: list[tuple[int, str, dict[str, Any]]]) -> None:
        self.send(*(self.plain(page, of) | self.dressed(content) for page, of, content in saves))

    @rule(page=st.integers(0, 8), content=contents())
    def save_now(self, page: int, content: dict[str, Any]) -> None:
        """Without a version: the order of arrival counts."""
        self.send(self.plain(page, "posts") | self.dressed(content), versions=False)

    @rule(
        group=st.sampled_from("ggh"),
        before=st.sets(st.sampled_from(CODES)),
        steps=st.lists(
            st.tuples(st.sampled_from(CODES), st.sampled_from(("add", "edit", "drop", "part"))),
            min_size=2, max_size=6,
        ),
    )  # fmt: skip
    def translate(self, group: str, before: set[str], steps: list[tuple[str, str]]) -> None:
        """Languages of one page come, change, go and part in one request, and in one batch."""
        self.send(*(self.version_in(group, code, "add") for code in sorted(before)))
        self.settle(self.all, 100)
        self.send(*(self.version_in(group, code, step) for code, step in steps))
        self.settle(self.all, 100)

    @rule(page=st.integers(0, 8), how=st.sampled_from(("delete", "noindex", "canonical")))
    def remove(self, page: int, how: str) -> None:
        kind = {"delete": {"type": "delete"}, "noindex": {"noindex": True}}
        elsewhere = {"canonical": "https://elsewhere.example/"}
        self.send({"type": "upsert", "loc": path_of(page)} | kind.get(how, elsewhere))

    @rule(ident=st.integers(0, 4), slug=st.sampled_from("abcdef"), content=contents())
    def save_in_the_cms(self, ident: int, slug: str, content: dict[str, Any]) -> None:
        """A page gets a free slug."""
        if self.slugs.get(slug, ident) == ident:
            self.slugs = {s: i for s, i in self.slugs.items() if i != ident} | {slug: ident}
            self.send(self.cms(ident, slug, content))

    @rule(data=st.data(), content=contents())
    def swap_in_the_cms(self, data: st.DataObject, content: dict[str, Any]) -> None:
        """Two pages change places; either save may come first."""
        two = swap(self.slugs, data) if len(self.slugs) > 1 else []
        saves = [self.cms(self.slugs[slug], slug, content) for slug in two]
        self.send(*data.draw(st.permutations(saves)))

    @rule(ident=st.integers(0, 4), named=st.booleans())
    def trash_in_the_cms(self, ident: int, named: bool) -> None:
        for slug in [slug for slug, owner in self.slugs.items() if owner == ident]:
            self.slugs.pop(slug)
            trashed = {"type": "delete", "id": str(ident), "loc": f"{BASE}c/{slug}"}
            self.send({name: trashed[name] for name in trashed if named or name != "loc"})

    @rule(data=st.data(), count=st.integers(1, 4))
    def repeat(self, data: st.DataObject, count: int) -> None:
        """What was sent with a version is sent again, in any order."""
        sent = [one.event for one in self.accepted if "version" in one.event]
        if sent:
            self.deliver([dict(data.draw(st.sampled_from(sent))) for _ in range(count)])

    @rule(count=st.integers(1, 3))
    def hold_up(self, count: int) -> None:
        """The next deliveries will be late: see `deliver_late`."""
        self.held_up = count

    @rule(data=st.data())
    def deliver_late(self, data: st.DataObject) -> None:
        late, self.late = self.late, []
        self.deliver(list(data.draw(st.permutations(late))))

    # What happens to workers.

    @rule(count=st.integers(1, 7))
    def settle_together(self, count: int) -> None:
        self.settle(self.all, count)

    @rule(worker=st.sampled_from(WORKERS), count=st.integers(1, 7))
    def take_in_hand(self, worker: str, count: int) -> None:
        if batch := self.mix.inbox.read(worker, count):
            self.hands.append((worker, batch))

    @rule(data=st.data())
    def settle_in_hand(self, data: st.DataObject) -> None:
        if self.hands:
            self.apply(*self.hands.pop(data.draw(st.integers(0, len(self.hands) - 1))))

    @rule(data=st.data())
    def settle_at_once(self, data: st.DataObject) -> None:
        """Two workers at the same time."""
        two = list(data.draw(st.permutations(self.hands)))[:2]
        self.hands = [hand for hand in self.hands if hand not in two]
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(lambda hand: self.apply(*hand), two))

    @rule(site=st.integers(0, 2))
    def publish(self, site: int) -> None:
        self.sites[site].pump().publisher.publish()

    @rule(hours=st.integers(1, 6), swept=st.booleans())
    def pass_time(self, hours: int, swept: bool) -> None:
        """`mix` may still hold events of before."""
        self.settle(self.one, 1)
        self.settle(self.all, 100)
        self.clock.ms += hours * HOUR
        for site in self.sites if swept else self.sites[:2]:
            site.pump().expire()

    @rule(data=st.data())
    def check(self, data: st.DataObject) -> None:
        self.deliver_late(data)
        self.settle(self.one, 1)
        self.settle(self.all, 100)
        while self.hands:
            self.settle_in_hand(data)
        for site in self.sites:
            site.pump().expire()
            site.settle()
        self.check_files()
        self.check_decisions()

    def check_files(self) -> None:
        expected = wanted.entries(self.accepted, self.clock.ms)
        for site in self.sites:
            assert wanted.read(site.shard_files()) == expected, site.name
        assert self.one.shard_files() == self.all.shard_files()
        assert lines(self.one) == lines(self.mix)
        if self.options is ROOMY:
            assert self.one.shard_files() == self.mix.shard_files()
        fed = wanted.feed(self.accepted, self.clock.ms)
        for site in self.sites:
            path = site.root / "atom.xml"
            found = reader.atom(path.read_bytes()) if path.exists() else []
            assert [tuple(each) for each in found] == [tuple(each) for each in fed], site.name

    def check_decisions(self) -> None:
        """Each event is told the same of, whatever it shared a batch with."""
        one, together = (
            {event[0]: event[1:] for _, batch in site.decided() for event in batch if event[0]}
            for site in (self.one, self.all)
        )
        assert one == together

    def teardown(self) -> None:
        try:
            self.deliver(self.late)
            self.late = []
            self.hands, hands = [], self.hands
            for hand in hands:
                self.apply(*hand)
            self.settle(self.mix, 3)
            self.settle(self.one, 1)
            self.settle(self.all, 100)
            for site in self.sites:
                site.pump().expire()
                site.settle()
            self.check_files()
            self.check_decisions()
            self.mix.check()
        finally:
            shutil.rmtree(self.root)

    # The means.

    def plain(self, page: int, section: str) -> dict[str, Any]:
        """Every third page says its section each time, the others never."""
        named = {"section": section} if page % 3 == 0 else {}
        return {"type": "upsert", "loc": path_of(page), **named}

    def cms(self, ident: int, slug: str, content: dict[str, Any]) -> dict[str, Any]:
        """Half of the pages are in a section that is split by language."""
        item = {"type": "upsert", "id": str(ident), "loc": f"{BASE}c/{slug}"}
        members = self.dressed(content)
        if ident % 2:
            return item | members | {"section": "posts"}
        return item | {"lang": ["it"]} | members | {"section": "articles"}

    def version_in(self, group: str, code: str, step: str) -> dict[str, Any]:
        page = {"type": "upsert", "loc": f"{BASE}{code}/{group}"}
        if step == "drop":
            return page | {"type": "delete"}
        content: dict[str, Any] = {"group": group, "lang": [code]}
        if code == "en":
            content["lang"] = ["en", "x-default"]
        if step == "edit":
            content["lastmod"] = "2026-01-02"
        return page | self.dressed({} if step == "part" else content)

    def dressed(self, content: dict[str, Any]) -> dict[str, Any]:
        """`content` with its dates. Unless it says when it changed, its title is its own: feeds
        cannot know which of two equal events it was that changed a page.
        """
        found = dict(content)
        if "T" not in found.get("lastmod", ""):
            self.titles += 1
            found["title"] = f"Title {self.titles}"
        for name, hours in zip(("publish_at", "expires"), found.pop("times", ()), strict=False):
            if hours is not None:
                found[name] = self.moment(hours)
        if "videos" in found:
            found["videos"] = [self.video(hours) for hours in found["videos"]]
        if "news" in found:
            hours, language = found["news"]
            found["news"] = {
                "publication": {"name": "The Example", "language": language},
                "publication_date": self.moment(hours), "title": f"News of hour {hours}",
            }  # fmt: skip
        return found

    def video(self, hours: int | None) -> dict[str, Any]:
        over = {} if hours is None else {"expiration_date": self.moment(hours)}
        return {
            "thumbnail_loc": f"{BASE}t.png", "content_loc": f"{BASE}v.mp4",
            "title": f"Until {hours}", "description": "A video", **over,
        }  # fmt: skip

    def moment(self, hours: int) -> str:
        return w3c_dates.from_epoch_s(self.start // 1000 + hours * 3600)

    def send(self, *items: dict[str, Any], versions: bool = True) -> None:
        for item in items if versions else ():
            self.version += 1_000
            item["version"] = self.version
        if self.held_up and versions:
            self.held_up -= 1
            self.late += items
        else:
            self.deliver(list(items))

    def deliver(self, items: list[dict[str, Any]]) -> None:
        """Accepted by one site, and by the others at the same instant."""
        if not items:
            return
        ids = self.one.send(*items)
        for ident, item in zip(ids, items, strict=True):
            self.accepted.append(Accepted(item, *Arrival.of(ident)))
            ((_, fields),) = self.client.xrange(self.one.keys.inbox, ident, ident)
            for site in (self.all, self.mix):
                self.client.xadd(site.keys.inbox, fields, id=ident)

    def settle(self, site: Clocked, count: int) -> None:
        while batch := site.inbox.read("w1", count):
            self.apply("w1", batch, site)

    def apply(self, worker: str, batch: list[InboxEntry], site: Clocked | None = None) -> None:
        of = site or self.mix
        processor = EventProcessor(
            self.client, of.name, of.site, worker, Trail(of.name), self.clock
        )
        assert processor.process(batch), "an event failed"


def path_of(page: int) -> str:
    return f"{BASE}{'q' if page % 3 == 1 else 'p'}/{page}"


def lines(site: Clocked) -> dict[str, set[bytes]]:
    """The entries of each section, to the byte."""
    found: dict[str, set[bytes]] = {}
    for name, content in site.shard_files().items():
        urls = {line for line in content.splitlines() if line.startswith(b"<url>")}
        found.setdefault(name.rpartition("-")[0], set()).update(urls)
    return found


@pytest.fixture
def hasty(store: redis.Redis) -> Iterator[redis.Redis]:
    """A server that waits for no disk: hundreds of flushes are not what is tried here."""
    store.config_set("appendfsync", "no")
    yield store
    store.config_set("appendfsync", "always")


@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    ("options", "examples"), [(ROOMY, 30), (TIGHT, 30)], ids=["roomy", "tight"]
)
def test_any_partition_into_batches_and_workers_leaves_what_the_model_says(
    hasty: redis.Redis, options: dict[str, Any], examples: int
) -> None:
    """DESIGN 8.3, PROTOCOL H2 to H5, W4, V6, F11."""

    class OfTheseOptions(Machine):
        client = hasty

    OfTheseOptions.options = options
    explore(OfTheseOptions, examples=examples, steps=30)
