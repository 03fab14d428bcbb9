"""`sitemapd up` as a process of its own, with any number of sites, and what is sent to it."""

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
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from deploy.local.first_run import first_config
from deploy.local.redis_socket import socket_url
from shared.events.event import Event
from tests.bench.corpus import BASE

ROOT = Path(__file__).resolve().parents[2]
SITE = "demo"
_WAIT_S = 60.0
_FURTHER = """
[sites.{name}]
base_url = "{base}"
web_root = "{name}"
secrets = ["{secret}"]
"""

Delivery = tuple[bytes, dict[str, str]]
"""Body and headers of one request."""


def base_of(site: str) -> str:
    """The base URL of `site`."""
    return BASE if site == SITE else f"https://{site}.example-shop.com"


class Service:
    """`sitemapd up` in a directory of its own: the site SITE, and those of `further`, which share
    its secret.
    """

    def __init__(self, home: Path, further: Sequence[str] = ()) -> None:
        self.home = home
        self.roots = {SITE: home / "public"} | {name: home / name for name in further}
        self.root = self.roots[SITE]
        self.store = socket_url(home)
        self._configure(further)
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [
                sys.executable, "-c", "from deploy.cli.entry import main; main()",
                "up", "--home", self.home, "--http", "127.0.0.1:0",
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

    def _configure(self, further: Sequence[str]) -> None:
        path = first_config.write(self.home, BASE)
        text = path.read_text(encoding="utf-8")
        site = tomllib.loads(text)["sites"][SITE]
        secret = site["secrets"][0]
        self.key = base64.b64decode(secret.removeprefix("whsec_"))
        text = text.replace("# rate = 500 ", "rate = 1000000 ")
        for name in further:
            self.roots[name].mkdir()
            text += _FURTHER.format(name=name, base=base_of(name), secret=secret)
        path.write_text(text, encoding="utf-8")

    def stop(self) -> None:
        """End it as an administrator would."""
        self._process.terminate()
        self._process.wait()

    def connect(self) -> http.client.HTTPConnection:
        """A connection that stays."""
        return http.client.HTTPConnection(self.address, timeout=30)

    def signed(self, events: Sequence[Event], ident: str) -> Delivery:
        """One delivery: a single event as JSON, more as NDJSON."""
        return sign(self.key, ndjson(events), ident, media_type(events))

    def listed(self, site: str = SITE) -> int:
        """How many pages the published files of `site` list."""
        return sum(path.read_bytes().count(b"<url>") for path in self.roots[site].glob("pages-*"))


def items(events: Sequence[Event]) -> list[str]:
    """Each of `events` as a sender writes it."""
    return [
        json.dumps({"type": event.type, "loc": event.loc, "lastmod": event.lastmod})
        for event in events
    ]


def ndjson(events: Sequence[Event]) -> bytes:
    """The body of `events`, one on each line."""
    return "\n".join(items(events)).encode()


def media_type(events: Sequence[Event]) -> str:
    """The media type of `ndjson`."""
    return "application/x-ndjson" if len(events) > 1 else "application/json"


def sign(key: bytes, body: bytes, ident: str, kind: str) -> Delivery:
    """`body` of the media type `kind`, signed now as Standard Webhooks say."""
    now = str(int(time.time()))
    digest = hmac.digest(key, f"{ident}.{now}.".encode() + body, "sha256")
    return body, {
        "content-type": kind,
        "webhook-id": ident,
        "webhook-timestamp": now,
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }


def events_path(site: str = SITE) -> str:
    """Where the events of `site` are sent to."""
    return f"/v1/sites/{site}/events"


def post(connection: http.client.HTTPConnection, delivery: Delivery, site: str = SITE) -> None:
    """Send one delivery, which must be accepted."""
    connection.request("POST", events_path(site), *delivery)
    answer = connection.getresponse()
    said = answer.read()
    assert answer.status == http.HTTPStatus.ACCEPTED, said


@contextmanager
def service(*further: str) -> Iterator[Service]:
    """`sitemapd up` with SITE and `further` sites, until the end of the block."""
    with TemporaryDirectory(prefix="sitemapd-bench-") as home:
        running = Service(Path(home), further)
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
