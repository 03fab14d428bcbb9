"""Did it help? A crawler reads through the shipped nginx; its own access log says when."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.system.driver import SITEMAPD, System, wait_until
from tests.system.nginx import HOST, PROGRAM, Nginx, needs

GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


@pytest.fixture
def nginx(system: System) -> Iterator[Nginx]:
    needs(PROGRAM)
    server = Nginx(system.home.parent / "nginx", system.root, urlsplit(system.address).netloc)
    server.start()
    yield server
    server.stop()


def fetch(nginx: Nginx, path: str, agent: str) -> int:
    with closing(http.client.HTTPConnection(HOST, nginx.port, timeout=30)) as connection:
        connection.request("GET", path, headers={"User-Agent": agent})
        reply = connection.getresponse()
        reply.read()
        return reply.status


def log_of(nginx: Nginx, lines: int) -> Path:
    """The access log, once it has so many lines: nginx writes them after the answers."""
    log = nginx.directory / "access.log"
    wait_until(lambda: log.read_bytes().count(b"\n") >= lines, "nginx writes its log")
    return log


def test_the_log_of_nginx_tells_when_a_crawler_came(system: System, nginx: Nginx) -> None:
    assert fetch(nginx, "/sitemap.xml", "curl/8.0") == 404  # here the log begins
    began = int(time.time())
    wait_until(lambda: int(time.time()) > began, "another second")
    system.send({"type": "upsert", "loc": f"{system.base}/hello"})
    wait_until((system.root / "sitemap.xml").exists, "it is published")
    system.quiet()
    published = int(time.time())
    wait_until(lambda: int(time.time()) > published, "a second that the log can tell apart")
    (shard,) = [path.name for path in system.root.glob("*-1.xml")]
    for path in ("robots.txt", "sitemap.xml", shard):
        assert fetch(nginx, f"/{path}", GOOGLEBOT) == 200
    assert fetch(nginx, "/hello", GOOGLEBOT) == 404  # there is no CMS behind this nginx
    log = log_of(nginx, 5)

    by_name = system.run("crawl", "--log", str(log), "--json")
    with log.open("rb") as file:
        by_pipe = subprocess.run(
            [SITEMAPD, "crawl", "--log", "-", "--home", system.home, "--json"], stdin=file,
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip

    report = json.loads(by_name.stdout)
    (engine,) = report["engines"]
    told = {row["kind"]: (row["fetched"], row["published"]) for row in engine["kinds"]}
    assert told == {"index": (1, 1), "shards": (1, 1), "pages": (0, 1), "robots.txt": (1, 1)}
    assert all(0 < row["p95_s"] < 120 for row in engine["kinds"] if row["fetched"])
    assert report["log"] | {"lines": 5, "of_engines": 4, "broken": 0} == report["log"]
    assert json.loads(by_pipe.stdout)["engines"] == report["engines"]
