"""A site of a test's own: sources and events in, a real Pump on a real Redis, files out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import redis

from shared.clock import now_ms
from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.events.event import parse
from shared.store.inbox.inbox import Inbox
from shared.store.publishing.publish_state import PublishState
from tests.integration.logs import silence
from worker.ingest.inbox_consumer import InboxConsumer
from worker.reconcile.importer import Importer, ImportProgress, Remark
from worker.sources import read

NAME = "site"


class Pipeline:
    """One site whose files are in `root`; `options` are those of its configuration."""

    def __init__(
        self,
        client: redis.Redis,
        root: Path,
        base: str,
        now_ms: Callable[[], int] = now_ms,
        **options: Any,
    ) -> None:
        given = {
            "base_url": base, "web_root": root, "tokens": ["a token of some length"],
            "robots": "create", "hints": True, "publish_interval": 0.05, **options,
        }  # fmt: skip
        self.settings = Settings.model_validate({"sites": {NAME: Site(**given)}})
        self.root, self._client = root, client
        self._site = self.settings.sites[NAME]
        self.rules = self._site.rules
        self.inbox, self.state = Inbox(client, NAME), PublishState(client, NAME)
        self.now_ms = now_ms
        self.pump = InboxConsumer(self.settings, client, NAME, "test", lambda: now_ms() / 1000)

    def bring(
        self,
        source: str,
        section: str | None = None,
        *,
        report: Callable[[ImportProgress], None] = lambda _: None,
    ) -> tuple[ImportProgress, list[Remark]]:
        """Import `source` and publish it: how far it came and everything that was said."""
        said: list[Remark] = []
        importer = Importer(self._client, NAME, self._site, section, self.now_ms)
        done = importer.run(
            source, read(source), on_remark=said.append, report=report, drain=self.drain
        )
        self.drain()
        return done, said

    def send(self, items: Iterable[dict[str, object]]) -> None:
        """Accept `items` as events and publish them."""
        events = [parse(item, self.rules) for item in items]
        if events:
            assert self.inbox.accept(events).status == "accepted"
        self.drain()

    def drain(self) -> None:
        """Work until everything that was accepted is published."""
        with silence():
            self.pump.run()
        assert not self.inbox.waiting()
        assert not self.pump.publisher.waiting(1)

    def sums(self) -> dict[str, str]:
        """A checksum of every file a web server would serve."""
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.root.iterdir()
            if not path.name.startswith(".")
        }

    def times(self) -> dict[str, int]:
        """When every file was last written, in nanoseconds."""
        return {path.name: path.stat().st_mtime_ns for path in self.root.iterdir()}
