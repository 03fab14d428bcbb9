"""Sitemaps by plain Celery, a task for each event: what a developer would write, as a baseline.

A task stores its page in a Redis hash, marks the shard as dirty and, unless one is due, sends the
task that publishes a second later: all of this in one MULTI. That task writes each dirty shard and
the index from the hashes, durably. The application is that of tests/faults, with every safe setting
of Celery; the worker has one process, as the inbox consumer it is compared with.
"""

from __future__ import annotations

import os
from pathlib import Path
from xml.sax.saxutils import escape
from zlib import crc32

import redis

from tests.faults.plain_celery_app import create

STORED, VISIBLE = "stored", "visible"
"""Keys: how many tasks stored their page, and how many of these were published."""
INTERVAL_S = 1.0
_DIRTY, _DUE = "dirty", "due"
_HEAD = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE = b'"http://www.sitemaps.org/schemas/sitemap/0.9"'


def broker(path: str) -> str:
    """The address of the server behind the socket `path`, as Celery's."""
    return f"redis+socket://{path}"


_socket = os.environ.get("CELERY_PAGES_SOCKET", "")
app = create(broker(_socket), "")
client = redis.Redis(unix_socket_path=_socket)


def shard_of(loc: str, shards: int) -> str:
    """The key of the hash that holds the page `loc`."""
    return f"pages-{crc32(loc.encode()) % shards}"


def entry(loc: str, lastmod: str) -> str:
    """The line of a page."""
    return f"<url><loc>{escape(loc)}</loc><lastmod>{lastmod}</lastmod></url>"


@app.task(name="store", shared=False)
def store(loc: str, lastmod: str, shards: int) -> None:
    """Take one event."""
    shard = shard_of(loc, shards)
    with client.pipeline(transaction=True) as pipe:
        pipe.hset(shard, loc, entry(loc, lastmod))
        pipe.sadd(_DIRTY, shard)
        pipe.incr(STORED)
        pipe.set(_DUE, 1, nx=True, ex=60)
        first = pipe.execute()[-1]
    if first:
        publish.apply_async(countdown=INTERVAL_S)


@app.task(name="publish", shared=False)
def publish() -> None:
    """Write what is dirty."""
    with client.pipeline(transaction=True) as pipe:
        pipe.delete(_DUE)
        pipe.smembers(_DIRTY)
        pipe.delete(_DIRTY)
        pipe.get(STORED)
        _, dirty, _, stored = pipe.execute()
    root = Path(os.environ["CELERY_PAGES_ROOT"])
    for shard in dirty:
        lines = b"\n".join(sorted(client.hvals(shard)))
        urlset = b"<urlset xmlns=%s>\n%s\n</urlset>\n" % (_NAMESPACE, lines)
        _write(root / f"{shard.decode()}.xml", _HEAD + urlset)
    names = sorted(path.name for path in root.glob("pages-*.xml"))
    listed = "\n".join(
        f"<sitemap><loc>https://example.com/{name}</loc></sitemap>" for name in names
    )
    index = b"<sitemapindex xmlns=%s>\n%s\n</sitemapindex>\n" % (_NAMESPACE, listed.encode())
    _write(root / "sitemap.xml", _HEAD + index)
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(directory)
    os.close(directory)
    client.set(VISIBLE, stored)


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_suffix(".new")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)
