"""Publish state of a site: dirty shards, the lease, blocks, file records and index lines."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import redis

from shared.errors import ShardError
from shared.sitemap.feed_writer import FeedItem
from shared.sitemap.shards import Shard, ShardState, nameable
from shared.store.client import Argument, PipelinedScript, Scripts, answering
from shared.store.counting.counters import BOUNDS_MS
from shared.store.keys import LEASE_MS, RECENT, Keys, PublishedFile, confirmed_field, moved_field
from shared.store.publishing.publish_batch import (
    DAMAGED,
    PublishBatch,
    PublishedShard,
    PublishRun,
    ShardWork,
    damage,
    index_lines,
    read_taken,
)
from shared.store.publishing.quarantine import Quarantine
from shared.store.publishing.shrink_holds import ShrinkHolds

_T = TypeVar("_T")
_UNKNOWN = ShardState(0, 0, 0, 0)


class PublishState:
    """Publish state of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client = client
        self._keys = Keys(site)
        self._scripts = Scripts(client)
        self.shrink, self.quarantine = ShrinkHolds(client, site), Quarantine(client, site)

    def dirty(self, most: int = -1) -> list[Shard]:
        """Return the shards with unpublished patches, oldest first."""
        with answering():
            members: Any = self._client.zrange(self._keys.dirty, 0, most - 1 if most > 0 else -1)
        return [shard for member in members if (shard := Shard.read(member))]

    def errand(
        self, token: str, fresh: str, shards: Sequence[Shard] = (), most: int = 1,
        aside: Iterable[Shard] = (),
    ) -> PipelinedScript:  # fmt: skip
        """Return the script of `begin`, to be pipelined after another one.

        Shards that are set `aside` are taken only by name.
        """
        keys = self._keys
        names = [part for shard in shards for part in (shard.section, shard.number)]
        return PipelinedScript(
            "publishing/begin_publish", [keys.lease, keys.dirty, keys.counters],
            token, LEASE_MS, keys.prefix, fresh, most, len(shards), *names, *map(str, aside),
        )  # fmt: skip

    def begin(
        self, token: str, fresh: str, shards: Sequence[Shard] = (), most: int = 1
    ) -> PublishBatch | str | None:
        """Take the lease and the patches of `shards`, by default of the `most` longest dirty ones.

        Return None if none is dirty; the token of the holder if the lease is taken. `fresh` becomes
        the identity of this state if it has none.
        """
        return self.begun(self.errand(token, fresh, shards, most))

    def begun(self, errand: PipelinedScript) -> PublishBatch | str | None:
        """Return the result of `begin` from the reply of `errand`; run it now if it is not done."""
        reply = errand.reply if errand.done else self._scripts.run(errand)
        if isinstance(reply, bytes):
            return reply.decode()
        if not reply:
            return None
        ident, publishes, *rest = reply
        begun = PublishBatch(PublishRun(ident.decode(), int(publishes)), [], [], {})
        for section, number, state in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
            shard = Shard(section.decode(), int(number))
            try:
                begun.states.append(ShardState.unpack(state) if state else _UNKNOWN)
                begun.shards.append(shard)
            except DAMAGED as error:
                begun.damaged[shard] = damage(shard, error)
        return begun

    def load(
        self,
        shards: Sequence[Shard],
        states: Sequence[ShardState],
        pages: Sequence[int] = (),
        damaged: dict[Shard, ShardError] | None = None,
    ) -> tuple[list[ShardWork], dict[int, dict[int, bytes]]]:
        """Return the patches and content of `shards`; `states` as `begin` returned them.

        Also returns, from the same round trip, the lines of the index files `pages`. A shard with
        damaged records is left out and added to `damaged`; without that, raises ShardError.
        """
        keys = self._keys
        with answering():
            pipe = self._client.pipeline(transaction=False)
            for shard in shards:
                pipe.hgetall(keys.taking(shard))
                pipe.hgetall(keys.blocks(shard))
                pipe.hget(keys.files(shard.section), str(shard.number))
                pipe.hmget(keys.allowed, moved_field(shard), confirmed_field(shard))
            for page in pages:
                pipe.hgetall(keys.index(page))
            replies = pipe.execute()
        lines = zip(pages, map(index_lines, replies[4 * len(shards) :]), strict=True)
        taken = []
        for at, (shard, state) in enumerate(zip(shards, states, strict=True)):
            try:
                taken.append(read_taken(shard, state, replies[4 * at : 4 * at + 4]))
            except DAMAGED as error:
                if damaged is None:
                    raise damage(shard, error) from error
                damaged[shard] = damage(shard, error)
        return taken, dict(lines)

    def lines(self, page: int) -> dict[int, bytes]:
        """Return the lines of one index file, by the ordinals of their shards."""
        with answering():
            found: Any = self._client.hgetall(self._keys.index(page))
        return index_lines(found)

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

    def commit(
        self,
        token: str,
        done: Iterable[PublishedShard],
        note: Mapping[str, object],
        engines: Iterable[str] = (),
        took_ms: int = 0,
    ) -> int:
        """Record the published shards and release the lease.

        Return the number of publishes so far; 0 if the lease was lost: the shards are then dirty
        again. `note` goes into the event log, `engines` are notified of the pages that changed,
        `took_ms` is how long ago the patches were taken (ms).
        """
        now = time.time_ns() // 1_000_000
        said = json.dumps(note, separators=(",", ":"))
        names = "".join(f"{engine} " for engine in engines)
        bounds = "".join(f"{bound} " for bound in BOUNDS_MS)
        args: list[Argument] = [
            token, self._keys.prefix, now, RECENT, said, took_ms, RECENT, names, bounds,
        ]  # fmt: skip
        for each in done:
            taken, confirmed = each.taken, each.taken.confirmed
            told = taken.told if names else ()
            args += [
                *each.shard, each.state.generation, each.file.pack() if each.file else "",
                each.page, each.state.ordinal, each.line,
                taken.moved, "" if confirmed is None else confirmed,
                f"{each.held[0]} {each.held[1]}" if each.held else "",
                each.changed, each.lines, len(told), len(each.blocks), *told,
            ]  # fmt: skip
            for number, block in each.blocks.items():
                args += [number, block.pack() if block else b""]
        keys = self._keys
        used = [keys.lease, keys.dirty, keys.counters, keys.recent, keys.held, keys.allowed]
        used += [keys.revisions, keys.quarantine]
        return int(self._scripts("publishing/commit_publish", used, *args))

    def take(self, token: str) -> bool:
        """Take the lease and no patches; False if it is held."""
        with answering():
            return bool(self._client.set(self._keys.lease, token, nx=True, px=LEASE_MS))

    def holds(self, token: str) -> bool:
        """Return True if `token` still holds the lease."""
        with answering():
            holder: Any = self._client.get(self._keys.lease)
        return bool(holder == token.encode())

    def hold(self, token: str) -> bool:
        """Extend the lease by LEASE_MS; False if it was lost."""
        return bool(self._scripts("publishing/extend_lease", [self._keys.lease], token, LEASE_MS))

    def release(self, token: str, shards: Sequence[Shard] = ()) -> None:
        """Release the lease of `token`, the caller's or that of a dead publisher.

        If it was lost, `shards` are dirty again: their files may be older than the new holder's.
        """
        names = [part for shard in shards for part in (shard.section, shard.number)]
        now = time.time_ns() // 1_000_000
        keys = [self._keys.lease, self._keys.dirty]
        self._scripts("publishing/release_lease", keys, token, self._keys.prefix, now, *names)

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

    def soil(self, shards: Iterable[Shard]) -> None:
        """Mark `shards` as dirty, even without patches."""
        now = time.time_ns() // 1_000_000
        marks = {str(shard): now for shard in shards}
        if marks:
            with answering():
                self._client.zadd(self._keys.dirty, marks, nx=True)

    def shards(self, sections: Iterable[str]) -> dict[Shard, ShardState]:
        """Return every shard of `sections` that ever existed, in order."""
        return self._by_shard(sections, self._keys.shards, ShardState.unpack)

    def files(self, sections: Iterable[str]) -> dict[Shard, PublishedFile]:
        """Return every shard file of `sections` as last written."""
        return self._by_shard(sections, self._keys.files, PublishedFile.unpack)

    def _by_shard(
        self, sections: Iterable[str], key: Callable[[str], str], unpack: Callable[[bytes], _T]
    ) -> dict[Shard, _T]:
        names = list(sections)
        with answering():
            pipe = self._client.pipeline(transaction=False)
            for section in names:
                pipe.hgetall(key(section))
            replies = pipe.execute()
        return {
            Shard(section, int(number)): unpack(stored[number])
            for section, stored in zip(names, replies, strict=True)
            for number in sorted(filter(bytes.isdigit, stored), key=int)
        }
