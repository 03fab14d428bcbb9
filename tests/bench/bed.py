"""What is measured: a real server that loses nothing, sites in it, their web roots."""

from __future__ import annotations

import gc
import os
import random
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import redis

from deploy.local.embedded_redis import EmbeddedServer
from shared.batches import batches
from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.domain.batch_state import Policy
from shared.domain.decide_batch import ArrivedEvent, decide_all
from shared.domain.page_record import Arrival
from shared.domain.routing import Routing
from shared.events.event import Event
from shared.store.connection import connect
from shared.store.pages.page_repository import PageRepository
from tests.bench.corpus import BASE
from worker.ingest.inbox_consumer import InboxConsumer
from worker.main import GARBAGE_AT
from worker.publishing.publisher import Publisher, PublishResult

CONSUMER = "bench"
LOAD = 500
ARRIVED_MS = 1_750_000_000_000
"""Arrival of what is loaded, in ms since 1970: after every lastmod of the corpus."""


class ClockedPublisher(Publisher):
    """Notes when the files of a pass were all in their place and synced: before the commit."""

    visible_at = 0.0

    def _commit(self, *args: object, **named: object) -> PublishResult:
        self.visible_at = time.perf_counter()
        return super()._commit(*args, **named)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Bed:
    """One site of a server: its settings, its pump, its web root."""

    name: str
    client: redis.Redis
    site: Site
    pump: InboxConsumer
    publisher: ClockedPublisher
    pages: PageRepository

    def load(self, events: Iterable[Event]) -> list[Event]:
        """List the pages of `events` and publish them, as fast as that goes; a sample of them.

        Without waiting for the disk: nothing is measured while this runs.
        """
        kept, sequence = [], 0
        self.client.config_set("appendfsync", "no")
        for batch in batches(events, LOAD):
            read = self.pages.read(batch)
            arrived = []
            for event in batch:
                sequence += 1
                arrived.append(ArrivedEvent(event, Arrival(ARRIVED_MS + sequence, 0)))
            decisions, after = decide_all(read.state, arrived, Policy(Routing({})))
            decided = [
                (f"{arrival.ms}-0", str(event.loc), decision.reason, decision.changed)
                for (event, arrival, _), decision in zip(arrived, decisions, strict=True)
            ]
            assert self.pages.apply(read, after, settled=["1-0"], decisions=decided)
            kept += batch[::50]
        while self.publisher.publish():
            pass
        self.client.config_set("appendfsync", "always")
        random.Random(1).shuffle(kept)
        # The made-up pages are no garbage of a worker's: collections must not look at them.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE_AT)  # as a worker
        return kept


@contextmanager
def server() -> Iterator[redis.Redis]:
    """A client of a fresh server, which ends with the block."""
    with (
        TemporaryDirectory(prefix="sitemapd-bench-") as home,
        EmbeddedServer(Path(home)) as running,
        connect(running.url, 60.0) as client,
    ):
        # A rewrite of the log beside a measurement would be what is measured.
        client.config_set("auto-aof-rewrite-percentage", "0")
        yield client


@contextmanager
def bed(
    client: redis.Redis, name: str, *, shard_urls: int = 10_000, form: str = "xml",
    interval: float = 0.0,
) -> Iterator[Bed]:  # fmt: skip
    """A site of its own in the server of `client`."""
    with TemporaryDirectory(prefix="sitemapd-bench-") as root:
        site = Site.model_validate(
            {
                "base_url": BASE, "web_root": root, "tokens": ["sixteen characters"],
                "shard_urls": shard_urls, "form": form, "publish_interval": interval,
            }
        )  # fmt: skip
        pump = InboxConsumer(
            Settings.model_validate({"sites": {name: site}}), client, name, CONSUMER
        )
        publisher = ClockedPublisher(client, name, site, CONSUMER)
        pump.publisher = publisher
        yield Bed(name, client, site, pump, publisher, PageRepository.of(client, name, site))


class Bare:
    """The least that makes files durable: write, fsync, rename each; fsync the directory once."""

    def __init__(self, root: Path) -> None:
        self.root = root / f"bare-{secrets.token_hex(4)}"
        self.root.mkdir()
        self._fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)

    def write(self, files: Iterable[tuple[str, bytes]]) -> float:
        """How long (s) that takes for `files`, which replace the ones written before."""
        began = time.perf_counter()
        for number, (_, content) in enumerate(files):
            fd = os.open("temp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=self._fd)
            os.write(fd, content)
            os.fsync(fd)
            os.close(fd)
            os.rename("temp", f"{number}", src_dir_fd=self._fd, dst_dir_fd=self._fd)
        os.fsync(self._fd)
        return time.perf_counter() - began
