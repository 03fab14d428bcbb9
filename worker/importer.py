"""Bring an existing source of truth in, as ordinary events, and say what could not come.

An import stands at the moment it began: what an event says about a page after that wins, however
long the import takes. One that was cut off and is started again reads and reports everything, and
sends only what the former run did not; a source that changed meanwhile is sent from the first
difference on, and stands at the moment that was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

import redis

from shared.errors import Fault, InvalidError, StoreError
from shared.events import Event, parse
from shared.inbox import Inbox
from shared.patch import in_future, is_current
from shared.sites import Site
from shared.store.contract import Keys
from shared.store.redis import answering
from shared.upkeep import is_over
from worker.pruning import SOFT, salvage
from worker.pump import now_ms
from worker.sources import Item, Note, Record, Refusal

BATCH = 1000
BACKLOG = 20_000
"""Events that may wait before the import does: so its memory and Redis's stay bounded."""

KEEP_S = 7 * 24 * 3600
_STATED = ("loc", *SOFT)


class Said(NamedTuple):
    """One line of the report: a page `refused`, or something `noted` about one that was kept.

    `rule` is the id of a rule of PROTOCOL (`L5`) or a short code.
    """

    kind: str
    where: str
    rule: str
    detail: str
    loc: str | None = None
    times: int = 1


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
    ) -> None:
        """`now_ms` is the clock by which dates, news and videos are judged."""
        self._client, self._rules, self._section = client, site.rules, section
        self._now_ms = now_ms
        self._inbox = Inbox(client, name)
        self._prefix = Keys(name).prefix

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
        mark = _Mark(self._client, f"{self._prefix}import:{self._name(source)}")
        done = Progress()
        for batch in _batches(items):
            skip = mark.passes(batch)
            found = [self._event(item, mark.began, say) for item in batch]
            events = [event for event in found if event is not None]
            if events and not skip:
                accepted = self._inbox.accept(events)
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

    def _event(self, item: Item, began: int, say: Callable[[Said], None]) -> Event | None:
        """The event of one item; a page with a bad date, hint or extension comes without it."""
        if isinstance(item, Refusal):
            say(Said("refused", item.where, item.rule, item.detail, item.loc))
            return None
        if isinstance(item, Note):
            say(Said("noted", item.where, item.rule, item.detail, times=item.count))
            return None
        members = self._members(item, began, say)
        try:
            event, gone = salvage(members, lambda given: parse(given, self._rules))
        except InvalidError as error:
            fault = error.faults[0]
            say(Said("refused", item.where, _rule(fault), fault.detail, item.loc))
            return None
        for name, fault in gone.items():
            detail = f"{name} left out: {fault.detail}"
            say(Said("noted", item.where, _rule(fault), detail, item.loc))
        return _timely(event, item, say, self._now_ms())

    def _members(
        self, record: Record, began: int, say: Callable[[Said], None]
    ) -> dict[str, object]:
        members: dict[str, object] = {"type": "upsert", "version": began, "section": self._section}
        for name in _STATED:
            if value := getattr(record, name):
                members[name] = value
        if "news" in members and not self._rules.news:
            del members["news"]
            detail = "news left out: no section of this site is for news (news = true)"
            say(Said("noted", record.where, "W11", detail, record.loc))
        members |= record.extra or {}
        version = members["version"]
        if isinstance(version, str) and version.isascii() and version.isdigit():
            members["version"] = int(version)
        return members


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


def _timely(event: Event, record: Record, say: Callable[[Said], None], now_ms: int) -> Event:
    """`event` without what the clock would leave out unsaid later on (PROTOCOL M5, V6, W4)."""
    gone: dict[str, tuple[object, str, str]] = {}
    if event.lastmod is not None and in_future(event.lastmod, now_ms):
        gone["lastmod"] = None, "M5", f"{event.lastmod} lies in the future"
    if event.news and not is_current(event.news, now_ms):
        detail = f"{event.news['publication_date']} does not lie in the last 48 hours"
        gone["news"] = None, "W4", detail
    shown = tuple(video for video in event.videos if not is_over(video, now_ms))
    if over := len(event.videos) - len(shown):
        gone["videos"] = shown, "V6", f"{over} expired"
    for name, (_, rule, detail) in gone.items():
        say(Said("noted", record.where, rule, f"{name} left out: {detail}", record.loc))
    kept: dict[str, Any] = {name: value for name, (value, _, _) in gone.items()}
    return replace(event, **kept) if kept else event


def _rule(fault: Fault) -> str:
    return fault.rule.removeprefix("PROTOCOL ")


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    iterator = iter(items)
    while batch := list(islice(iterator, BATCH)):
        yield batch
