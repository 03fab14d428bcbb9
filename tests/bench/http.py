"""Through the real processes, over HTTP: how soon is a page listed, how many events are taken."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from shared.batches import batches
from shared.events.event import Event
from tests.bench.corpus import Corpus
from tests.bench.report import Figure, Report
from tests.bench.scale import Scale
from tests.bench.service import Delivery, Service, post, until
from tests.bench.visible import visible

BATCH = 1_000
CONNECTIONS = 8


def over_http(report: Report, running: Service, corpus: Corpus, scale: Scale) -> None:
    """What one sender sends to a site of its own."""
    pages = list(corpus.pages(scale.events))
    accepted(report, running, pages)
    until(lambda: running.listed() == len(pages))
    singles(report, running, [corpus.changed(page) for page in pages[: scale.singles]])
    visible(report, running, [corpus.changed(page) for page in pages], scale)


def accepted(report: Report, running: Service, pages: Sequence[Event]) -> None:
    """Batches of BATCH as one sender sends them: the next one when the last was answered."""
    connection = running.connect()
    deliveries = [running.signed(part, f"b{n}") for n, part in enumerate(batches(pages, BATCH))]
    began = time.perf_counter()
    for delivery in deliveries:
        post(connection, delivery)
    whole = len(pages) / (time.perf_counter() - began)
    until(lambda: running.listed() == len(pages))
    listed = len(pages) / (time.perf_counter() - began)
    name = f"accepted over HTTP, signed batches of {BATCH:,}, all processes at work"
    report.add(Figure(name, "/s", whole, hold=">= 15,000", holds=whole >= 15_000))
    report.add(Figure("the same, until the last page was in its file", "/s", listed))


def singles(report: Report, running: Service, pages: Sequence[Event]) -> None:
    """Single signed events over CONNECTIONS connections that stay open."""
    parts = [pages[at::CONNECTIONS] for at in range(CONNECTIONS)]
    deliveries = [
        [running.signed([page], f"s{part}-{n}") for n, page in enumerate(some)]
        for part, some in enumerate(parts)
    ]

    def send(some: list[Delivery]) -> None:
        connection = running.connect()
        for delivery in some:
            post(connection, delivery)

    began = time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(send, deliveries))
    rate = len(pages) / (time.perf_counter() - began)
    report.add(Figure(f"accepted over HTTP, single events, {CONNECTIONS} connections", "/s", rate))
