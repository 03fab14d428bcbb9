"""Counts of a site as a whole, and the records they must be the sum of, read at one instant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from shared.domain.page_record import digest_of
from shared.sitemap.shards import Shard, ShardState
from shared.store.client import answering
from shared.store.keys import field
from shared.store.pages.changes import loc_of
from shared.store.pages.shard_contents import ShardContent, content_of, numbered, state_of
from shared.store.pages.snapshots import Snapshots
from shared.store.publishing.publish_batch import PublishedFile

_T = TypeVar("_T")


class Overview(NamedTuple):
    """Counts and file records of a site as a whole."""

    counters: Mapping[bytes, bytes]
    states: Mapping[Shard, ShardState]
    files: Mapping[Shard, PublishedFile]
    lines: Mapping[int, Mapping[int, bytes]]
    waiting: frozenset[Shard]
    queued: frozenset[Shard]


class Coming(NamedTuple):
    """Scheduled news entry as stored (empty: no longer scheduled), when it is due (ms since 1970;
    None: never), the records of its page and of the entry itself (empty: none).
    """

    stored: bytes
    hour: int | None
    page: bytes
    twin: bytes


class Summaries(Snapshots):
    """Reader of the state of one site and its counts."""

    def overview(self, sections: Sequence[str]) -> Overview:
        """Return the counts; `lines` of every index file, `waiting`: shards with patches, `queued`:
        dirty shards and those that the shrink guard holds.
        """
        known = [*self._states(sections)]
        with answering():
            ever = int(self._client.hget(self.keys.counters, "shards") or 0)
        pages = range(max([ever, *(state.ordinal + 1 for _, state in known)], default=0))

        def ask(pipe: Any) -> None:
            keys = self.keys
            pipe.hgetall(keys.counters)
            for section in sections:
                pipe.hgetall(keys.shards(section))
                pipe.hgetall(keys.files(section))
            for page in pages:
                pipe.hgetall(keys.index(page))
            for shard, _ in known:
                pipe.exists(keys.pending(shard), keys.taking(shard))
            pipe.zrange(keys.dirty, 0, -1)
            pipe.hkeys(keys.held)

        counters, *rest = self.at_once(ask)
        per, rest = rest[: 2 * len(sections)], rest[2 * len(sections) :]
        lines, waits, (dirty, held) = rest[: len(pages)], rest[len(pages) : -2], rest[-2:]
        return Overview(
            counters,
            _by_shard(sections, per[::2], state_of),
            _by_shard(sections, per[1::2], PublishedFile.unpack),
            {n: numbered(page) for n, page in zip(pages, lines, strict=True) if page},
            frozenset(shard for (shard, _), found in zip(known, waits, strict=True) if found),
            frozenset(filter(None, map(Shard.read, (*dirty, *held)))),
        )  # fmt: skip

    def _states(self, sections: Sequence[str]) -> Iterator[tuple[Shard, ShardState]]:
        with answering():
            pipe = self._client.pipeline(transaction=False)
            for section in sections:
                pipe.hgetall(self.keys.shards(section))
            found = pipe.execute()
        yield from _by_shard(sections, found, state_of).items()

    def counted(
        self, sections: Sequence[str], mixed: Sequence[Shard]
    ) -> tuple[int, dict[Shard, ShardState], list[ShardContent]]:
        """Return the counted number of listed pages, all shard states, the content of `mixed`."""

        def ask(pipe: Any) -> None:
            pipe.hget(self.keys.counters, "urls")
            for section in sections:
                pipe.hgetall(self.keys.shards(section))
            self.ask_content(pipe, mixed)

        urls, *rest = self.at_once(ask)
        of = rest[len(sections) :]
        states = _by_shard(sections, rest[: len(sections)], state_of)
        content = [content_of(s, of[5 * n : 5 * n + 5]) for n, s in enumerate(mixed)]
        return int(urls or 0), states, content

    def tail(self, number: int, shard: Shard) -> tuple[bytes, list[int], ShardContent]:
        """Return the place of new pages of section `number` (empty: none yet), the numbers of its
        shards, and the content of `shard`, one of them.
        """

        def ask(pipe: Any) -> None:
            pipe.hget(self.keys.tails, str(number))
            pipe.hkeys(self.keys.shards(shard.section))
            self.ask_content(pipe, [shard])

        tail, numbers, *rest = self.at_once(ask)
        return tail or b"", sorted(map(int, numbers)), content_of(shard, rest)

    def to_come(self, keys: Sequence[str]) -> list[Coming]:
        """Return the state of these scheduled news entries."""

        def ask(pipe: Any) -> None:
            for key in keys:
                pipe.hget(self.keys.coming, key)
                pipe.zscore(self.keys.expiry, key)
                for name in (loc_of(key), key):
                    digest = digest_of(name)
                    pipe.hget(self.keys.loc(digest), field(digest))

        replies = self.at_once(ask)
        return [
            Coming(stored or b"", None if hour is None else int(hour), page or b"", twin or b"")
            for stored, hour, page, twin in zip(*(replies[n::4] for n in range(4)), strict=True)
        ]

    def coming(self) -> Iterator[str]:
        """Yield the keys of all scheduled news entries. Not at one instant."""
        with answering():
            for key, _ in self._client.hscan_iter(self.keys.coming):
                yield key.decode(errors="replace")

    def fed(self) -> tuple[set[bytes], dict[bytes, bytes], dict[bytes, bytes]]:
        """Return the locs in `feed`, the feed items by loc, and the page records by loc."""
        with answering():
            found: Any = self._client.zrange(self.keys.feed, 0, -1)
        locs = {loc: digest_of(loc.decode(errors="replace")) for loc in found}

        def ask(pipe: Any) -> None:
            pipe.zrange(self.keys.feed, 0, -1)
            pipe.hgetall(self.keys.feed_items)
            for digest in locs.values():
                pipe.hget(self.keys.loc(digest), field(digest))

        order, items, *records = self.at_once(ask)
        return set(order), items, {loc: r or b"" for loc, r in zip(locs, records, strict=True)}


def _by_shard(
    sections: Sequence[str], replies: Sequence[Mapping[bytes, bytes]], unpack: Callable[[bytes], _T]
) -> dict[Shard, _T]:
    return {
        Shard(section, int(number)): unpack(stored[number])
        for section, stored in zip(sections, replies, strict=True)
        for number in sorted(stored, key=int)
    }
