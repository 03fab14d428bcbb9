"""Bring an existing source of truth in, as ordinary events, and say what could not come.

An import stands at the moment it began: what an event says about a page after that wins, however
long the import takes. One that was cut off and is started again reads and reports everything, and
sends only what the former run did not; a source that changed meanwhile is sent from the first
difference on, and stands at the moment that was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import redis

from shared.errors import StoreError
from shared.inbox import Inbox
from shared.sites import Site
from shared.store.contract import Keys
from shared.store.redis import answering
from worker.settling import now_ms
from worker.sources import Item, Note
from worker.translating import Said, Translator

BATCH = 1000
BACKLOG = 20_000
"""Events that may wait before the import does: so its memory and Redis's stay bounded."""

KEEP_S = 7 * 24 * 3600

_T = TypeVar("_T")


class Progress(NamedTuple):
    """How far an import is: items read, pages sent, pages refused.

    `skipped` are the items that a former run had sent; the others count them too.
    """

    read: int = 0
    sent: int = 0
    refused: int = 0
    skipped: int = 0


class Importer:
    """Imports into one site."""

    def __init__(
        self,
        client: redis.Redis,
        name: str,
        site: Site,
        section: str | None,
        now_ms: Callable[[], int] = now_ms,
        *,
        notify: bool = False,
    ) -> None:
        """`now_ms` is the clock by which dates, news and videos are judged; to `notify` is to have
        search engines told of every page that changes (PROTOCOL U7: not the whole site).
        """
        self._client, self._section, self._quiet = client, section, not notify
        self._translator = Translator(site.rules, section, now_ms)
        self._inbox = Inbox(client, name)
        self._keys = Keys(name)

    def run(
        self,
        source: str,
        items: Iterable[Item],
        *,
        say: Callable[[Said], None],
        report: Callable[[Progress], None],
        drain: Callable[[], None],
    ) -> Progress:
        """Send every page of `items` as an event; `say` gets each refusal and note.

        `report` is told of progress after each batch; `drain` is called while too many events
        wait. Raises StoreError, and SourceError from `items`.
        """
        mark = _Mark(self._client, self._keys.importing(self._name(source)))
        done = Progress()
        for batch in batches(items, BATCH):
            skip = mark.passes(batch)
            found = [self._translator.event(item, mark.began, say) for item in batch]
            events = [event for event in found if event is not None]
            if events and not skip:
                accepted = self._inbox.accept(events, quiet=self._quiet)
                if accepted.status != "accepted":
                    raise StoreError(f"the inbox takes no events: {accepted.status}")
            if not skip:
                mark.add(batch)
            notes = sum(isinstance(item, Note) for item in batch)
            done = Progress(
                done.read + len(batch),
                done.sent + len(events),
                done.refused + len(batch) - len(events) - notes,
                done.skipped + (len(batch) if skip else 0),
            )
            report(done)
            while self._inbox.waiting() > BACKLOG:
                drain()
        mark.remove()
        return done

    def _name(self, source: str) -> str:
        return blake2b(f"{source}\0{self._section}".encode(), digest_size=8).hexdigest()


class _Mark:
    """What a former run of an import sent: when it began, then a digest of each batch."""

    def __init__(self, client: redis.Redis, key: str) -> None:
        self._client, self._key = client, key
        with answering():
            stored: Any = client.lrange(key, 0, -1)
        self.began = int(stored[0]) if stored else now_ms()
        self._sent: list[bytes] = stored[1:]
        self._at = 0
        self._stored = bool(stored)

    def passes(self, batch: Sequence[Item]) -> bool:
        """Whether the former run sent this very batch, and all before it."""
        if self._at >= len(self._sent):
            return False
        if self._sent[self._at] == _digest(batch):
            self._at += 1
            return True
        del self._sent[self._at :]
        self.began = now_ms()
        self._write(lambda pipe: pipe.ltrim(self._key, 0, self._at).lset(self._key, 0, self.began))
        return False

    def add(self, batch: Sequence[Item]) -> None:
        """Remember that `batch` was sent."""
        new = [_digest(batch)] if self._stored else [self.began, _digest(batch)]
        self._write(lambda pipe: pipe.rpush(self._key, *new))
        self._stored = True

    def remove(self) -> None:
        """The import is complete."""
        with answering():
            self._client.delete(self._key)

    def _write(self, change: Callable[[Any], object]) -> None:
        with answering():
            pipe: Any = self._client.pipeline()
            change(pipe)
            pipe.expire(self._key, KEEP_S)
            pipe.execute()


def _digest(batch: Sequence[Item]) -> bytes:
    return blake2b(repr(batch).encode(errors="surrogatepass"), digest_size=8).digest()


def batches(items: Iterable[_T], most: int) -> Iterator[list[_T]]:
    """`items` in lists of `most`, the last one of what is left."""
    iterator = iter(items)
    while batch := list(islice(iterator, most)):
        yield batch
