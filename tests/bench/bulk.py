"""Load a large site in bulk: the records and files that applying and publishing would leave.

The first shard is applied and published by the code of the project, as Bed.load does. All others
are written as that code stores them, many shards in one script, the files without a flush. The last
publish is again that of the project: it writes the indexes and robots.txt. A test holds the outcome
to that of Bed.load, byte for byte.
"""

from __future__ import annotations

import gc
import os
import random
import struct
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

import redis

from shared.batches import batches
from shared.domain.page_record import Place
from shared.events.event import Event
from shared.sitemap import blocks, fragments
from shared.sitemap.shards import Shard, ShardState
from shared.store.keys import Keys
from shared.store.publishing.publish_batch import PublishedFile
from tests.bench.bed import ARRIVED_MS, Bed
from worker.publishing.shard_file import ShardFiles

Page = tuple[str, str]
"""The loc and the lastmod of a page."""

SHARDS = 50
"""Shards whose records are written together: a bucket gets the more fields in one command."""
MOST_SAMPLED = 2_000

_REWRITE_S = 600.0
_TAIL = struct.Struct(">BHQ5s")
_SIZE = 30
"""Bytes of a digest and the page record of a page without an owner."""
_WRITE = """
-- Write page records.
--
-- KEYS 1 inbox, for the slot of the site; loc:<bucket> are of the same
-- ARGV 1 prefix of the buckets, 2 digests of 8 bytes in order, each followed by its record, 3 bytes
--      of both
local records, size, at = ARGV[2], tonumber(ARGV[3]), 1
while at < #records do
  local bucket, found = string.sub(records, at, at + 1), {}
  repeat
    found[#found + 1] = string.sub(records, at + 2, at + 7)
    found[#found + 1] = string.sub(records, at + 8, at + size - 1)
    at = at + size
  until string.sub(records, at, at + 1) ~= bucket
  local high, low = string.byte(bucket, 1, 2)
  redis.call('HSET', ARGV[1] .. string.format('%x', high * 256 + low), unpack(found))
end
"""


