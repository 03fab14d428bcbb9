"""Scan of the pages a site lists, with unpublished patches or as published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import redis

from shared.sitemap import blocks, fragments
from shared.sitemap.blocks import Block
from shared.sitemap.shards import Shard
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.publishing.publish_batch import patches_of
from shared.store.publishing.publish_state import PublishState


class PageScan:
    """Reader of the shards of one site, one after the other and one block at a time."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, keys_of(site)
        self._state = PublishState(client, site)

    def shards(self, sections: list[str]) -> dict[Shard, int]:
        """Return the shards of `sections` that list pages, and the number of pages of each."""
        found = self._state.shards(sections)
        return {shard: state.urls for shard, state in found.items() if state.urls}

    def locs(self, shard: Shard) -> Iterator[str]:
        """Yield the pages of `shard` at one instant.

        A page that moves to another shard meanwhile may be yielded there again, or not at all.
        """
        with answering():
            # In one transaction: between two reads a publisher might merge patches into blocks.
            pipe = self._client.pipeline(transaction=True)
            pipe.hgetall(self._keys.blocks(shard))
            pipe.hgetall(self._keys.taking(shard))
            pipe.hgetall(self._keys.pending(shard))
            stored, taking, pending = pipe.execute()
        merged: dict[int, Any] = {int(number): Block.unpack(raw) for number, raw in stored.items()}
        older, newer = patches_of(taking.values()), patches_of(pending.values())
        for number in sorted({*merged, *older, *newer}):
            raw = merged[number].raw() if number in merged else b""
            patches = {**older.get(number, {}), **newer.get(number, {})}
            if patches:
                raw, _ = blocks.edit(raw, patches)
            for line in fragments.lines(raw):
                yield line[:-1].decode()

    def published(self, shards: Sequence[Shard]) -> list[list[Block]]:
        """Return the blocks of each of `shards` as published last, all at one instant."""
        with answering():
            pipe = self._client.pipeline(transaction=True)
            for shard in shards:
                pipe.hgetall(self._keys.blocks(shard))
            stored = pipe.execute()
        return [[Block.unpack(blocks_[n]) for n in sorted(blocks_, key=int)] for blocks_ in stored]

    def overdue(self, before_ms: int, most: int) -> tuple[int, list[str]]:
        """Return the number of scheduled entries due before `before_ms` (ms since 1970), and the
        keys of up to `most` (of news: batch_state.NEWS + loc), the longest overdue first.
        """
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.zcount(self._keys.expiry, "-inf", before_ms)
            pipe.zrangebyscore(self._keys.expiry, "-inf", before_ms, start=0, num=most)
            count, names = pipe.execute()
        return int(count), [name.decode() for name in names]
