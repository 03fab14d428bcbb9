"""The real system in its parts, as in production: Redis, workers, web, schedule; imports nothing
of ours. Whatever dies is started again at once, as an init system would.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.faults.parts import POLL_S, Part, until
from tests.faults.tools.store import engine

SITEMAPD = Path(sys.executable).with_name("sitemapd")
BASE = "https://www.example.com"
WORKERS = ("worker-1", "worker-2")

CONFIG = """\
redis_url = "{redis}"
inbox_limit = 60000
[sites.demo]
base_url = "{base}/"
web_root = "public"
secrets = ["whsec_{key}"]
robots = "edit"
form = "{form}"
publish_interval = {interval}
shard_urls = 100
index_shards = 4
{site}
[sites.demo.sections.posts]
[sites.demo.sections.products]
[sites.demo.sections.seen]
[sites.demo.sections.inbox]
[sites.demo.sections.news]
news = true
"""

ROBOTS = b"User-agent: *\r\nDisallow: /private \xc3\xa9\n\n# ours, to the last byte"

STORE = {
    "port": "0", "appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction",
    "no-appendfsync-on-rewrite": "no", "aof-load-truncated": "yes", "save": "", "logfile": "",
}  # fmt: skip


class Options(NamedTuple):
    """How a deployment differs from the usual one.

    `interval` is the publish interval (s), `form` that of the files. `env` is added to each
    environment. `root` is the web root and `data` where Redis keeps its files, if not in the home.
    `store` adds settings of Redis, `site` lines to the site's configuration, `redis` is the address
    at which the parts find Redis. Unless `timed`, the senders tell no news and no videos, which
    leave by the clock. `address` is where the web server listens; `before` gives what the command
    of a part is preceded by. `tool` is what the case breaks things with.
    """

    interval: float = 0.2
    form: str = "xml"
    env: Mapping[str, str] = {}
    root: Path | None = None
    data: Path | None = None
    store: Mapping[str, str] = {}
    site: str = ""
    redis: str = ""
    timed: bool = True
    address: str = "127.0.0.1"
    before: Callable[[str], list[str]] = lambda _part: []
    tool: Any = None


class Deployment:
    """All parts in `home`."""

    def __init__(self, home: Path, options: Options) -> None:
        self.home, self.options = home, options
        home.mkdir(parents=True, exist_ok=True)
        self.root = options.root or home / "public"
        self.data = options.data or home / "redis"
        for folder in (self.root, self.data, home / "logs"):
            folder.mkdir(exist_ok=True)
        self.socket = home / "redis.sock"
        self.key = secrets.token_bytes(32)
        self.port = _free_port()
        self.skew = 0.0
        """Seconds by which the clock of the webhook, and of those who send to it, is wrong."""
        (self.root / "robots.txt").write_bytes(ROBOTS)
        self._write_config()
        self.parts = {part.name: part for part in self._parts()}
        self._stopping = threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)

    def _write_config(self) -> None:
        text = CONFIG.format(
            redis=self.options.redis or f"unix://{self.socket}", base=BASE,
            key=base64.b64encode(self.key).decode(),
            form=self.options.form, interval=self.options.interval, site=self.options.site,
        )  # fmt: skip
        config = self.home / "sitemapd.toml"
        config.write_text(text.replace('"public"', json.dumps(str(self.root))))
        config.chmod(0o600)

    def _parts(self) -> list[Part]:
        settings = STORE | {"dir": str(self.data), "unixsocket": str(self.socket)}
        settings |= self.options.store
        store = [str(engine()), *(x for k, v in settings.items() for x in (f"--{k}", v))]
        listen = ["--behind-proxy", "--listen", f"{self.options.address}:{self.port}"]
        return [
            self._part("redis", store),
            *(self._run(name, "worker", "--name", name) for name in WORKERS),
            self._run("web", "web", *listen),
            self._run("schedule", "schedule"),
        ]

    def _run(self, name: str, *what: str) -> Part:
        return self._part(name, [str(SITEMAPD), "run", *what, "--home", str(self.home)])

    def _part(self, name: str, argv: list[str]) -> Part:
        command = [*self.options.before(name), *argv]
        env = {**os.environ, **self.options.env}
        return Part(name, command, env, self.home / "logs" / f"{name}.log")

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Keep all parts up from now on."""
        self._keeper.start()
        self.power_on()

    def power_off(self) -> None:
        """End all at once, as a power cut does."""
        for part in self.parts.values():
            part.end(signal.SIGKILL)

    def power_on(self) -> None:
        """Start all, Redis first, and wait until events are taken."""
        self.socket.unlink(missing_ok=True)
        self.parts["redis"].wanted = True
        until(self.socket.exists, "Redis listens")
        for part in self.parts.values():
            part.wanted = True
        until(self.ready, "/readyz says 200", 60)

    def reload_web(self) -> None:
        """Have the web server replace the processes that answer, as at a deployment."""
        old = self.parts["web"].pids()[1:]
        os.kill(self.parts["web"].pid, signal.SIGUSR1)
        until(lambda: not set(old) & set(self.parts["web"].pids()), "the web server reloads")

    def stop(self) -> None:
        """End all, Redis last."""
        for part in reversed(self.parts.values()):
            part.end()
        self._stopping.set()

    def _keep(self) -> None:
        while not self._stopping.wait(POLL_S):
            for part in self.parts.values():
                part.tend()

    def ready(self) -> bool:
        """Whether the webhook says that it takes events."""
        try:
            with socket.create_connection((self.options.address, self.port), 2) as connection:
                connection.sendall(b"GET /readyz?accepting HTTP/1.0\r\n\r\n")
                return b" 200 " in connection.recv(100)
        except OSError:
            return False

    def redis(self, *command: str) -> Any:
        """One command, over a connection of its own."""
        import redis

        with redis.Redis(unix_socket_path=str(self.socket), socket_timeout=5) as client:
            return client.execute_command(*command)

    def quiet(self) -> bool:
        """Whether nothing accepted is left to do, asked of Redis itself."""
        try:
            waiting = self.redis("XLEN", "{demo}:inbox")
            return not waiting and not self.redis("ZCARD", "{demo}:dirty")
        except Exception:  # noqa: BLE001  # down, loading, out of memory: not quiet yet
            return False

    def work(self) -> dict[str, object]:
        """What changes while work is done: events and files that wait, publishes so far, and how
        many events each worker holds.
        """
        try:
            return {
                "events": self.redis("XLEN", "{demo}:inbox"),
                "files": self.redis("ZCARD", "{demo}:dirty"),
                "publishes": self.publishes(),
                "held": self.redis("XPENDING", "{demo}:inbox", "workers")[3],
            }
        except Exception as error:  # noqa: BLE001  # down, loading, out of memory
            return {"redis": str(error)}

    def publishes(self) -> int:
        """How often files were published so far."""
        return int(self.redis("HGET", "{demo}:counters", "publishes") or 0)

    def in_flight(self) -> bool:
        """Whether events were handed to a worker that has not settled them."""
        try:
            (group,) = self.redis("XINFO", "GROUPS", "{demo}:inbox")
            known = dict(zip(group[::2], group[1::2], strict=True))
            return int(self.redis("XLEN", "{demo}:inbox")) > int(known[b"lag"] or 0)
        except Exception:  # noqa: BLE001  # down, loading, no group yet: nobody was given anything
            return False

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of sitemapd here."""
        return subprocess.run(
            [SITEMAPD, *arguments, "--home", self.home],
            capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, **self.options.env},
        )  # fmt: skip

    def complaints(self) -> Iterator[str]:
        """The last warnings and errors in the log of each part."""
        for path in sorted((self.home / "logs").iterdir()):
            lines = path.read_text(errors="replace").splitlines()
            loud = [line for line in lines if '"warning"' in line or '"error"' in line]
            yield from (f"{path.name}: {line[:300]}" for line in loud[-4:])

    def log(self, name: str) -> str:
        """What a part said so far."""
        path = self.home / "logs" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
