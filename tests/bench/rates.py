"""How many events a second: applied, drained, published."""

from __future__ import annotations

import time
from collections.abc import Sequence

import redis

from shared.batches import batches
from shared.domain.batch_state import Policy
from shared.domain.decide_batch import ArrivedEvent, decide_all
from shared.domain.page_record import Arrival, bucket_of, digest_of, field_of
from shared.domain.routing import Routing
from shared.events.event import Event
from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from tests.bench.bed import LOAD, Bed
from tests.bench.corpus import Corpus
from tests.bench.report import Figure, Report, compared
from tests.bench.scale import Scale

APPLIED = 100


def rates(report: Report, bed: Bed, corpus: Corpus, scale: Scale) -> None:
    """All rates, over the same pages in shards of 10,000."""
    pages = list(corpus.pages(scale.events))
    bed.load(pages)
    applied(report, bed, [corpus.changed(page) for page in pages[: scale.events // 10]])
    for what, step in (("drained (read, decide, apply)", drain), ("published", publish)):
        for batch in batches([corpus.changed(page) for page in pages], LOAD):
            bed.pump.inbox.accept(batch)
        began = time.perf_counter()
        step(bed)
        rate = scale.events / (time.perf_counter() - began)
        report.add(Figure(f"{what}, {scale.events:,} events over as many URLs", "/s", rate))


def applied(report: Report, bed: Bed, events: Sequence[Event]) -> None:
    """Pages.apply alone, next to one bare HSET for each event in a pipeline."""
    pairs = []
    arrived = time.time_ns() // 1_000_000
    for batch in batches(events, APPLIED):
        read = bed.pages.read(batch)
        events_in = [ArrivedEvent(e, Arrival(arrived, place)) for place, e in enumerate(batch)]
        _, after = decide_all(read.state, events_in, Policy(Routing({})))
        began = time.perf_counter()
        assert bed.pages.apply(read, after)
        took = time.perf_counter() - began
        pairs.append((len(batch) / took, len(batch) / _bare(bed.client, batch)))
    name = f"applied, batches of {APPLIED}"
    report.add(compared(name, "/s", pairs, "bare pipelined HSET each", at_least=0.6))


def _bare(client: redis.Redis, batch: Sequence[Event]) -> float:
    began = time.perf_counter()
    pipe = client.pipeline(transaction=False)
    for event in batch:
        assert event.loc is not None
        digest = digest_of(event.loc)
        fragment = fragments.render(Entry(event.loc, event.lastmod))
        pipe.hset(f"bare:{bucket_of(digest):x}", field_of(digest), fragment)
    pipe.execute()
    return time.perf_counter() - began


def drain(bed: Bed) -> None:
    """What the pump does with its inbox, without publishing."""
    while batch := bed.pump.inbox.read("bench", LOAD):
        bed.pump._process(batch)


def publish(bed: Bed) -> None:
    """All that the pump does: at one publish a second, until nothing is left."""
    bed.pump.run()
    assert not bed.publisher.waiting(1)
