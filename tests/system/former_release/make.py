"""Make `state.tar.xz`: the home directory of a former release, with a state of everything it knows.

    git worktree add ../former 7171b39
    PYTHONPATH=../former python -m deploy.cli ...   # that is what this runs, by its own processes
    python tests/system/former_release/make.py ../former

The release needs libraries that this one needs as well. Kept are its configuration, the log of its
Redis (one base file, compacted), its files, and `expected.json`: what every page must be once all
that waits is published. No process of it runs when they are copied: its worker was killed with
events in its hands.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis

HERE = Path(__file__).parent
KEY = b"k" * 32
BASE = "https://www.example.com/"
CONFIG = f"""
[sites.demo]
base_url = "{BASE}"
web_root = "public"
secrets = ["whsec_{base64.b64encode(KEY).decode()}"]
tokens = ["the-token-of-demo"]
publish_interval = 0.2
shard_urls = 400
feed = true
robots = "create"

[sites.demo.sections.news]
news = true

[sites.demo.sections.blog]
paths = ["/blog/*"]
form = "x"
"""


def pages() -> list[dict[str, Any]]:
    """What is sent first, in this order."""
    found: list[dict[str, Any]] = []
    for n in range(1500):
        page = {"loc": f"{BASE}articles/{n:05}", "lastmod": f"2025-{1 + n % 12:02}-{1 + n % 28:02}"}
        found.append(page | ({"id": f"a{n}"} if n % 2 else {}))
    found += [{"loc": f"{BASE}blog/{n}", "lastmod": "2026-02-03"} for n in range(450)]
    for n in range(40):
        for lang in ("de", "en", "fr"):
            loc = f"{BASE}{lang}/{n}"
            found.append({"loc": loc, "group": f"g{n}", "lang": lang, "id": f"{lang}{n}"})
    return found


class Former:
    """`sitemapd up` of the former release."""

    def __init__(self, source: Path, home: Path) -> None:
        self.home, self.environment = home, {**os.environ, "PYTHONPATH": str(source)}
        self.log = (home.parent / "up.log").open("w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from deploy.cli import main; main()", "up", "--home", home,
             "--http", "127.0.0.1:0"], stdout=self.log, stderr=self.log, env=self.environment,
            cwd=source,
        )  # fmt: skip
        self.address = ""
        wait(self._ready)

    def _ready(self) -> bool:
        self.log.seek(0)
        found = [line.split()[1] for line in self.log if line.startswith("ready ")]
        self.address = found[0] if found else ""
        assert self.process.poll() is None, self.log.name
        return bool(found)

    def send(self, *events: dict[str, Any]) -> None:
        body = json.dumps([{"type": "upsert", **event} for event in events]).encode()
        ident, now = f"msg_{secrets.token_hex(8)}", str(int(time.time()))
        mac = hmac.digest(KEY, f"{ident}.{now}.".encode() + body, "sha256")
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=30)
        connection.request("POST", "/v1/sites/demo/events", body, {
            "content-type": "application/json", "webhook-id": ident, "webhook-timestamp": now,
            "webhook-signature": "v1," + base64.b64encode(mac).decode(),
        })  # fmt: skip
        reply = connection.getresponse()
        assert reply.status == 202, reply.read()
        connection.close()

    def client(self) -> redis.Redis:
        arguments = Path(f"/proc/{self.pids()['redis']}/cmdline").read_bytes().decode().split("\0")
        return redis.Redis(unix_socket_path=arguments[arguments.index("--unixsocket") + 1])

    def pids(self) -> dict[str, int]:
        return dict(json.loads((self.home / "run" / "pids.json").read_text()))

    def kill(self) -> None:
        for pid in (self.process.pid, *self.pids().values()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def wait(holds: Any) -> None:
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def fill(former: Former, client: redis.Redis) -> dict[str, str | None]:
    """Send everything; return what every page is at the end: loc -> lastmod."""
    prefix, expected = "{demo}:", dict[str, str | None]()
    every = pages()

    def quiet() -> bool:
        return not client.xlen(prefix + "inbox") and not client.zcard(prefix + "dirty")

    for at in range(0, len(every), 300):
        former.send(*every[at : at + 300])
        wait(quiet)
    expected |= {page["loc"]: page.get("lastmod") for page in every}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for n in range(12):
        paper = {"name": "The Paper", "language": "en"}
        news = {"publication": paper, "publication_date": now, "title": f"News {n}"}
        former.send({"loc": f"{BASE}today/{n}", "news": news})
        expected[f"{BASE}today/{n}"] = None
    wait(quiet)
    # Tombstones, by URL and by id; a page that moved, by id.
    for n in range(0, 60, 2):
        former.send({"type": "delete", "loc": f"{BASE}articles/{n:05}"})
        former.send({"type": "delete", "id": f"a{n + 1}"})
        expected.pop(f"{BASE}articles/{n:05}")
        expected.pop(f"{BASE}articles/{n + 1:05}")
    former.send({"loc": f"{BASE}moved", "id": "a101"})
    expected[f"{BASE}moved"] = None
    expected.pop(f"{BASE}articles/00101")
    wait(quiet)
    # A shard that the shrink guard holds: most of blog/1 goes at once, and still is in its file.
    former.send(*({"type": "delete", "loc": f"{BASE}blog/{n}"} for n in range(300)))
    wait(lambda: client.hlen(prefix + "held") == 1)
    # Dead letters: events that no worker can read.
    for n in range(3):
        client.xadd(prefix + "inbox", {"e": f'["not an event {n}"]'})
    former.send({"loc": f"{BASE}after"})
    expected[f"{BASE}after"] = None
    wait(lambda: client.xlen(prefix + "dead") == 3 and not client.xlen(prefix + "inbox"))
    # What is left to do: events in the hands of a worker that is killed, and in nobody's.
    os.kill(former.process.pid, signal.SIGSTOP)  # so that it starts no other
    os.kill(former.pids()["schedule"], signal.SIGKILL)
    os.kill(former.pids()["worker"], signal.SIGKILL)
    for n in range(200, 260):
        former.send({"loc": f"{BASE}articles/{n:05}", "lastmod": "2026-03-04"})
        expected[f"{BASE}articles/{n:05}"] = "2026-03-04"
    former.send({"type": "delete", "id": "de7"})
    expected.pop(f"{BASE}de/7")
    client.xreadgroup("workers", "local", {prefix + "inbox": ">"}, count=25)
    return expected


def main() -> None:
    source = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        (home / "public").mkdir(parents=True)
        config = home / "sitemapd.toml"
        config.write_text(CONFIG.replace('form = "x"\n', ""))
        config.chmod(0o600)
        former = Former(source, home)
        try:
            client = former.client()
            expected = fill(former, client)
            client.bgrewriteaof()
            wait(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
            client.close()
        finally:
            former.kill()
        for name in ("run", "logs", "lock"):
            path = home / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        (home / "expected.json").write_text(json.dumps(expected))
        with tarfile.open(HERE / "state.tar.xz", "w:xz", preset=9) as archive:
            archive.add(home, "home")
    print((HERE / "state.tar.xz").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
