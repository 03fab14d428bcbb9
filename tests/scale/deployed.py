"""sitemapd in its parts on a store of several servers, and with a broker of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from celery import Celery
from redis.crc import key_slot

from tests.faults.deployment import Deployment, Options
from tests.faults.parts import Part, until
from tests.scale.servers import MASTER, Cluster, Watched


class Scaled(Deployment):
    """All parts but the store, which `store` is."""

    def __init__(
        self, home: Path, store: Watched | Cluster, env: Mapping[str, str] | None = None
    ) -> None:
        self.store = store
        super().__init__(home, Options(redis=store.url, env=env or {}, timed=False))

    def _parts(self) -> list[Part]:
        return [part for part in super()._parts() if part.name != "redis"]

    def power_on(self) -> None:
        """Start all, and wait until events are taken."""
        for part in self.parts.values():
            part.wanted = True
        until(self.ready, "/readyz says 200", 60)

    def redis(self, *command: Any) -> Any:
        """One command about the site, on the server that has it."""
        if isinstance(self.store, Watched):
            return self.store.master.ask(*command)
        return self.store.owner(key_slot(b"demo")).ask(*command)


def celery(broker: str) -> Celery:
    """Celery's own client of a broker, in the spelling of Celery."""
    app = Celery(broker=broker, set_as_current=False)
    app.conf.broker_transport_options = {"master_name": MASTER}
    return app


def woken(broker: str) -> int:
    """How many wake-ups the workers have taken from the broker, as they tell Celery."""
    with celery(broker) as app, app.connection() as connection:
        stats = app.control.inspect(timeout=3.0, connection=connection).stats() or {}
    return sum(int(each["total"].get("sitemapd.wake", 0)) for each in stats.values())


def environment(home: Path) -> dict[str, str]:
    """The environment of a program that is to keep its files in `home`."""
    return {**os.environ, "HOME": str(home)}
