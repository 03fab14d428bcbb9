"""Delivery lease: the right of one worker to notify one engine for one site.

Notifications are sent at least once: taken locs stay in `sending` until their outcome is stored;
those left by a dead worker return to the queue when the next lease begins. A page that changes
during a request is queued again, as a taken loc is no longer in the queue.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis.client import Pipeline

from shared.batches import batches
from shared.errors import StoreError
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.leases import Lease, held_lease
from shared.store.notify.notification_queue import CHUNK, MOST_DEAD

_WHOLE = ""
"""Member of `told:` for the whole site, of engines that are notified of sitemaps or feeds."""


class DeliveryLeaseLostError(StoreError):
    """Another worker holds the delivery lease of this engine: nothing was written."""


class DeliveryLease:
    """Operations under the lease. `keep` and all that write the queue or `sending` raise
    DeliveryLeaseLostError once it is lost.
    """

    def __init__(self, client: redis.Redis, site: str, engine: str, lease: Lease) -> None:
        self._client, self._keys, self._lease = client, keys_of(site), lease
        self._queue, self._notified = self._keys.notify(engine), self._keys.notified(engine)
        self._sending, self._tries = self._keys.sending(engine), self._keys.tries(engine)
        self._engine = engine

    def keep(self) -> None:
        """Extend the lease. Raises DeliveryLeaseLostError if it was lost."""
        if not self._lease.extend():
            raise self._lost()

    def take(self, now: int, most: int, debounce: int, *, whole: bool) -> list[str]:
        """Move up to `most` locs due at `now` (ms since 1970) to `sending` and return them.

        Locs notified within the last `debounce` ms are postponed until these are over; with
        `whole`, all locs are if the site was. Members that are not text become dead notifications.
        """
        with answering():
            due: Any = self._client.zrange(
                self._queue, "-inf", now, byscore=True, offset=0, num=most, withscores=True
            )
        if strange := [loc for loc, _ in due if not _is_text(loc)]:
            self._give_up(strange, now)
            due = [(loc, score) for loc, score in due if loc not in strange]
        if not due:
            return []
        locs = [loc for loc, _ in due]
        with answering():
            asked = [_WHOLE] if whole else locs
            scores: Any = self._client.zmscore(self._notified, asked)
        again = [0 if told is None else int(told) + debounce for told in scores]
        again = again * len(locs) if whole else again
        later = {loc: at for loc, at in zip(locs, again, strict=True) if at > now}
        taken = {loc: score for loc, score in due if loc not in later}

        def write(pipe: Pipeline) -> None:
            if later:
                pipe.zadd(self._queue, later, xx=True)
            if taken:
                pipe.zadd(self._sending, taken)
                pipe.zrem(self._queue, *taken)

        self._write(write)
        return [loc.decode() for loc in taken]

    def complete(self, locs: Iterable[str], now: int, debounce: int, *, whole: bool) -> None:
        """Complete `locs` at `now` (ms); remember them (`whole`: the site) for `debounce` ms."""
        locs = list(locs)
        told = [_WHOLE] if whole else locs

        def write(pipe: Pipeline) -> None:
            self._forget(pipe, locs)
            pipe.zremrangebyscore(self._notified, "-inf", now - debounce)
            if debounce and told:
                pipe.zadd(self._notified, dict.fromkeys(told, now))
                pipe.pexpire(self._notified, debounce)

        self._write(write)

    def drop(self, locs: Iterable[str]) -> None:
        """Remove `locs`, which do not concern this engine."""
        locs = list(locs)
        self._write(lambda pipe: self._forget(pipe, locs))

    def postpone(self, locs: Iterable[str], at: int) -> None:
        """Return `locs` to the queue, due at `at` (ms since 1970)."""
        locs = list(locs)
        self._write(lambda pipe: self._put_back(pipe, dict.fromkeys(locs, at)))

    def tried(self, locs: Sequence[str]) -> list[int]:
        """Count one more attempt for each of `locs`; return their numbers of attempts."""
        with answering():
            pipe = self._client.pipeline()
            for loc in locs:
                pipe.hincrby(self._tries, loc, 1)
            return [int(tries) for tries in pipe.execute()]

    def give_up(self, locs: Iterable[str], now: int, why: str) -> None:
        """Make `locs` dead notifications at `now` (ms since 1970), with the reason `why`."""
        locs = list(locs)

        def write(pipe: Pipeline) -> None:
            for some in batches(locs, CHUNK):
                fields: Any = {
                    "engine": self._engine,
                    "at": now,
                    "why": why,
                    "locs": json.dumps(some),
                }
                pipe.xadd(self._keys.notice_dead, fields, maxlen=MOST_DEAD, approximate=False)
            self._forget(pipe, locs)

        self._write(write)

    def _give_up(self, strange: list[bytes], now: int) -> None:
        fields: Any = {
            "engine": self._engine, "at": now, "why":
                "it is not valid UTF-8: not written by sitemapd",
            "locs": json.dumps([loc.decode(errors="backslashreplace") for loc in strange]),
        }  # fmt: skip

        def write(pipe: Pipeline) -> None:
            pipe.xadd(self._keys.notice_dead, fields, maxlen=MOST_DEAD, approximate=False)
            pipe.zrem(self._queue, *strange)

        self._write(write)

    def restore(self) -> None:
        """Return the locs left in `sending` by an earlier lease to the queue."""
        with answering():
            left: Any = self._client.zrange(self._sending, 0, -1, withscores=True)
        if left:
            self._write(lambda pipe: self._put_back(pipe, dict(left)))

    def _put_back(self, pipe: Pipeline, scores: dict[Any, Any]) -> None:
        if scores:
            # A loc queued meanwhile keeps its earlier time.
            pipe.zadd(self._queue, scores, nx=True)
            pipe.zrem(self._sending, *scores)

    def _forget(self, pipe: Pipeline, locs: Sequence[str]) -> None:
        for some in batches(locs, CHUNK):
            pipe.zrem(self._sending, *some)
            pipe.hdel(self._tries, *some)

    def _write(self, what: Callable[[Pipeline], None]) -> None:
        """Run the commands in one transaction. Raises DeliveryLeaseLostError."""
        if not self._lease.write(what):
            raise self._lost()

    def _lost(self) -> DeliveryLeaseLostError:
        return DeliveryLeaseLostError(f"another worker is notifying {self._engine}")


def _is_text(stored: bytes) -> bool:
    try:
        return bool(stored.decode())
    except UnicodeDecodeError:
        return False


@contextmanager
def delivery_lease(
    client: redis.Redis, site: str, engine: str, owner: str
) -> Iterator[DeliveryLease | None]:
    """Hold the delivery lease of `engine` for the block; None if another worker holds it."""
    with held_lease(client, keys_of(site).notify_lease(engine), owner) as lease:
        if lease is None:
            yield None
            return
        mine = DeliveryLease(client, site, engine, lease)
        mine.restore()
        yield mine
