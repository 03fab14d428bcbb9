"""Bring an existing source of truth in, as ordinary events, and say what could not come.

An import stands at the moment it began: what an event says about a page after that wins, however
long the import takes. Nothing is sent before the source was read to its end: then it is known what
it says of each page. An import that was cut off and is started again reads and reports everything,
and sends only what the former run did not; a source that changed meanwhile is sent from the first
difference on, and stands at the moment that was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NamedTuple

import redis

from shared.clock import now_ms
from shared.config.site import Site
from shared.errors import StoreError
from shared.events.event import Event
from shared.store.client import answering
from shared.store.inbox.inbox import Inbox
from shared.store.keys import Keys
from worker.batches import batches
from worker.reconcile.deduplication import Statement
from worker.reconcile.event_mapping import EventMapper, Said
from worker.reconcile.statement_spool import StatementSpool
from worker.sources import Item, Note, SourceRecord

BATCH = 1000
BACKLOG = 20_000
"""Events that may wait before the import does: so its memory and Redis's stay bounded."""

KEEP_S = 7 * 24 * 3600


class ImportProgress(NamedTuple):
    """How far an import is: pages read, sent, refused; `skipped` are those that a former run had
    sent, `united` are statements of a page that another of these states too.

    Once it is complete, `read` is the sum of the others.
    """

    read: int = 0
    sent: int = 0
    refused: int = 0
    skipped: int = 0
    united: int = 0


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
        self._translator = EventMapper(site.rules, section, now_ms)
        self._most_bytes = site.rules.most_bytes
        self._inbox = Inbox(client, name)
        self._keys = Keys(name)

    def run(
        self,
        source: str,
        items: Iterable[Item],
        *,
        say: Callable[[Said], None],
        report: Callable[[ImportProgress], None],
        drain: Callable[[], None],
    ) -> ImportProgress:
        """Send every page of `items` as an event; `say` gets each refusal and note.

        `report` is told of progress after each batch, read or sent; `drain` is called while too
        many events wait. Raises StoreError, SourceError from `items`, and ReconcileError where the
        disk has no room for what was read.
        """
        mark = _Mark(self._client, self._keys.importing(self._name(source)))
        done = ImportProgress()
        with StatementSpool(mark.began, self._most_bytes) as spool:
            for batch in batches(items, BATCH):
                taken = sum(self._read(item, spool, say) for item in batch)
                pages = sum(not isinstance(item, Note) for item in batch)
                done = done._replace(read=done.read + pages, refused=done.refused + pages - taken)
                report(done)
            for statements in batches(spool.pages(say), BATCH):
                skip = mark.passes([each.event for each, _ in statements])
                if not skip:
                    self._send([each.event for each, _ in statements], mark)
                new = len(statements)
                done = done._replace(
                    sent=done.sent + (0 if skip else new),
                    skipped=done.skipped + (new if skip else 0),
                    united=done.united + sum(times for _, times in statements) - new,
                )
                report(done)
                while self._inbox.waiting() > BACKLOG:
                    drain()
        mark.remove()
        return done

    def _read(self, item: Item, spool: StatementSpool, say: Callable[[Said], None]) -> bool:
        event = self._translator.event(item, None, say)
        if event is None or not isinstance(item, SourceRecord):
            return False
        spool.add(Statement(event, item.where, item.silent))
        return True

    def _send(self, events: Sequence[Event], mark: _Mark) -> None:
        stamped = [
            replace(event, version=mark.began) if event.version is None else event
            for event in events
        ]
        accepted = self._inbox.accept(stamped, quiet=self._quiet)
        if accepted.status != "accepted":
            raise StoreError(f"the inbox takes no events: {accepted.status}")
        mark.add(events)

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

    def passes(self, batch: Sequence[Event]) -> bool:
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

    def add(self, batch: Sequence[Event]) -> None:
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


def _digest(batch: Sequence[Event]) -> bytes:
    return blake2b(b"\n".join(event.dump() for event in batch), digest_size=8).digest()
