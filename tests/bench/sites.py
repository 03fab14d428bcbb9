"""Sites of any size: what one event costs, and how many bytes of Redis an URL takes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import redis

from shared.events.event import Event
from tests.bench import bulk, memory
from tests.bench.bed import Bed, bed, server
from tests.bench.corpus import Corpus
from tests.bench.latency import one_event
from tests.bench.report import Report, compared
from tests.bench.scale import Scale

HUGE = 50_000_000
"""URLs of the largest site, with --huge: 4 GB of memory, 8 GB of disk, 15 minutes."""


def sites(report: Report, corpus: Corpus, scale: Scale) -> None:
    """Measure in a site of each size of `scale.sites`, next to a small one on the same server."""
    with server() as client:
        as_json = memory.json_hash(client, corpus.rows(scale.sites[0]), scale.sites[0])
    for count in scale.sites:
        # Of each size a server of its own: memory that another site has left would be reused.
        with server() as client, _bed(client, "large", scale) as site:
            before = memory.used(client)
            pages = bulk.load(site, corpus.rows(count), count)
            memory.per_url(report, site, memory.used(client) - before, as_json)
            with _bed(client, "small", scale) as small:
                few = bulk.load(small, corpus.rows(scale.small), scale.small)
                cost(report, (site, pages), (small, few), corpus, scale)
            if count == scale.sites[0]:
                memory.bounded(report, site)


def _bed(client: redis.Redis, name: str, scale: Scale) -> AbstractContextManager[Bed]:
    return bed(client, name, shard_urls=scale.shard_urls)


def cost(
    report: Report, large: tuple[Bed, Sequence[Event]], small: tuple[Bed, Sequence[Event]],
    corpus: Corpus, scale: Scale,
) -> None:  # fmt: skip
    """All work for one event in each of two sites, interleaved."""
    pairs = []
    for one, other in zip(large[1][: scale.rounds], small[1], strict=False):
        _, much, _ = one_event(large[0], corpus.changed(one))
        _, little, _ = one_event(small[0], corpus.changed(other))
        pairs.append((much * 1e3, little * 1e3))
    counts = [each.pages.lookup.count() for each, _ in (large, small)]
    name = f"one event, all its work, in a site of {counts[0]:,} URLs"
    against = f"in one of {counts[1]:,} URLs"
    report.add(compared(name, "ms", pairs[scale.warm :], against, at_most=1.15))
