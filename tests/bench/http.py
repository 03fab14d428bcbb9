"""Through the real processes, over HTTP: how soon is a page listed, how many events are taken."""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from shared.events.event import Event
from tests.bench.bed import Bare
from tests.bench.corpus import BASE, Corpus
from tests.bench.rates import batches
from tests.bench.report import Figure, Report, compared
from tests.bench.scale import Scale

BATCH = 1_000
CONNECTIONS = 8
IDLE_S = 1.1  # longer than the publish interval
ROOT = Path(__file__).resolve().parents[2]
_WAIT_S = 60.0


class Service:
    """`sitemapd up` in a directory of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.root = home / "public"
        self._process = self._start()
        self._configure()
        self.stop()
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [
                sys.executable, "-c", "from deploy.cli.entry import main; main()",
                "up", "--home", self._home, "--http", "127.0.0.1:0",
            ],
            stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("ready "):
                self.address = urlsplit(line.split()[1]).netloc
                return process
        raise RuntimeError(f"sitemapd up ended with {process.wait()}")

    def _configure(self) -> None:
        path = self._home / "sitemapd.toml"
        text = path.read_text(encoding="utf-8")
        site = tomllib.loads(text)["sites"]["demo"]
        self._key = base64.b64decode(site["secrets"][0].removeprefix("whsec_"))
        text = text.replace(site["base_url"], BASE)
        text = text.replace("# rate = 500 ", "rate = 1000000 ")
        path.write_text(text, encoding="utf-8")

    def stop(self) -> None:
        """End it as an administrator would."""
        self._process.terminate()
        self._process.wait()

    def connect(self) -> http.client.HTTPConnection:
        """A connection that stays."""
        return http.client.HTTPConnection(self.address, timeout=30)

    def signed(self, events: Sequence[Event], ident: str) -> tuple[bytes, dict[str, str]]:
        """Body and headers of one delivery."""
        items = [
            json.dumps({"type": "upsert", "loc": event.loc, "lastmod": event.lastmod})
            for event in events
        ]
        body, now = "\n".join(items).encode(), str(int(time.time()))
        digest = hmac.digest(self._key, f"{ident}.{now}.".encode() + body, "sha256")
        return body, {
            "content-type": "application/x-ndjson" if len(items) > 1 else "application/json",
            "webhook-id": ident,
            "webhook-timestamp": now,
            "webhook-signature": "v1," + base64.b64encode(digest).decode(),
        }

    def listed(self) -> int:
        """How many pages the published files list."""
        return sum(path.read_bytes().count(b"<url>") for path in self.root.glob("pages-*.xml"))


def post(connection: http.client.HTTPConnection, delivery: tuple[bytes, dict[str, str]]) -> None:
    """Send one delivery, which must be accepted."""
    connection.request("POST", "/v1/sites/demo/events", *delivery)
    answer = connection.getresponse()
    said = answer.read()
    assert answer.status == http.HTTPStatus.ACCEPTED, said


@contextmanager
def service() -> Iterator[Service]:
    """`sitemapd up`, until the end of the block."""
    with TemporaryDirectory(prefix="sitemapd-bench-") as home:
        running = Service(Path(home))
        try:
            yield running
        finally:
            running.stop()


def until(condition: Callable[[], object], pause: float = 0.05) -> None:
    """Wait until `condition` is true."""
    deadline = time.monotonic() + _WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(pause)


def over_http(report: Report, corpus: Corpus, scale: Scale) -> None:
    """Everything that goes through the service, in one of them."""
    pages = list(corpus.pages(scale.events))
    with service() as running:
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

    def send(some: list[tuple[bytes, dict[str, str]]]) -> None:
        connection = running.connect()
        for delivery in some:
            post(connection, delivery)

    began = time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(send, deliveries))
    rate = len(pages) / (time.perf_counter() - began)
    report.add(Figure(f"accepted over HTTP, single events, {CONNECTIONS} connections", "/s", rate))


def visible(report: Report, running: Service, pages: Sequence[Event], scale: Scale) -> None:
    """From the first byte of a signed POST until shard and index are replaced, worker asleep."""
    connection, bare, pairs = running.connect(), Bare(running.root.parent), []
    index = running.root / "sitemap.xml"
    for number, page in enumerate(pages[:: len(pages) // scale.rounds][: scale.rounds]):
        # What is measured is the leading edge: nothing was published for an interval, and no date
        # lies ahead of the clock, which each publish moves on by a second.
        idle = max(os.stat(index).st_mtime, time.time()) + IDLE_S
        until(lambda idle=idle: time.time() > idle, 0.01)  # type: ignore[misc]
        before = {path.name: path.stat().st_ino for path in running.root.glob("*.xml")}
        delivery = running.signed([page], f"v{number}")
        began, old = time.perf_counter(), before[index.name]
        post(connection, delivery)
        # The index is replaced last.
        until(lambda old=old: os.stat(index).st_ino != old, 0.000_2)  # type: ignore[misc]
        took = time.perf_counter() - began
        files = [
            (path.name, path.read_bytes())
            for path in running.root.glob("*.xml")
            if before[path.name] != path.stat().st_ino
        ]
        assert len(files) == 2
        assert str(page.lastmod).encode() in files[0][1] + files[1][1]
        pairs.append((took * 1e3, bare.write(files) * 1e3))
    name = f"POST to visible, {len(pages):,} URLs, shards of 10,000, idle"
    report.add(
        compared(name, "ms", pairs[scale.warm :], "bare durable write of both files", at_most=4)
    )
