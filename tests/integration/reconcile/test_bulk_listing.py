"""Pages listed in bulk are what the same pages are as single events; which are, and which not."""

from __future__ import annotations

import cProfile
import json
import pstats
import re
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.events.event import parse
from shared.store.operations.event_log import EventLog
from shared.store.operations.queues import EVENTS, INTAKE, Queues
from tests.integration.independent import Published
from tests.integration.logs import silence
from tests.integration.pipeline import NAME, Pipeline
from tests.integration.reconcile.stated_pages import ORIGIN, Members, ndjson, page
from worker.reconcile import bulk_listing, statement_spool
from worker.reconcile.importer import Importer
from worker.sources import read

NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
OLD_MS = 1_700_000_000_000
"""A version whose distance to any arrival is more than records hold: equal in both sites."""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_spool, "BATCH", 5)


def through_the_inbox(store: redis.Redis) -> int:
    if not store.exists(f"{{{NAME}}}:inbox"):
        return 0
    info: Any = store.xinfo_stream(f"{{{NAME}}}:inbox")
    return int(info["entries-added"])


def records(store: redis.Redis) -> dict[bytes, Any]:
    """Records, claims, blocks and tails as stored: what does not depend on times of publishing."""
    kinds = rb"(loc|id):[0-9a-f]+$|tails$|tombs$|section:[a-z]+:blocks:|sections$"
    return {
        key: store.zrange(key, 0, -1) if key.endswith(b"tombs") else store.hgetall(key)
        for key in store.keys(f"{{{NAME}}}:*")
        if re.match(rb"\{site\}:(?:" + kinds + b")", key)
    }


def files(root: Path) -> dict[str, bytes]:
    return {
        path.name: re.sub(rb"(<sitemap>.*)<lastmod>.*?</lastmod>", rb"\1", path.read_bytes())
        for path in root.iterdir()
        if not path.name.startswith(".")
    }


def test_new_pages_in_bulk_and_as_single_events_end_in_the_same_bytes_and_records(
    store: redis.Redis, tmp_path: Path
) -> None:
    pages = [
        page(n, version=OLD_MS, section=("pages", "posts")[n % 7 == 3], priority="0.5")
        for n in range(200)
    ]
    options = {"shard_urls": 30, "sections": {"posts": {}}}
    bulk = Pipeline(store, tmp_path / "bulk", ORIGIN, **options)
    bulk.bring(ndjson(tmp_path / "p.ndjson", [p | {"version": str(OLD_MS)} for p in pages]))
    sent, stored = through_the_inbox(store), records(store)
    store.flushall()
    single = Pipeline(store, tmp_path / "single", ORIGIN, **options)
    with silence():
        for each in pages:
            single.inbox.accept([parse(each | {"type": "upsert"}, single.rules)], quiet=True)
            single.pump.apply_all()
    single.drain()

    assert sent == 0
    assert stored == records(store)
    assert files(bulk.root) == files(single.root)


@pytest.mark.parametrize("queue", [EVENTS, INTAKE])
def test_nothing_is_listed_in_bulk_while_a_queue_is_paused(
    store: redis.Redis, tmp_path: Path, queue: str
) -> None:
    site = Pipeline(store, tmp_path / "public", ORIGIN)
    Queues(store, NAME).pause(queue, "ann")
    source = ndjson(tmp_path / "p.ndjson", [page(n) for n in range(7)])

    if queue == INTAKE:
        with pytest.raises(Exception, match="closed"):
            site.bring(source)
    else:
        with pytest.raises(AssertionError):  # of `drain`: the events wait
            site.bring(source)

    assert site.pump.pages.lookup.count() == 0
    assert through_the_inbox(store) == (0 if queue == INTAKE else 7)


@pytest.mark.parametrize("options", [{"feed": True}, {"sections": {"posts": {"paths": ["/1*"]}}}])
def test_pages_of_sites_with_feeds_or_rules_go_through_the_inbox(
    store: redis.Redis, tmp_path: Path, options: Members
) -> None:
    site = Pipeline(store, tmp_path / "public", ORIGIN, **options)

    site.bring(ndjson(tmp_path / "p.ndjson", [page(n) for n in range(7)]))

    assert through_the_inbox(store) == 7
    assert len(Published(site.root, ORIGIN).all()) == 7


