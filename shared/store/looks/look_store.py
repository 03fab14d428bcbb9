"""State of all looks at one site's pages: order, records, broken and unlisted pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgpack
import redis

from shared.config.sites.pages import FEWEST_RECORDS
from shared.domain.looks.record import BUCKETS, LookRecord, bucket_of, field_of
from shared.domain.page_record import digest_of
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.looks.look_keys import look_keys_of

MOST_DUE = 10_000
"""Pages that wait for their look, about 130 bytes each; those beyond are met by the next round."""
MOST_BROKEN = 1_000
"""Broken pages that are named, looked at again and unlisted; of more the number is known."""

DAY_MS = 24 * 3_600_000


class LookState(NamedTuple):
    """Progress of the looks at a site. Looks `spent` on `day` (since 1970); `after`: the revision
    read last. The round that `began` (ms since 1970), the `round`th, goes over every page whose
    digest is `part` modulo `parts`, and is at `cursor` (section, shard, offset; empty: at its end).
    Since then `looked` pages were looked at, each counted once and whatever the look was for,
    `failed` among them; `urls` were listed when it began, and the same of the round before.
    `silent`: requests in a row without an answer. Events due until `held` (ms) are known to wait
    for a look.
    """

    day: int = 0
    spent: int = 0
    after: str = ""
    began: int = 0
    part: int = 0
    parts: int = 1
    cursor: str = ""
    looked: int = 0
    failed: int = 0
    urls: int = 0
    looked_before: int = 0
    failed_before: int = 0
    urls_before: int = 0
    silent: int = 0
    held: int = 0
    round: int = 0

    @property
    def sample(self) -> int:
        """Identify the round in BrokenPage.counted; looks before the first have a sample, too."""
        return self.began or 1


class BrokenPage(NamedTuple):
    """A page that was found broken: its grade and why, since when (s since 1970), in how many
    looks, and when last; the last round (its `sample`) that counts it as failed (0: none), also
    if it was unlisted since. `unlisted_s`: when it was unlisted; 0: it is listed.
    """

    grade: int
    why: str
    since_s: int
    times: int
    at_s: int
    counted: int = 0
    unlisted_s: int = 0


class UnlistedPage(NamedTuple):
    """Entry of an unlisted page: its stamp and fragment, digest and languages of its group, the
    fragment of its news entry, and its FeedItem as stored (empty: it has none).
    """

    stamp: int
    entry: str
    group: str = ""
    lang: tuple[str, ...] = ()
    news: str = ""
    item: bytes = b""


class LookStore:
    """Looks at one site's pages."""

    def __init__(self, client: redis.Redis, site: str, records: int = FEWEST_RECORDS) -> None:
        """`records`: pages whose last look is kept."""
        self._client, self._keys = client, look_keys_of(site)
        self._tombs = keys_of(site).tombs
        self._most = max(1, -(-records // BUCKETS))

    def state(self) -> LookState:
        """Return the state. Raises StoreError."""
        with answering():
            stored: Any = self._client.hgetall(self._keys.state)
        known = {name.decode(): value for name, value in stored.items()}
        defaults = LookState()._asdict()
        return LookState(**{
            name: type(value)(known[name].decode()) if name in known else value
            for name, value in defaults.items()
        })  # fmt: skip

    def change(self, **fields: str | int) -> None:
        """Set fields of the state."""
        values: Any = fields
        with answering():
            self._client.hset(self._keys.state, mapping=values)

    def count(self, **fields: int) -> None:
        """Add to numbers of the state."""
        with answering():
            pipe = self._client.pipeline(transaction=False)
            for name, number in fields.items():
                pipe.hincrby(self._keys.state, name, number)
            pipe.execute()

    def add_due(self, scores: Mapping[str, float]) -> None:
        """Add pages to be looked at, the highest first; known ones take the higher place."""
        if not scores:
            return
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.zadd(self._keys.due, dict(scores), gt=True)
            pipe.zremrangebyrank(self._keys.due, 0, -MOST_DUE - 1)
            pipe.execute()

    def due(self) -> int:
        """Return the number of pages that wait for their look."""
        with answering():
            return int(self._client.zcard(self._keys.due))

    def next(self, now_ms: int, *, again_first: bool) -> str | None:
        """Return the page to be looked at next; None: there is none. With `again_first` broken
        pages whose time has come precede all others.
        """
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.zrangebyscore(self._keys.again, "-inf", now_ms, 0, 1)
            pipe.zrange(self._keys.due, 0, 0, desc=True)
            again, due = pipe.execute()
        found = again if again and (again_first or not due) else due
        return found[0].decode() if found else None

    def looked_at(
        self, loc: str, record: LookRecord, broken: BrokenPage | None, again: int
    ) -> None:
        """Store the look at a page; `again`: when a `broken` one is looked at again (ms)."""
        digest, keys = digest_of(loc), self._keys
        key, field = keys.records(bucket_of(digest)), field_of(digest)
        with answering():
            pipe = self._client.pipeline()
            pipe.hset(key, field, record.pack())
            pipe.hlen(key)
            pipe.zrem(keys.due, loc)
            if broken is None:
                pipe.hdel(keys.broken, loc)
                pipe.zrem(keys.again, loc)
            else:
                pipe.hset(keys.broken, loc, msgpack.packb(broken))
                pipe.zadd(keys.again, {loc: again})
            length = int(pipe.execute()[1])
        if length > self._most:
            self._evict(key, length - self._most)

    def look_again(self, loc: str, at_ms: int) -> None:
        """Let a page be looked at again at `at_ms` (since 1970)."""
        with answering():
            self._client.zadd(self._keys.again, {loc: at_ms})

    def postpone(self, loc: str, at_ms: int) -> None:
        """Let a page that is due be looked at no sooner than at `at_ms` (since 1970)."""
        with answering():
            pipe = self._client.pipeline()
            pipe.zrem(self._keys.due, loc)
            pipe.zadd(self._keys.again, {loc: at_ms})
            pipe.execute()

    def _evict(self, key: str, count: int) -> None:
        """Remove the oldest records of a bucket."""
        with answering():
            stored: Any = self._client.hgetall(key)
            oldest = sorted(stored, key=lambda field: LookRecord.unpack(stored[field]).at_s)
            self._client.hdel(key, *oldest[:count])

    def forget(self, loc: str) -> None:
        """Forget a page that is not listed any more."""
        digest, keys = digest_of(loc), self._keys
        with answering():
            pipe = self._client.pipeline()
            pipe.hdel(keys.records(bucket_of(digest)), field_of(digest))
            pipe.zrem(keys.due, loc)
            pipe.zrem(keys.again, loc)
            pipe.hdel(keys.broken, loc)
            pipe.hdel(keys.unlisted, loc)
            pipe.execute()

    def records(self, locs: Sequence[str]) -> list[LookRecord | None]:
        """Return the last look at each page; None where none is kept."""
        with answering():
            pipe = self._client.pipeline(transaction=False)
            for digest in map(digest_of, locs):
                pipe.hget(self._keys.records(bucket_of(digest)), field_of(digest))
            return [LookRecord.unpack(stored) if stored else None for stored in pipe.execute()]

    def broken(self, loc: str) -> BrokenPage | None:
        """Return what was found of a broken page; None if it is none, or one of too many."""
        with answering():
            stored: Any = self._client.hget(self._keys.broken, loc)
        return BrokenPage(*msgpack.unpackb(stored)) if stored else None

    def all_broken(self) -> dict[str, BrokenPage]:
        """Return the broken pages by loc, the worst first, then the newest."""
        with answering():
            stored: Any = self._client.hgetall(self._keys.broken)
        found = {loc.decode(): BrokenPage(*msgpack.unpackb(one)) for loc, one in stored.items()}
        return dict(sorted(found.items(), key=lambda item: (-item[1].grade, -item[1].since_s)))

    def counts(self) -> tuple[int, int]:
        """Return the numbers of broken and of unlisted pages."""
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.hlen(self._keys.broken)
            pipe.hlen(self._keys.unlisted)
            broken, unlisted = pipe.execute()
        return int(broken), int(unlisted)

    def unlisted(self, loc: str) -> UnlistedPage | None:
        """Return what lists a page again that was unlisted; None if it was not."""
        with answering():
            stored: Any = self._client.hget(self._keys.unlisted, loc)
        if not stored:
            return None
        stamp, entry, group, lang, *rest = msgpack.unpackb(stored)
        return UnlistedPage(stamp, entry, group, tuple(lang), *rest)

    def set_unlisted(self, loc: str, page: UnlistedPage | None) -> None:
        """Remember a page that is unlisted, or forget it: None."""
        with answering():
            if page is None:
                self._client.hdel(self._keys.unlisted, loc)
            else:
                packed: Any = msgpack.packb(page)
                self._client.hset(self._keys.unlisted, loc, packed)

    def keep_tombstone(self, loc: str, until_ms: int) -> None:
        """Keep the tombstone of an unlisted page until `until_ms`: it says whether the page was
        deleted since.
        """
        with answering():
            self._client.zadd(self._tombs, {digest_of(loc): until_ms}, xx=True)