def load(bed: Bed, pages: Iterable[Page], count: int) -> list[Event]:
    """List `count` pages in the empty site of `bed` and publish them; a sample of them.

    Without waiting for the disk: nothing is measured while this runs. The append-only file is
    written at the end, as by a rewrite.
    """
    source, loader = islice(pages, count), _Loader(bed)
    kept = bed.load([event(page) for page in islice(source, loader.limits.urls)])
    bed.client.config_set("appendonly", "no")
    step = max(1, count // MOST_SAMPLED)
    gc.disable()  # records without cycles: a fifth of the time
    with ThreadPoolExecutor(1) as sender:
        sent: Future[None] | None = None
        for many in batches(source, SHARDS * loader.limits.urls):
            kept += map(event, many[::step])
            made = loader.make(many)
            if sent is not None:
                sent.result()
            sent = sender.submit(loader.send, *made)
        if sent is not None:
            sent.result()
    loader.finish()
    _append_only(bed.client)
    # What was written without a flush would be flushed with the first file that is measured.
    os.sync()
    random.Random(1).shuffle(kept)
    gc.enable()
    gc.collect()
    gc.freeze()
    return kept


def event(page: Page) -> Event:
    """The event that lists `page`."""
    return Event("upsert", page[0], lastmod=page[1])


def _append_only(client: redis.Redis) -> None:
    """Have the server write its append-only file, which it did not keep meanwhile."""
    client.config_set("appendonly", "yes")
    deadline = time.monotonic() + _REWRITE_S
    while (info := client.info("persistence"))["aof_rewrite_in_progress"] or info[
        "aof_rewrite_scheduled"
    ]:
        assert time.monotonic() < deadline, "the append-only file is not written"
        time.sleep(0.05)


class _Made(NamedTuple):
    """One shard: its number, ordinal, state, file, index line and packed blocks."""

    number: int
    ordinal: int
    state: bytes
    file: str
    line: bytes
    blocks: dict[int, bytes]


class _Loader:
    """Writer of the shards that follow the first one."""

    def __init__(self, bed: Bed) -> None:
        self._bed, self._client, self._keys = bed, bed.client, Keys(bed.name)
        ((self._section, self.limits),) = bed.site.limits.items()
        assert bed.site.form == "xml"
        self._files, self._root = ShardFiles(bed.site), bed.site.web_root
        self._start = fragments.urlset_start(styled=bed.site.viewer)
        self._urls, self._made, self._now = self.limits.urls, 1, int(time.time())
        self._tail = (1, 0, 0, 0)
        self._write = bed.client.register_script(_WRITE)

    def make(self, pages: Sequence[Page]) -> tuple[bytes, list[_Made]]:
        """Write the files of `pages`; return their records in order, and the new shards."""
        records: list[bytes] = []
        made = [self._shard(part, records) for part in batches(pages, self.limits.urls)]
        records.sort()
        return b"".join(records), made

    def _shard(self, pages: Sequence[Page], records: list[bytes]) -> _Made:
        section = self._bed.pages.sections.numbers()[self._section]
        self._made += 1
        shard, packed, raws = Shard(self._section, self._made), dict[int, bytes](), list[bytes]()
        for number, part in enumerate(batches(pages, self.limits.block_urls)):
            place, lines = Place(section, shard.number, number).pack(), []
            for loc, lastmod in part:
                self._urls += 1
                line = f"<url><loc>{loc}</loc><lastmod>{lastmod}</lastmod></url>\n".encode()
                lines.append(line)
                when = ARRIVED_MS + self._urls << 16
                records.append(
                    blake2b(loc.encode(), digest_size=8).digest() + place
                    + _TAIL.pack(0, len(line), when, blake2b(line, digest_size=5).digest())
                )  # fmt: skip
            raw = b"".join(sorted(lines))
            assert len(raw) <= self.limits.block_size
            packed[number] = blocks.deflate(raw, len(part)).pack()
            raws.append(raw)
            self._tail = (shard.number, number, len(part), len(raw))
        return self._placed(shard, len(pages), packed, raws)

    def _placed(
        self, shard: Shard, urls: int, packed: dict[int, bytes], raws: list[bytes]
    ) -> _Made:
        """Write the file of `shard`; return the shard as published by one pass."""
        length, ordinal = sum(map(len, raws)), shard.number - 1
        path = self._root / self._files.path(shard)
        path.write_bytes(b"".join((self._start, *raws, fragments.URLSET_END)))
        path.chmod(0o644)
        os.utime(path, (self._now, self._now))
        size, generation = path.stat().st_size, len(packed)
        file = PublishedFile(generation, self._now, urls, size, urls, self._now)
        state = ShardState(generation, urls, length, ordinal).pack()
        line = self._files.line(shard, self._now)
        return _Made(shard.number, ordinal, state, file.pack(), line, packed)

    def send(self, records: bytes, made: Sequence[_Made]) -> None:
        """Store the records and the shards."""
        keys, name, per_index = self._keys, self._section, self._bed.site.index_shards
        self._write([keys.inbox], [f"{keys.prefix}loc:", records, _SIZE])
        pipe = self._client.pipeline(transaction=False)
        for each in made:
            pipe.hset(keys.blocks(Shard(name, each.number)), mapping=each.blocks)
            pipe.hset(keys.shards(name), str(each.number), each.state)
            pipe.hset(keys.files(name), str(each.number), each.file)
            pipe.hset(keys.index(each.ordinal // per_index), str(each.ordinal), each.line)
        pipe.execute()

    def finish(self) -> None:
        """Store the totals, and have the publisher write the indexes and robots.txt."""
        keys, sections = self._keys, self._bed.pages.sections.numbers()
        if self._made > 1:
            self._client.hincrby(keys.counters, "shards", self._made - 1)
            self._client.hincrby(keys.counters, "urls", self._urls - self.limits.urls)
            tail = struct.pack(">4I", *self._tail)
            self._client.hset(keys.tails, str(sections[self._section]), tail)
        for ordinal in range(0, self._made, self._bed.site.index_shards):
            assert self._bed.publisher.publish(again=[Shard(self._section, ordinal + 1)])