def sent_to_the_inbox(store: redis.Redis, site: Pipeline, source: str) -> int:
    """Events in the inbox after an import while no worker is there."""
    before = through_the_inbox(store)
    whole = Importer(store, NAME, site.settings.sites[NAME], None)
    whole.run(
        source, read(source), on_remark=print, report=lambda _: None, drain=lambda: None
    )  # fmt: skip
    return through_the_inbox(store) - before


def test_pages_wait_in_the_inbox_behind_an_event_that_is_not_applied(
    store: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_listing, "PATIENCE_S", 0.05)
    site = Pipeline(store, tmp_path / "public", ORIGIN)
    site.inbox.accept([parse(page(3) | {"type": "delete"}, site.rules)])

    assert sent_to_the_inbox(store, site, ndjson(tmp_path / "p.ndjson", [page(0), page(1)])) == 2
    assert site.pump.pages.lookup.count() == 0


def test_pages_that_a_damaged_state_refuses_go_into_the_inbox(
    store: redis.Redis, tmp_path: Path
) -> None:
    """RELIABILITY F28: the import ends, and the events are tried and told like any others."""
    site = Pipeline(store, tmp_path / "public", ORIGIN)
    store.set(f"{{{NAME}}}:dirty", "no zset")

    assert sent_to_the_inbox(store, site, ndjson(tmp_path / "p.ndjson", [page(0), page(1)])) == 2
    store.delete(f"{{{NAME}}}:dirty")
    site.drain()
    assert len(Published(site.root, ORIGIN).all()) == 2


def test_of_two_pages_with_one_id_the_later_is_listed(store: redis.Redis, tmp_path: Path) -> None:
    site = Pipeline(store, tmp_path / "public", ORIGIN)
    image = [{"loc": f"{ORIGIN}/i.png"}]
    pages = [page(n, **({"images": image} if n == 1 else {})) for n in range(6)]
    pages += [page(7, id="id-1"), page(8, id="id-0"), page(9, id="id-2"), page(10, id="id-2")]

    site.bring(ndjson(tmp_path / "p.ndjson", pages))

    listed = {int(loc.rpartition("/")[2]) for loc in Published(site.root, ORIGIN).all()}
    assert listed == {3, 4, 5, 7, 8, 10}


def test_the_event_log_holds_what_was_listed_in_bulk(store: redis.Redis, tmp_path: Path) -> None:
    site = Pipeline(store, tmp_path / "public", ORIGIN)

    site.bring(ndjson(tmp_path / "p.ndjson", [page(n) for n in range(7)]))

    logged = list(EventLog(store, NAME).latest())
    decided = {past.subject: json.loads(past.payload) for past in logged if past.payload}
    assert decided.keys() == {f"{ORIGIN}/{n}" for n in range(7)}
    assert {event["id"] for event in decided.values()} == {f"id-{n}" for n in range(7)}
    counted = store.hgetall(f"{{{NAME}}}:stats")
    assert (counted[b"accepted"], counted[b"changed"]) == (b"7", b"7")


@pytest.mark.parametrize(("kind", "most"), [("sitemap", 85), ("ndjson", 130)])
def test_a_new_page_takes_few_calls_of_python(
    store: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, most: int
) -> None:
    """From the source to the record, those of C included; 400 while each page was an event."""
    monkeypatch.setattr(statement_spool, "BATCH", 500)
    site = Pipeline(store, tmp_path / "public", ORIGIN)
    pages = [page(n) for n in range(2_000)]
    source = ndjson(tmp_path / "p.ndjson", pages)
    if kind == "sitemap":
        urls = "".join(
            f"<url><loc>{p['loc']}</loc><lastmod>{p['lastmod']}</lastmod></url>" for p in pages
        )
        source = str(tmp_path / "s.xml")
        Path(source).write_text(f'<urlset xmlns="{NS}">{urls}</urlset>')
    whole = Importer(store, NAME, site.settings.sites[NAME], None)
    profile = cProfile.Profile()

    done = profile.runcall(
        whole.run, source, read(source), on_remark=print, report=lambda _: None,
        drain=lambda: None,
    )  # fmt: skip

    assert done.sent == 2_000
    calls = vars(pstats.Stats(profile))["total_calls"]
    assert calls / 2_000 < most
