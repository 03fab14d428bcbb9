"""Import of a source as ordinary events, with a report of what could not be imported.

The version of an import is its start time: a later event about a page wins, however long the import
takes. No event is sent before the source was read to its end, when all statements of each page are
known. An interrupted import that is started again reads and reports everything, and sends only what
the former run did not; a source that changed meanwhile is sent from the first difference on, with
the time of its detection as version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NamedTuple

import redis

from shared.batches import batches
from shared.clock import now_ms
from shared.config.site import Site
from shared.errors import StoreError
from shared.events.event import Event
from shared.store.client import answering
from shared.store.inbox.inbox import Inbox
from shared.store.keys import Keys
from worker.reconcile.deduplication import Statement
from worker.reconcile.event_mapping import EventMapper, Remark
from worker.reconcile.statement_spool import StatementSpool
from worker.sources import Item, Note, SourceRecord

BATCH = 1000
BACKLOG = 20_000
"""Maximum number of waiting events before the import pauses, so that its memory and Redis's stay
bounded.
"""

KEEP_S = 7 * 24 * 3600


class ImportProgress(NamedTuple):
    """Progress of an import: pages read, sent, refused.

    `skipped` were sent by a former run, `united` are further statements of the same page. Once the
    import is complete, `read` is the sum of the others.
    """

    read: int = 0
    sent: int = 0
    refused: int = 0
    skipped: int = 0
    united: int = 0


class Importer:
    """Imports sources into one site."""

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
        """Create an importer; `now_ms` is the clock for dates, news and videos (ms since 1970).

        With `notify`, search engines are notified of every changed page (PROTOCOL U7: not the whole
        site).
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
        on_remark: Callable[[Remark], None],
        report: Callable[[ImportProgress], None],
        drain: Callable[[], None],
    ) -> ImportProgress:
        """Send every page of `items` as an event; `on_remark` gets each refusal and note.

        `report` is called with the progress after each batch, read or sent; `drain` is called while
        too many events wait. Raises StoreError, SourceError from `items`, and ReconcileError if
        there is no room on disk.
        """
        mark = _Mark(self._client, self._keys.importing(self._name(source)))
        done = ImportProgress()
        with StatementSpool(mark.began, self._most_bytes) as spool:
            for batch in batches(items, BATCH):
                taken = sum(self._read(item, spool, on_remark) for item in batch)
                pages = sum(not isinstance(item, Note) for item in batch)
                done = done._replace(read=done.read + pages, refused=done.refused + pages - taken)
                report(done)
            for statements in batches(spool.pages(on_remark), BATCH):
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

    def _read(self, item: Item, spool: StatementSpool, on_remark: Callable[[Remark], None]) -> bool:
        event = self._translator.event(item, None, on_remark)
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
    """Record of a former run of an import: its start time, then a digest of each sent batch."""

    def __init__(self, client: redis.Redis, key: str) -> None:
        self._client, self._key = client, key
        with answering():
            stored: Any = client.lrange(key, 0, -1)
        self.began = int(stored[0]) if stored else now_ms()
        self._sent: list[bytes] = stored[1:]
        self._at = 0
        self._stored = bool(stored)

    def passes(self, batch: Sequence[Event]) -> bool:
        """Return True if the former run sent exactly this batch, and all before it."""
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
        """Record that `batch` was sent."""
        new = [_digest(batch)] if self._stored else [self.began, _digest(batch)]
        self._write(lambda pipe: pipe.rpush(self._key, *new))
        self._stored = True

    def remove(self) -> None:
        """Delete the record of a complete import."""
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
