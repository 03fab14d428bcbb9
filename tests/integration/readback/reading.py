"""A site that reads back from engines on loopback, by a clock that is moved."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import redis

from shared.admin.read_back import ReadBack
from shared.clock import now_ms
from shared.domain.index_status import EngineAnswer
from shared.sitemap import w3c_dates
from shared.store.readback.reading_state import EngineReading, ReadingState
from tests.integration.rig import BASE, Rig
from tests.integration.webmasters import SECRET
from worker.http.client import ask
from worker.http.exchange import READ_BACK
from worker.readback.site_readback import SiteReadback

MINUTE, HOUR = 60_000, 3_600_000
SERVICE = "google.json"


def google_table(url: str, account: Path) -> dict[str, Any]:
    return {
        "credentials": f"file:{account}", "token_endpoint": f"{url}/token",
        "endpoint": f"{url}/webmasters/v3", "property": BASE,
        "inspection_endpoint": f"{url}/v1/urlInspection/index:inspect", "allow_private": True,
    }  # fmt: skip


def bing_table(url: str) -> dict[str, Any]:
    return {"key": SECRET, "endpoint": f"{url}/json", "allow_private": True}


def yandex_table(url: str) -> dict[str, Any]:
    return {
        "token": SECRET, "user_id": 7, "host_id": "https:www.example.com:443",
        "endpoint": f"{url}/v4", "allow_private": True,
    }  # fmt: skip


class ReadingRig:
    """A site with these tables in `readback`; `now` is what the clock of the reader says."""

    def __init__(self, client: redis.Redis, root: Path, tables: dict[str, Any]) -> None:
        root.mkdir(exist_ok=True)
        self.rig = Rig(client, root, notify={"hosts": ["127.0.0.1"]}, readback=tables)
        self.now = now_ms()
        self.reading = self.another()

    def another(self) -> SiteReadback:
        """As another worker would, or this one after a restart."""
        return SiteReadback(
            self.rig.client, self.rig.name, self.rig.site, clock=lambda: self.now,
            outbound=partial(ask, bounds=READ_BACK), jitter=lambda: 0.0,
        )  # fmt: skip

    def publish(self, *locs: str, **more: Any) -> None:
        """Publish these pages, and follow them."""
        self.rig.do(*({"type": "upsert", "loc": loc} | more for loc in locs))
        self.follow()

    def follow(self) -> None:
        while self.reading.follower.look():
            pass
        self.now = max(self.now, now_ms())

    def later(self, minutes: float) -> None:
        self.now += int(minutes * MINUTE)

    def at(self, minutes: float = 0) -> str:
        """The time so many minutes after now, as engines write it."""
        return w3c_dates.from_epoch_s((self.now + int(minutes * MINUTE)) // 1000)

    def known(self) -> ReadBack:
        return ReadBack(self.rig.client, self.rig.name, self.rig.site)

    def answer(self, engine: str, loc: str) -> EngineAnswer | None:
        (chain,) = self.reading.chains.read([BASE + loc], [engine])
        return chain.answers.get(engine)

    def state(self, engine: str) -> EngineReading:
        return ReadingState(self.rig.client, self.rig.name).readings([engine])[engine]
