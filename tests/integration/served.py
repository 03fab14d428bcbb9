"""The webhook as a process, with its Redis."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import DEADLINE_S, holds_within

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "/v1/sites/demo/events"
TOKEN = "canary-token-canary-token"
OPERATOR = "canary-operator-canary-operator"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    json: dict[str, Any]


class Web:
    """`sitemapd run web`, with its Redis."""

    def __init__(self, redis_server: Any, home: Path, secret: str, wait: Any) -> None:
        self.redis, self.store = redis_server, redis_server.client()
        self.config = home / "sitemapd.toml"
        self.config.write_text(
            f'redis_url = "{redis_server.url}"\n[sites.demo]\nweb_root = "public"\n'
            f'base_url = "https://www.example.com"\nsecrets = ["{secret}"]\ntokens = ["{TOKEN}"]\n'
            f'[api]\ntoken = "{OPERATOR}"\n'
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = home / "webhook.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(
                        sys.executable,
                        "-c",
                        "from deploy.cli.entry import main; main()",
                        "run",
                        "web",
                    ),
                    *("--listen", f"127.0.0.1:{self.port}", "--home", home),
                ],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=log,
                stderr=log,
            )
        wait(self.alive, "the webhook to start")

    def alive(self) -> bool:
        try:
            return self.ask("GET", "/healthz", b"", {}).status == 200
        except OSError:
            return False

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            names = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, names, json.loads(response.read()))
        finally:
            connection.close()

    def post(self, body: bytes, headers: dict[str, str]) -> Answer:
        return self.ask("POST", ADDRESS, body, headers)

    def raw(self, *parts: bytes, finish: bool = False) -> bytes:
        """What comes back for these bytes until the server is silent or closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
            for part in parts:
                connection.sendall(part)
            if finish:
                connection.shutdown(socket.SHUT_WR)
            found = b""
            with suppress(TimeoutError, ConnectionError):
                while more := connection.recv(65_536):
                    found += more
            return found

    def head(self, headers: dict[str, str], *more: str) -> bytes:
        lines = [f"POST {ADDRESS} HTTP/1.1", "Host: x", "Connection: close", *more]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def state(self) -> set[bytes]:
        """The keys of all sites but for counts, notes of refusals (webhook/rejection_log.py) and
        the configuration that is in force, which decide nothing; the wake-up of an earlier test may
        still come in beside them.
        """
        told = (b":stats", b":counts", b":refused", b":configuration")
        keys = (key for key in self.store.keys("{*") if b":pulse:" not in key)
        return {key for key in keys if not key.endswith(told)}

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.store.close()


def wait(condition: Any, what: str, seconds: float = DEADLINE_S) -> None:
    assert holds_within(condition, seconds), f"waited {seconds} s for {what}"
