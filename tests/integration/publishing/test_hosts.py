"""Two hosts, each with a worker and a directory of its own: one dies, and both converge."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from shared.store.round_trips import read
from shared.store.targets.target_state import records_reading
from tests.integration.conftest import RedisServer, Wait
from tests.integration.rig import Rig

HOSTS = ("web1", "web2")
ROOT = Path(__file__).resolve().parents[3]
PRIVATE = {".sitemapd"}


class Workers:
    """A worker process for each host, with the configuration that all share."""

    def __init__(self, home: Path, url: str) -> None:
        self.home, self._running = home, dict[str, subprocess.Popen[bytes]]()
        targets = "\n".join(
            f'[[sites.demo.targets]]\nurl = "{host}"\nhost = "{host}"' for host in HOSTS
        )
        (home / "sitemapd.toml").write_text(
            f'redis_url = "{url}"\n[sites.demo]\nbase_url = "https://www.example.com"\n'
            f'tokens = ["0123456789abcdef"]\nshard_urls = 20\nrobots = "create"\n'
            f"publish_interval = 0.0\nshrink_share = 1.0\n{targets}\n"
        )

    def start(self, host: str) -> None:
        command = [sys.executable, "-m", "worker.main", "--host", host, "--threads", "1"]
        command += ["--config", str(self.home / "sitemapd.toml"), "--json"]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "SITEMAPD_CONSUMER": f"w-{host}"}
        with (self.home / f"{host}.log").open("ab") as log:
            self._running[host] = subprocess.Popen(
                command, env=environment, cwd=self.home, stdout=log, stderr=log
            )

    def kill(self, host: str) -> None:
        process = self._running.pop(host)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.wait(30)

    def files(self, host: str) -> dict[str, bytes]:
        place = self.home / host
        found = place.iterdir() if place.is_dir() else ()
        names = [each for each in found if each.name not in PRIVATE]
        return {each.name: each.read_bytes() for each in names if not each.name.startswith(".")}


@pytest.fixture
def workers(redis_server: RedisServer, tmp_path: Path) -> Iterator[Workers]:
    found = Workers(tmp_path, redis_server.url)
    yield found
    found.stop()


def test_a_host_that_dies_while_events_flow_misses_nothing(
    workers: Workers, store: redis.Redis, until: Wait, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path / "none")
    for host in HOSTS:
        workers.start(host)
    stop = threading.Event()

    def sending() -> None:
        number = 0
        while not stop.wait(0.01):
            number += 1
            item = {
                "type": "upsert",
                "loc": f"p/{number % 90}",
                "lastmod": f"{2000 + number % 23}-01-01",
            }
            rig.send(item)

    sender = threading.Thread(target=sending)

    def publishes() -> int:
        return int(store.hget(rig.keys.counters, "publishes") or 0)

    def has(host: str, least: int) -> bool:
        record = read(store, records_reading("demo")).get(host)
        return record is not None and record.publishes >= least

    sender.start()
    try:
        for host in HOSTS:
            until(lambda it=host: has(it, 3), f"{host} to have files")
        for host, other in (HOSTS, HOSTS[::-1]):
            workers.kill(host)
            most = publishes() + 5
            until(lambda it=other, n=most: has(it, n), f"{other} to go on alone")
            workers.start(host)
            until(lambda it=host, n=most: has(it, n), f"{host} to make up for it")
    finally:
        stop.set()
        sender.join()

    def level() -> bool:
        return rig.quiet() and all(has(host, publishes()) for host in HOSTS)

    until(level, "both to be level")
    until(lambda: workers.files("web1") == workers.files("web2"), "the same files")
    assert sum(content.count(b"<url>") for content in workers.files("web1").values()) >= 80
