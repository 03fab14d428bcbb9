"""Publish state of a site, read and repaired: dirty shards, blocks, file records, index lines.

What a publish pass takes and commits is in publish_batch.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import redis

from shared.sitemap.blocks import Block
from shared.sitemap.feed_writer import FeedItem
from shared.sitemap.shards import Shard, ShardState, nameable
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.layouts.version import layout_reading
from shared.store.publishing.publish_batch import PublishedFile
from shared.store.publishing.publish_work import DAMAGED, PublishRun, damage, index_lines
from shared.store.publishing.quarantine import Quarantine
from shared.store.publishing.shrink_holds import ShrinkHolds
from shared.store.round_trips import Reading, gathered, pairs, read
from shared.store.servers.replica_wait import confirm, histories

_T = TypeVar("_T")


class PublishState:
    """Publish state of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._site, self._keys = client, site, keys_of(site)
        self.shrink, self.quarantine = ShrinkHolds(client, site), Quarantine(client, site)

    @property
    def client(self) -> redis.Redis:
        """The client of the store."""
        return self._client

    def dirty(self, most: int = -1) -> list[Shard]:
        """Return the shards with unpublished patches, oldest first."""
        with answering():
            members: Any = self._client.zrange(self._keys.dirty, 0, most - 1 if most > 0 else -1)
        return [shard for member in members if (shard := Shard.read(member))]

    def content(self, shard: Shard) -> dict[int, Block]:
        """Return the blocks of `shard` as last published. Raises ShardError if one is damaged."""
        with answering():
            stored: Any = self._client.hgetall(self._keys.blocks(shard))
        try:
            return {int(number): Block.unpack(stored[number]) for number in sorted(stored, key=int)}
        except DAMAGED as error:
            raise damage(shard, error) from error

    def published(self, shard: Shard) -> tuple[PublishedFile | None, dict[int, Block]]:
        """Return the file of `shard` as last published, and its blocks, as they are at one moment.

        None without a file. Raises ShardError if a record is damaged.
        """
        with answering():
            pipe = self._client.pipeline()
            pipe.hget(self._keys.files(shard.section), str(shard.number))
            pipe.hgetall(self._keys.blocks(shard))
            file, stored = pipe.execute()
        try:
            blocks = {int(number): Block.unpack(stored[number]) for number in stored}
            return PublishedFile.unpack(file) if file else None, dict(sorted(blocks.items()))
        except DAMAGED as error:
            raise damage(shard, error) from error

    def lines(self, page: int) -> dict[int, bytes]:
        """Return the lines of one index file, by the ordinals of their shards."""
        with answering():
            found: Any = self._client.hgetall(self._keys.index(page))
        return index_lines(found.items())

    def pages(self, per_page: int) -> list[int]:
        """Return the numbers of the index files that list any shard, `per_page` shards each."""
        with answering():
            shards = int(self._client.hget(self._keys.counters, "shards") or 0)
            pipe = self._client.pipeline(transaction=False)
            count = -(-shards // per_page)
            for page in range(count):
                pipe.exists(self._keys.index(page))
            return [page for page, found in enumerate(pipe.execute()) if found] if count else []

    def repage(self, per_page: int) -> int:
        """Move each index line to its file for `per_page` lines each; return the number moved.

        The caller must hold the lease.
        """
        with answering():
            shards = int(self._client.hget(self._keys.counters, "shards") or 0)
            read = self._client.pipeline(transaction=False)
            for page in range(shards):
                read.hgetall(self._keys.index(page))
            write, moved = self._client.pipeline(), 0
            write.hdel(self._keys.counters, "publisher")  # nobody knows the lines any more
            for page, lines in enumerate(read.execute()):
                for ordinal, line in lines.items():
                    if int(ordinal) // per_page != page:
                        write.hset(self._keys.index(int(ordinal) // per_page), ordinal, line)
                        write.hdel(self._keys.index(page), ordinal)
                        moved += 1
            write.execute()
        return moved

    def write_lines(self, lines: Mapping[int, Mapping[int, bytes]]) -> None:
        """Write these lines, by index file and ordinal. The caller must hold the lease."""
        for page, by_ordinal in lines.items():
            items = [part for ordinal, line in by_ordinal.items() for part in (ordinal, line)]
            with answering():
                self._client.hdel(self._keys.counters, "publisher")
                self._client.hset(self._keys.index(page), items=items)

    def run(self, fresh: str) -> PublishRun:
        """Return the run marker of this state; `fresh` becomes its identity if it has none."""
        with answering():
            found: Any = self._client.hmget(self._keys.counters, "run", "publishes")
            if found[0] is None:
                self._client.hsetnx(self._keys.counters, "run", fresh)
                return self.run(fresh)
        return PublishRun(found[0].decode(), int(found[1] or 0))

    def known_run(self) -> PublishRun:
        """Return the run marker of this state as stored: an empty identity if it has none."""
        with answering():
            found: Any = self._client.hmget(self._keys.counters, "run", "publishes")
        return PublishRun((found[0] or b"").decode(), int(found[1] or 0))

    def confirm(self, run: PublishRun) -> None:
        """Wait until replicas have the identity of this state, which files are to name.

        Raises StoreDownError as replica_wait.confirm does.
        """
        confirm(self._client, ("HSET", self._keys.counters, "run", run.ident))

    def histories(self) -> tuple[str, str]:
        """Return what replica_wait.histories does."""
        return histories(self._client, self._keys.counters)

    def feed(self) -> dict[str, FeedItem]:
        """Return the feed items by loc, without damaged ones."""
        with answering():
            stored: Any = self._client.hgetall(self._keys.feed_items)
        found = {
            loc.decode(errors="replace"): FeedItem.unpack(item) for loc, item in stored.items()
        }
        return {
            loc: item for loc, item in found.items() if item and loc.isascii() and loc.isprintable()
        }

    def forget_feed(self) -> None:
        """Delete the feed items: without feeds, deleted pages are no longer removed from them."""
        with answering():
            self._client.delete(self._keys.feed, self._keys.feed_items)

    def sections(self) -> list[str]:
        """Return the names of all sections that ever existed."""
        with answering():
            names: Any = self._client.hkeys(self._keys.sections)
        return sorted(name for each in names if nameable(name := each.decode(errors="replace")))

    def mark_dirty(self, shards: Iterable[Shard]) -> None:
        """Mark `shards` as dirty, even without patches."""
        now = time.time_ns() // 1_000_000
        marks = {str(shard): now for shard in shards}
        if marks:
            with answering():
                self._client.zadd(self._keys.dirty, marks, nx=True)

    def shards(self, sections: Iterable[str]) -> dict[Shard, ShardState]:
        """Return every shard of `sections` that ever existed, in order. Raises LayoutError."""
        return self._current(self._by_shard(sections, self._keys.shards, ShardState.unpack))

    def files(self, sections: Iterable[str]) -> dict[Shard, PublishedFile]:
        """Return every shard file of `sections` as last written. Raises LayoutError."""
        return self._current(self._by_shard(sections, self._keys.files, PublishedFile.unpack))

    def _current(self, reading: Reading[_T]) -> _T:
        """Return the value of `reading` of a state in the current layout. Raises LayoutError."""
        both: list[Reading[Any]] = [layout_reading(self._keys), reading]
        layout, found = read(self._client, gathered(both))
        if not layout.current:
            raise layout.refusal(self._site)
        value: _T = found
        return value

    def _by_shard(
        self, sections: Iterable[str], key: Callable[[str], str], unpack: Callable[[bytes], _T]
    ) -> Reading[dict[Shard, _T]]:
        names = list(sections)
        replies = yield [("HGETALL", key(section)) for section in names]
        return _unpacked(zip(names, map(pairs, replies), strict=True), unpack)


def files_of(stored: Mapping[bytes, Mapping[bytes, bytes]]) -> dict[Shard, PublishedFile]:
    """Return the files of all sections, from the hash of each."""
    names = {each.decode(errors="replace"): files for each, files in stored.items()}
    return _unpacked(
        ((name, names[name]) for name in sorted(filter(nameable, names))), PublishedFile.unpack
    )


def _unpacked(
    sections: Iterable[tuple[str, Mapping[bytes, bytes]]], unpack: Callable[[bytes], _T]
) -> dict[Shard, _T]:
    return {
        Shard(section, int(number)): unpack(stored[number])
        for section, stored in sections
        for number in sorted(filter(bytes.isdigit, stored), key=int)
    }
