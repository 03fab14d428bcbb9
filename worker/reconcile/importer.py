"""Import of a source: pages of which nothing is stored are listed in bulk, all others sent as
ordinary events, and what could not be imported is reported.

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

import msgpack
import redis

from shared.batches import batches
from shared.clock import now_ms
from shared.config.sites.site import Site
from shared.domain.page_record import Arrival
from shared.errors import StoreError
from shared.events.event import Event
from shared.events.plain_page import PlainPage
from shared.store.client import answering
from shared.store.inbox.inbox import Inbox
from shared.store.keys import keys_of
from worker.reconcile.bulk_listing import BulkListing
from worker.reconcile.event_mapping import EventMapper, Remark
from worker.reconcile.statement_spool import BATCH, StatedPage, StatementSpool
from worker.sources import Item, Note, SourceRecord

BACKLOG = 20_000
"""Maximum number of waiting events, and of listed pages, before the import lets them be applied and
published, so that its memory and Redis's stay bounded.
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
        self._site_name, self._site = name, site
        self._inbox = Inbox(client, name)
        self._keys = keys_of(name)

    def run(
        self,
        source: str,
        items: Iterable[Item],
        *,
        on_remark: Callable[[Remark], None],
        report: Callable[[ImportProgress], None],
        drain: Callable[[], None],
    ) -> ImportProgress:
        """List every page of `items`, or send it as an event; `on_remark` gets refusals and notes.

        `report` is called with the progress after each batch, read or sent; `drain` is called after
        every BACKLOG pages, and while more events wait. Raises StoreError, SourceError from
        `items`, and ReconcileError if there is no room on disk.
        """
        mark = _Mark(self._client, self._keys.importing(self._name(source)))
        done = ImportProgress()
        with StatementSpool(mark.began, self._most_bytes) as spool:
            for batch in batches(items, BATCH):
                taken = sum(self._read(item, spool, on_remark) for item in batch)
                pages = sum(not isinstance(item, Note) for item in batch)
                done = done._replace(read=done.read + pages, refused=done.refused + pages - taken)
                report(done)
            bulk, undrained = self._bulk(mark), 0
            for some in spool.pages(on_remark):
                began, new = mark.began, len(some.pages)
                if skip := mark.passes(some.pages):
                    done = done._replace(skipped=done.skipped + new)
                else:
                    bulk = bulk if mark.began == began else self._bulk(mark)
                    self._send(some.pages, mark, bulk, drain)
                    done = done._replace(sent=done.sent + new)
                done = done._replace(united=done.united + some.repeated)
                report(done)
                undrained += 0 if skip else new
                if undrained >= BACKLOG:
                    drain()
                    undrained = 0
                while not skip and self._inbox.waiting() > BACKLOG:
                    drain()
        mark.remove()
        return done

    def _bulk(self, mark: _Mark) -> BulkListing:
        return BulkListing(self._client, self._site_name, self._site, mark.began, quiet=self._quiet)

    def _read(self, item: Item, spool: StatementSpool, on_remark: Callable[[Remark], None]) -> bool:
        page = self._translator.page(item, None, on_remark)
        if page is None or not isinstance(item, SourceRecord):
            return False
        spool.add(page, item.where, item.silent)
        return True

    def _send(
        self, pages: Sequence[StatedPage], mark: _Mark, bulk: BulkListing, drain: Callable[[], None]
    ) -> None:
        plain = [page for page in pages if isinstance(page, PlainPage)]
        left = {page.loc for page in bulk.add(plain, drain)}
        rest = [page for page in pages if isinstance(page, Event) or page.loc in left]
        self._accept(rest, mark.began, bulk)
        mark.add(pages)

    def _accept(self, pages: Sequence[StatedPage], began: int, bulk: BulkListing) -> None:
        if not pages:
            return
        events = [_stamped(page, began) for page in pages]
        accepted = self._inbox.accept(events, quiet=self._quiet)
        if accepted.status != "accepted":
            raise StoreError(f"the inbox takes no events: {accepted.status}")
        if any(event.id is not None for event in events):
            bulk.wait_for(Arrival.of(accepted.ids[-1]).ms)

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

    def passes(self, batch: Sequence[StatedPage]) -> bool:
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

    def add(self, batch: Sequence[StatedPage]) -> None:
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


def _stamped(page: StatedPage, began: int) -> Event:
    if isinstance(page, PlainPage):
        return page.event(began)
    return replace(page, version=began) if page.version is None else page


def _digest(batch: Sequence[StatedPage]) -> bytes:
    stated = [page.dump() if isinstance(page, Event) else page for page in batch]
    return blake2b(msgpack.packb(stated), digest_size=8).digest()
