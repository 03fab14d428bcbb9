"""The real thing as its users run it: processes, HTTP, files on disk. Imports nothing of ours."""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.waiting import DEADLINE_S, holds_within

SITEMAPD = Path(sys.executable).with_name("sitemapd")
NAMESPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


def wait_until(holds: Callable[[], object], what: str, seconds: float = DEADLINE_S) -> None:
    """Fail unless `holds` within `seconds`."""
    if not holds_within(holds, seconds):
        pytest.fail(f"not within {seconds} s: {what}")


class System:
    """One `sitemapd up` with its home directory."""

    def __init__(
        self, home: Path, environment: Mapping[str, str] | None = None, program: Path = SITEMAPD
    ) -> None:
        self.home, self.environment = home, {**os.environ, **(environment or {})}
        self.program, self.options = program, list[str]()
        self.root = home / "public"
        self.address = ""

    def configure(self, config: str) -> None:
        """Make its home with a web root, and with `config` as its sitemapd.toml."""
        self.root.mkdir(parents=True)
        file = self.home / "sitemapd.toml"
        file.write_text(config)
        file.chmod(0o600)

    def start(self) -> None:
        """Start it and wait for the line `ready`; the port stays the same after a restart."""
        address = urlsplit(self.address).netloc or "127.0.0.1:0"
        self.log = (self.home.parent / f"{self.home.name}.log").open("a+", encoding="utf-8")
        start = self.log.tell()
        self.process = subprocess.Popen(
            [self.program, "up", "--empty", "--home", self.home, "--http", address, *self.options],
            stdout=self.log, stderr=self.log, env=self.environment,
        )  # fmt: skip

        def ready() -> bool:
            self.log.seek(start)
            lines = self.log.read().splitlines()
            if self.process.poll() is not None:
                pytest.fail("up ended: " + "\n".join(lines))
            found = [line.split()[1] for line in lines if line.startswith("ready ")]
            self.address = found[0] if found else self.address
            return bool(found)

        wait_until(ready, "sitemapd up prints ready")
        site = tomllib.loads((self.home / "sitemapd.toml").read_text())["sites"]["demo"]
        self.token = next(iter(site.get("tokens", ())), "")
        self.key = base64.b64decode(site["secrets"][0].removeprefix("whsec_"))
        self.base = site["base_url"].rstrip("/")

    def stop(self) -> int:
        """Stop it as an administrator would."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self.log.close()
        return status

    @contextmanager
    def away(self) -> Iterator[None]:
        """Have it stopped within the block; it runs again afterwards, also if something failed."""
        try:
            assert self.stop() == 0
            yield
        finally:
            self.start()

    def end(self) -> None:
        """Stop it if it runs: what a test ends with, however far it came."""
        if hasattr(self, "process") and self.process.poll() is None:
            assert self.stop() == 0

    def pid(self, name: str) -> int:
        """The process id of one part."""
        return int(json.loads((self.home / "run" / "pids.json").read_text())[name])

    def kill(self, name: str) -> None:
        """Kill one part, as soon as it stands again if it is down."""

        def killed() -> bool:
            try:
                os.kill(self.pid(name), signal.SIGKILL)
            except ProcessLookupError:
                return False
            return True

        wait_until(killed, f"{name} runs and can be killed")

    def quiet(self) -> None:
        """Wait until everything accepted is in the files and nothing is left to do.

        Over HTTP where the site has a token: the command takes a hundred times as long to ask.
        """

        def said() -> dict[str, Any]:
            if not self.token:
                return dict(json.loads(self.run("status", "--json").stdout)[0])
            bearer = f"Bearer {self.token}"
            status, _, body = self.get("/v1/sites/demo", authorization=bearer)
            assert status == 200, body
            return dict(json.loads(body))

        def settled() -> bool:
            found = said()
            return not found["waiting_events"] and not found["dirty_files"]

        wait_until(settled, "the backlog is empty")

    def post(
        self, body: bytes, kind: str = "application/json", headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Send a signed delivery: status and answer. OSError, HTTPException: nobody knows."""
        ident, now = f"msg_{secrets.token_hex(8)}", str(int(time.time()))
        mac = hmac.digest(self.key, f"{ident}.{now}.".encode() + body, "sha256")
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=30)
        try:
            connection.request(
                "POST", "/v1/sites/demo/events", body,
                {
                    "content-type": kind, "webhook-id": ident, "webhook-timestamp": now,
                    "webhook-signature": "v1," + base64.b64encode(mac).decode(), **(headers or {}),
                },
            )  # fmt: skip
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            connection.close()

    def send(self, *events: dict[str, Any]) -> list[str]:
        """Send events that must be accepted; their ids."""
        status, said = self.post(json.dumps(events).encode())
        assert status == 202, said
        return list(said["ids"])

    def get(self, path: str, **headers: str) -> tuple[int, Message, bytes]:
        """Fetch one file: status, headers, body. Header names with _ for -."""
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=30)
        try:
            wanted = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("GET", path, headers=wanted)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def published(self) -> dict[str, str | None]:
        """loc -> lastmod of every page, by way of the index, as a crawler would; {} without one."""
        found: dict[str, str | None] = {}
        index = self.root / "sitemap.xml"
        if not index.exists():
            return found
        for sitemap in ET.parse(index).getroot():
            loc = sitemap.findtext(f"{NAMESPACE}loc")
            assert loc is not None
            for url in ET.parse(self.root / Path(urlsplit(loc).path).name).getroot():
                page = url.findtext(f"{NAMESPACE}loc")
                assert page is not None
                assert page not in found, f"{page} is listed twice"
                found[page] = url.findtext(f"{NAMESPACE}lastmod")
        return found

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of sitemapd on this home."""
        return subprocess.run(
            [self.program, *arguments], capture_output=True, text=True, timeout=120, check=False,
            env={**self.environment, "SITEMAPD_HOME": str(self.home)},
        )  # fmt: skip
