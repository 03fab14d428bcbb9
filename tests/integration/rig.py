"""One site on a real store and a real directory: send, settle, hold the outcome to the rules."""

from __future__ import annotations

import contextlib
import gzip
import math
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import redis
from lxml import etree

from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.events.event import Event, parse
from shared.sitemap import fragments, shards, w3c_dates
from shared.sitemap.blocks import Block
from shared.sitemap.html_writer import parse_name
from shared.sitemap.shards import Limits, Shard
from shared.store.inbox.inbox import Inbox
from shared.store.key_table import PERMANENT
from shared.store.keys import Keys
from shared.store.operations import event_log
from shared.store.operations.resync_requests import ResyncRequests
from shared.store.pages.page_repository import PageRepository
from shared.store.publishing.publish_batch import PublishLease
from shared.store.publishing.publish_state import PublishState
from shared.store.publishing.publish_work import PublishBatch
from tests.integration.logs import silence
from worker.checks.consistency.examination import Consistency
from worker.checks.verify import Verification
from worker.ingest.inbox_consumer import InboxConsumer
from worker.publishing.targets.web_root_watch import WebRootWatch

BASE = "https://www.example.com/"
NS = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
SCHEMAS = Path(__file__).resolve().parents[1] / "schema"
OURS = {
    ".sitemapd", "sitemap.css", "sitemap.html", "robots.txt", "atom.xml", "rss.xml",
    "changelist.xml", "capabilitylist.xml", "resourcesync.xml",
    "llms.txt", "sitemap-hosts.xml", "sitemap-contents.css", "sitemap-contents.html",
}  # fmt: skip


def as_written(path: Path) -> tuple[int, int, int, int]:
    """What any write to the file changes; st_atime is left out, for reading changes that."""
    at = path.lstat()
    return at.st_ino, at.st_mode, at.st_size, at.st_mtime_ns


class Small(Site):
    """A site whose blocks are small as well, which no administrator can configure."""

    block_urls: int = 500
    block_size: int = 128 * 1024
    file_size: int | None = None

    @property
    def limits(self) -> dict[str, Limits]:
        return {
            name: of._replace(
                block_urls=self.block_urls,
                block_size=self.block_size,
                size=self.file_size or of.size,
            )
            for name, of in super().limits.items()
        }


def settings(root: Path, *, name: str = "demo", **options: Any) -> Settings:
    """Settings of one site that publishes everything at once."""
    given: dict[str, Any] = {
        "base_url": BASE, "web_root": root, "tokens": ("0123456789abcdef",), "publish_interval": 0,
    }  # fmt: skip
    return Settings(sites={name: Small(**(given | options))}, linger=0.005)


class File(NamedTuple):
    content: bytes
    mtime_ns: int


