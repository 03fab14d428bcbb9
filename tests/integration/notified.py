"""A site whose search engines are on loopback: real Redis, real sockets, the code of production."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import redis

from shared.config.notify.engines import EngineSettings as Config
from shared.store.notify.notification_queue import Breaker, NotificationQueue, RequestRecord
from tests.integration.engines import reply
from tests.integration.rig import Rig
from worker.http.client import ask
from worker.http.exchange import NOTIFY
from worker.notify.dispatcher import Dispatcher

KEY = "0123456789abcdef0123456789abcdef"
MINUTE = 60_000
NOON = 1_795_262_400_000
"""2026-11-21T12:00:00Z in ms: what the clock says first."""

SECRET = "canary-of-the-engine"

Tables = dict[str, dict[str, Any]]


TOKEN = reply(200, {"access_token": SECRET, "expires_in": 3599, "token_type": "Bearer"})

Table = Callable[[str], dict[str, Any]]
TABLES: dict[str, Table] = {
    "indexnow": lambda url: {"key": KEY, "endpoints": [f"{url}/indexnow"]},
    "bing": lambda url: {"key": SECRET, "endpoint": f"{url}/SubmitUrlbatch"},
    "yandex": lambda url: {
        "token": SECRET, "user_id": 7, "host_id": "https:www.example.com:443",
        "endpoint": f"{url}/v4",
    },
    "baidu": lambda url: {"token": SECRET, "endpoint": f"{url}/urls"},
    "websub": lambda _: {},
    "crawler": lambda url: {"url": f"{url}/ping?sitemap={{sitemap}}&by=us"},
}  # fmt: skip


def here(tables: Tables, **more: Any) -> dict[str, Any]:
    """`notify` of a site whose engines are all on this machine."""
    local = {name: {"allow_private": True} | table for name, table in tables.items()}
    return {"notify": {"hosts": ["127.0.0.1"], **local}} | more


class Desk:
    """Tells the engines of one site by a clock that stands until it is moved."""

    def __init__(
        self, client: redis.Redis, root: Path, tables: Tables, *, name: str = "demo", **more: Any
    ) -> None:
        root.mkdir(exist_ok=True)
        self.rig = Rig(client, root, name=name, **here(tables, **more))
        self.now = NOON
        self.notices = NotificationQueue(client, self.rig.name)
        self.telling = self.another("w1")

    def another(self, owner: str, seconds: float = 2.0) -> Dispatcher:
        """As another worker would."""
        return Dispatcher(
            self.rig.client, self.rig.name, self.rig.site, owner, clock=lambda: self.now,
            outbound=partial(ask, bounds=NOTIFY._replace(seconds=seconds)), jitter=lambda: 0.0,
        )  # fmt: skip

    def enqueue(self, *locs: str) -> None:
        self.notices.enqueue(list(self.telling.engine_apis), locs, self.now)

    def look(self, telling: Dispatcher | None = None) -> None:
        """Like the worker: until nothing is due."""
        telling = telling or self.telling
        for _ in range(50):
            told = [telling.notify(engine) for engine in telling.due()]
            if not any(told):
                return
        raise AssertionError("there is no end of it")

    def tell(self, *locs: str) -> RequestRecord:
        """What became of the request about `locs`."""
        self.enqueue(*locs)
        self.look()
        return self.notices.records(1)[0]

    def config(self, engine: str) -> Config:
        return self.rig.site.notify.engines[engine]

    def waiting(self, engine: str) -> int:
        return self.notices.figures(engine, self.now)["waiting"] or 0

    def dead(self) -> dict[str, list[str]]:
        """Engine -> locs that were given up."""
        found: dict[str, list[str]] = {}
        for dead in self.notices.dead():
            found.setdefault(dead.engine, []).extend(dead.locs)
        return found

    def breaker(self, engine: str) -> Breaker | None:
        """Of its first endpoint."""
        endpoint = self.telling.engine_apis[engine].endpoints[0]
        return self.notices.breakers().get((engine, endpoint))

    def publish(self, section: str = "pages") -> None:
        """`a` is listed, `gone` was."""
        pages = [{"type": "upsert", "loc": loc, "section": section} for loc in ("a", "gone")]
        self.change(*pages)
        self.change({"type": "delete", "loc": "gone"})

    def change(self, *events: dict[str, Any]) -> None:
        """Publish these; engines are told only of what a test enqueues itself."""
        self.rig.do(*events)
        self.rig.client.delete(*map(self.rig.keys.notify, self.telling.engine_apis))

    def forget(self) -> None:
        """As if nothing had ever been told."""
        prefix, client = self.rig.keys.prefix, self.rig.client
        parts = ("notify:", "notices", "told:", "spent:", "telling:")
        keys = [key for part in parts for key in client.scan_iter(f"{prefix}{part}*")]
        if keys:
            client.delete(*keys)
        self.telling = self.another("w1")


def table_of(name: str, url: str, account: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The table of an engine at `url`, and what else the site needs for it.

    `account` is the file of a service account.
    """
    more: dict[str, Any] = {"sections": {"jobs": {}}}
    if name == "websub":
        more |= {"feed": True, "hub": f"{url}/hub"}
    if name in TABLES:
        return TABLES[name](url), more
    table: dict[str, Any] = {
        "credentials": f"file:{account}", "token_endpoint": f"{url}/token",
        "endpoint": f"{url}/api",
    }  # fmt: skip
    if name == "google_indexing":
        table["sections"] = {"jobs": "JobPosting"}
    return table, more
