"""A small site on loopback, as real ones answer: pages that are there, gone, moved, hidden."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from shared.domain.looks.answers import Grade
from shared.domain.looks.record import LookRecord
from shared.store.looks.look_store import BrokenPage, LookStore
from shared.store.looks.summary import LookSummaries, LookSummary
from tests.integration.rig import Rig
from tests.unit.worker.sources.cms import Asked, Reply, served
from worker.looks.site_looks import SiteLooks

HTML = {"Content-Type": "text/html; charset=utf-8"}


def page(body: str = "<p>Text</p>", head: str = "", lang: str = "en") -> Reply:
    """An HTML page."""
    text = f'<!doctype html><html lang="{lang}"><head><title>T</title>{head}</head>{body}</html>'
    return Reply(text.encode(), headers=HTML)


GONE = Reply(b"gone", 404, HTML)


class Website:
    """Answers for each path what `pages` has; `/robots.txt` is `robots`, None: 404."""

    def __init__(self) -> None:
        self.pages: dict[str, Reply | Callable[[Asked], Reply]] = {}
        self.robots: Reply | None = None
        self.asked: list[str] = []
        self.at: list[float] = []
        self.agents: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, asked: Asked) -> Reply:
        with self._lock:
            self.asked.append(asked.path)
            self.at.append(time.monotonic())
            self.agents.add(asked.headers.get("user-agent", ""))
        if asked.path == "/robots.txt":
            return self.robots or GONE
        found = self.pages.get(asked.path, GONE)
        return found if isinstance(found, Reply) else found(asked)

    @property
    def visits(self) -> list[str]:
        """The pages that were asked for, in order."""
        return [path for path in self.asked if path != "/robots.txt"]


class Visited:
    """A rig whose site is served by `web`, and its looks."""

    def __init__(
        self, client: redis.Redis, root: Path, web: Website, base: str, **options: Any
    ) -> None:
        root.mkdir(exist_ok=True)
        pages = {"interval": 0, "confirm_minutes": 0} | options.pop("pages", {})
        self.rig = Rig(client, root, base_url=base, pages=pages, **options)
        self.client, self.web, self.base = client, web, base
        self.store = LookStore(client, self.rig.name, self.rig.site.pages.records)  # type: ignore[union-attr]
        self.looks = SiteLooks(client, self.rig.name, self.rig.site, "w1")

    def there(self, *paths: str, **members: Any) -> None:
        """Serve pages, and send an event for each."""
        for path in paths:
            self.web.pages.setdefault(path, page())
        self.rig.do(*({"type": "upsert", "loc": self.loc(path)} | members for path in paths))

    def loc(self, path: str) -> str:
        """The URL of a path."""
        return self.base + path.removeprefix("/")

    def look(self, times: int = 1, *, again: bool = False) -> list[str]:
        """Look so often, however long the host would rest; the pages that were asked for. With
        `again`, the time of every broken page has come.
        """
        before = len(self.web.visits)
        for _ in range(times):
            self.rested()
            if again and (known := self.store.all_broken()):
                self.client.zadd("{demo}:looks:again", dict.fromkeys(known, 1))
            self.looks.look()
        self.rig.settle()
        return self.web.visits[before:]

    def rested(self) -> None:
        """Let the rest of the host be over."""
        for key in self.client.keys("{_sitemapd}:looking:*"):
            self.client.delete(key)

    def round(self) -> None:
        """Let the time of a whole round be over."""
        self.store.change(began=1)

    def record(self, path: str) -> LookRecord | None:
        return self.store.records([self.loc(path)])[0]

    def grade(self, path: str) -> Grade | None:
        found = self.record(path)
        return None if found is None else found.grade

    def broken(self) -> dict[str, BrokenPage]:
        return {
            "/" + loc.removeprefix(self.base): of for loc, of in self.store.all_broken().items()
        }

    @property
    def listed(self) -> set[str]:
        return {"/" + loc.removeprefix(self.base) for loc in self.rig.listed()}

    @property
    def summary(self) -> LookSummary | None:
        self.looks._told_at = 0.0
        self.look()
        return LookSummaries(self.client, self.rig.name).get()


@contextmanager
def website() -> Iterator[tuple[Website, str]]:
    """A website, and its address."""
    web = Website()
    with served(web) as address:
        yield web, f"{address}/"