class Rig:
    """The site `name` as a test sees it."""

    most_ahead_s = math.inf  # tests publish more often in a second than any site

    def __init__(
        self, client: redis.Redis, root: Path, *, name: str = "demo", **options: Any
    ) -> None:
        self.client, self.root, self.name = client, root, name
        self.settings = settings(root, name=name, **options)
        self.site = self.settings.sites[name]
        self.keys = Keys(name)
        self.inbox = Inbox(client, name)
        self.pages = PageRepository.of(client, name, self.site)
        self.state, self.lease = PublishState(client, name), PublishLease(client, name)
        self.resyncs = ResyncRequests(client, name)

    def parse(self, members: dict[str, Any]) -> Event:
        return parse(members, self.site.rules)

    def send(self, *items: dict[str, Any]) -> list[str]:
        """Accept events; a loc may be a path below the site."""
        events = [self.parse(_absolute(item)) for item in items]
        return self.inbox.accept(events).ids

    def begin(
        self, token: str, shards: Sequence[Shard] = (), most: int = 1
    ) -> PublishBatch | str | None:
        """Take the lease as a publisher does: see PublishLease.begun."""
        begin = self.lease.begin(token, self.site.index_shards, shards, most)
        return self.lease.begun(begin)

    def pump(self, consumer: str = "w1") -> InboxConsumer:
        return InboxConsumer(
            self.settings, self.client, self.name, consumer, most_ahead_s=self.most_ahead_s
        )

    def settle(self, *, seconds: float = 30, consumer: str = "w1") -> None:
        """Work like a worker with its sweep until nothing is left to do."""
        pump, deadline = self.pump(consumer), time.monotonic() + seconds
        with silence():
            while not self.quiet():
                assert time.monotonic() < deadline, "work is left"
                pump.run()

    def do(self, *items: dict[str, Any]) -> None:
        self.send(*items)
        self.settle()

    def now(self) -> str:
        """The clock of the store, as a W3C datetime."""
        return w3c_dates.from_epoch_s(self.resyncs.begin_ms() // 1000)

    def quiet(self) -> bool:
        return not self.inbox.waiting() and not self.state.dirty()

    def audit(self) -> Verification:
        return Verification(self.client, self.name, self.site, "audit")

    def files(self) -> dict[str, File]:
        found = {}
        for path in self.root.iterdir():
            # Quiet is said before the marker is written: a worker that runs may be at it.
            with contextlib.suppress(FileNotFoundError):
                if path.name not in OURS and not parse_name(path.name):
                    found[path.name] = File(path.read_bytes(), path.stat().st_mtime_ns)
        return found

    def shard_files(self) -> dict[str, bytes]:
        """The raw bytes of every shard file, by its name without suffix."""
        return {
            name.split(".")[0]: gzip.decompress(file.content) if name.endswith(".gz") else file[0]
            for name, file in self.files().items()
            if not name.startswith(("sitemap", "."))
        }

    def listed(self) -> dict[str, str | None]:
        """loc -> lastmod of every page in the files; a page that is listed twice is a fault."""
        found: dict[str, str | None] = {}
        for name, content in self.shard_files().items():
            if name.rpartition("-")[0] in self.site.routing.news:
                continue
            for url in etree.fromstring(content):
                loc = url.findtext(f"{NS}loc")
                assert loc not in found, f"{loc} is listed twice, again in {name}"
                found[loc] = url.findtext(f"{NS}lastmod")
        return found

    def index_files(self) -> dict[str, bytes]:
        """The raw bytes of every index file."""
        return {
            name: gzip.decompress(file.content) if name.endswith(".gz") else file.content
            for name, file in self.files().items()
            if name.startswith("sitemap")
        }

    def index(self) -> dict[str, dict[str, str]]:
        """Index file -> URL of each file it lists -> lastmod, in order."""
        return {
            name: {e.findtext(f"{NS}loc"): e.findtext(f"{NS}lastmod") for e in _tree(content)}
            for name, content in self.index_files().items()
        }

    def decided(self, after: str = "-") -> list[tuple[str, list[Any]]]:
        """The batches as the worker read them: id in `recent`, and [event id, .., reason, ..]."""
        entries: Any = self.client.xrange(self.keys.recent, f"({after}" if after != "-" else "-")
        return [
            (ident.decode(), [list(each) for each in event_log.unpack(fields[b"decided"])[0]])
            for ident, fields in entries
            if b"decided" in fields
        ]

    def reasons(self) -> list[str]:
        return [reason for _, batch in self.decided() for _, _, reason, _ in batch]

    def check(self) -> None:
        """Everything that must hold whenever the site is quiet."""
        self._check_files()
        self._check_index()
        self._check_counts()
        check_keys(self.client)
        assert not list(self.audit().verify())
        self.check_consistency()

    def check_consistency(self) -> None:
        """The state against itself, which must hold at any moment (RELIABILITY N14)."""
        assert not list(Consistency(self.client, self.name, self.site).flaws())

    def _check_files(self) -> None:
        for name, content in self.shard_files().items():
            root = _tree(content)
            if len(root):  # an empty one is kept only if that is wanted
                assert SCHEMA["urlset"].validate(root), (name, SCHEMA["urlset"].error_log)
            used = {child.nsmap[child.prefix] for child in root.iter() if child.prefix}
            assert used == {uri for prefix, uri in root.nsmap.items() if prefix}, name
            limit = self.pages.limits_of(name.rpartition("-")[0])
            assert len(root) <= limit.urls
            assert len(content) <= limit.size
        assert all(loc.startswith(BASE) for loc in self.listed())

    def _check_index(self) -> None:
        files, contents, index, listed = self.files(), self.index_files(), self.index(), []
        for name, lines in index.items():
            root = _tree(contents[name])
            assert SCHEMA["sitemapindex"].validate(root), SCHEMA["sitemapindex"].error_log
            assert len(lines) == len(root) <= self.site.index_shards
            listed += [(url.removeprefix(BASE), lastmod) for url, lastmod in lines.items()]
        on_disk = {shards.on_disk(name, self.site.form): lastmod for name, lastmod in listed}
        assert len(on_disk) == len(listed), "a file is listed twice"
        stray = {name for name in files if not name.startswith("sitemap")} ^ set(on_disk)
        assert not stray, f"on the disk and in no index, or the other way round: {stray}"
        for name, lastmod in on_disk.items():
            # Later only if somebody had lost the file and the same bytes were put back.
            assert lastmod <= w3c_dates.from_epoch_s(files[name].mtime_ns // 10**9)
        if self.site.robots == "create":
            robots = self.root / "robots.txt"
            text = robots.read_text() if robots.exists() else ""
            named = [line.split()[1] for line in text.splitlines() if line.startswith("Sitemap:")]
            assert sorted(named) == sorted(BASE + name for name in index)

    def _check_counts(self) -> None:
        """The counters of the store against the files."""
        assert self.pages.lookup.count() == len(self.listed())
        contents = self.shard_files()
        sections = self.state.sections()
        published = self.state.files(sections)
        for shard, state in self.state.shards(sections).items():
            content = contents.pop(shards.file_name(shard, "xml").removesuffix(".xml"), b"")
            urls = content.count(b"<url>")
            listed = content[content.find(b"<url>") : -len(fragments.URLSET_END)]
            size = len(listed) if urls else 0
            assert (urls, size) == (state.urls, state.size), shard
            assert self.client.exists(self.keys.pending(shard), self.keys.taking(shard)) == 0
            blocks: Any = self.client.hgetall(self.keys.blocks(shard))
            for stored in blocks.values():
                block = Block.unpack(stored)
                raw = block.raw()
                assert (block.crc, block.length) == (zlib.crc32(raw), len(raw))
                assert block.urls == raw.count(b"<url>")
            if content:
                assert (urls, len(content)) == published.pop(shard)[2:4]
        assert not contents
        assert not published


def restarted(rig: Rig, **options: Any) -> Rig:
    """The site of `rig` after a restart of its worker with other settings, settled."""
    other = Rig(rig.client, rig.root, name=rig.name, **options)
    WebRootWatch(rig.client, rig.name, other.site, "w1").look()
    other.settle()
    return other


StoredKeys = dict[bytes, tuple[bytes | None, int]]
"""Keys with their values and their remaining ms, 0 for ever."""


def stored_keys(client: redis.Redis, pattern: str = "*") -> StoredKeys:
    """Every key as a back-up has it."""
    keys: list[bytes] = client.keys(pattern)
    return {key: (client.dump(key), max(client.pttl(key), 0)) for key in keys}


def restore_keys(client: redis.Redis, stored: StoredKeys) -> None:
    """Have these keys and no others."""
    client.flushall()
    for key, (value, ttl) in stored.items():
        client.restore(key, ttl, value)  # type: ignore[arg-type]


def check_keys(client: redis.Redis) -> None:
    """Every key of a site is permanent by key_table.py, or has a time to live."""
    whole = {part for part in PERMANENT if not part.endswith(":")}
    begun = tuple(part for part in PERMANENT if part.endswith(":"))
    for key in client.scan_iter("{*"):  # and not those of Celery
        name = key.decode(errors="replace").partition("}:")[2]
        if client.ttl(key) < 0:
            known = name in whole or name.startswith(begun)
            assert known, f"{key!r} would live for ever"


def _absolute(item: dict[str, Any]) -> dict[str, Any]:
    loc = item.get("loc")
    return item if loc is None or "://" in loc else item | {"loc": BASE + loc}


def _tree(content: bytes) -> Any:
    return etree.fromstring(content, etree.XMLParser(resolve_entities=False, huge_tree=True))


SCHEMA = {
    name: etree.RelaxNG(etree.parse(SCHEMAS / f"{name}.rng")) for name in ("urlset", "sitemapindex")
}
