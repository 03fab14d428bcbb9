"""Page records and claims of a site: read the batch state, and apply what was decided on it."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import msgpack
import redis

from shared.config.sites.site import Site
from shared.domain import translation_groups
from shared.domain.batch_state import NEWS, BatchState
from shared.domain.looks import unlisted_pages
from shared.domain.page_record import (
    PLACE_BYTES,
    TOMBSTONE_MS,
    Claim,
    PageRecord,
    Place,
    digest_of,
    subjects,
)
from shared.domain.routing import family_of
from shared.events.event import Event
from shared.sitemap import fragments
from shared.sitemap.feed_writer import RESERVE
from shared.sitemap.shards import Limits, Shard
from shared.store.client import PipelinedScript, RunningScript, Scripts
from shared.store.keys import GROUP, RECENT, keys_of
from shared.store.pages.changes import (
    BatchChanges,
    ReadBatch,
    changes_of,
    log_entry,
    read_records,
    unpacked,
)
from shared.store.pages.lookup import MOST_MEMBERS, PageLookup
from shared.store.sections import Draft, Sections

_DEFAULT = Limits()
_LimitsRow = tuple[str, int, int, int, int, int, int]


class PageRepository:
    """Page records, claims and pending patches of one site."""

    def __init__(
        self, client: redis.Redis, site: str, limits: Mapping[str, Limits], feed_entries: int = 0,
        *, draft: bool = False, notifies: bool = False, titles: bool = False,
    ) -> None:  # fmt: skip
        """Create a repository with the `limits` of each configured section.

        News entries are read if one of the sections reuses its files. `feed_entries` is the number
        of pages the site's feeds list, 0 if it has none. A `draft` is for deciding only and must
        not be applied: nothing is written. `notifies` if engines are notified of changes,
        `titles` if the titles of pages are kept.
        """
        self._client = client
        self._keys = keys_of(site)
        self._scripts = Scripts(client)
        self._limits, self._configured = limits, frozenset(limits)
        self._limit_rows: dict[str, _LimitsRow] = {}
        self.sections = (Draft if draft else Sections)(client, site, limits)
        self.lookup = PageLookup(client, site, self.sections)
        self._feed_most, self._notifies = feed_entries * RESERVE, notifies
        self._titles = titles
        self._lists_news = any(each.reuse for each in limits.values())

    @classmethod
    def of(cls, client: redis.Redis, name: str, site: Site, *, draft: bool = False) -> Self:
        """Return the repository of a configured site. A `draft` decides on entries alone, not on
        the titles and descriptions that feeds and pages of links keep.
        """
        feed, titles = (0, False) if draft else (site.recent_entries, site.outputs.html)
        notifies = bool(site.notify.of_pages)
        return cls(client, name, site.limits, feed, draft=draft, notifies=notifies, titles=titles)

    def limits_of(self, section: str) -> Limits:
        """Return the limits of a shard of `section`."""
        return self._limits.get(family_of(section, self._limits), _DEFAULT)

    def read(self, events: Sequence[Event]) -> ReadBatch:
        """Read the state needed to decide `events`. Raises StoreDownError, StoreError, and
        BatchTooLargeError if the groups of several events have too many members to read.
        """
        if not self.sections.by_name:
            self.sections.numbers()
        former = self.sections.former_owners
        # In order of arrival, and not as sets, whose order differs between processes: new pages
        # are placed in this order.
        locs: dict[str | None, None] = {}
        owners: dict[bytes, None] = {}
        for event in events:
            loc, owner = subjects(event, former=former)
            locs[loc] = owners[owner] = None
        owners.pop(b"", None)
        stored, claims = self._records([loc for loc in locs if loc is not None], [*owners])
        claimed = self._claimed(claims, stored) if claims else {}
        pages = unpacked(stored)
        by_name, by_number = self.number(pages, {e.section for e in events if e.section})
        if former != self.sections.former_owners:
            return self.read(events)  # another layout since then
        state = BatchState(by_name, by_number, pages, claimed, former_owners=former)
        wanted = {unlisted_pages.group_of(event) for event in events if event.group}
        wanted |= {page.group for page in pages.values() if page and page.group}
        most = MOST_MEMBERS if len(events) > 1 else sys.maxsize
        groups = self.lookup.groups(wanted, most) if wanted else {}
        for group, (_, members) in groups.items():
            state.groups[group] = dict(members)
            state.sets[group] = translation_groups.alternates(members)
        feed = self.lookup.feed(pages) if self._feed_most else {}
        state.feed.update(feed)
        titles = self.lookup.titles(pages) if self._titles else {}
        state.titles.update(titles)
        return ReadBatch(state, stored, claims, groups, feed, len(events) > 1, titles)

    def read_group(self, group: bytes) -> ReadBatch:
        """Read the state of a translation group alone. Raises StoreDownError, StoreError."""
        groups = self.lookup.groups([group], sys.maxsize)
        state = BatchState(*self.number({}))
        for each, (_, members) in groups.items():
            state.groups[each] = dict(members)
            state.sets[each] = translation_groups.alternates(members)
        return ReadBatch(state, {}, {}, groups)

    def read_keys(self, keys: Sequence[str]) -> ReadBatch:
        """Read the state of the pages and news entries `keys`, without claims, groups and feeds.

        Raises StoreDownError, StoreError.
        """
        stored = self.lookup.records(keys)[0]
        pages = unpacked(stored)
        state = BatchState(*self.number(pages), pages)
        return ReadBatch(state, stored, {}, {}, divisible=len(keys) > 1)

    def _records(
        self, locs: Sequence[str], owners: Sequence[bytes] = ()
    ) -> tuple[dict[str, bytes], dict[bytes, bytes]]:
        if self._lists_news:
            locs = [*locs, *(NEWS + loc for loc in locs)]
        prefix, sections = self._keys.prefix, self.sections
        pages, claims, numbering, count = read_records(self._scripts, prefix, locs, owners)
        if (numbering, count) != (sections.numbering, len(sections.by_name)) and not sections.draft:
            sections.forget()
        return pages, claims

    def number(
        self, pages: Mapping[str, PageRecord | None], named: Iterable[str] = ()
    ) -> tuple[Mapping[str, int], Mapping[int, str]]:
        """Return the sections by name and by number: the configured ones, those `named`, and those
        that list `pages`. Raises StoreDownError, StoreError, ConfigError.
        """
        sections = self.sections
        if not (self._configured | {*named}) <= sections.by_name.keys():
            sections.numbers(named)
        listed = {page.place.section for page in pages.values() if page and page.place}
        if not listed <= sections.by_number.keys():
            # A worker with a newer configuration has placed pages there (RELIABILITY F21), or
            # another worker the first page of a month.
            known = sections.by_name
            sections.forget()
            sections.numbers(known)
        return sections.by_name, sections.by_number

    def _claimed(
        self, claims: Mapping[bytes, bytes], stored: dict[str, bytes]
    ) -> dict[bytes, Claim | None]:
        """Return `claims` unpacked, and add the records of the pages that they name to `stored`: a
        page that moves leaves its old URL.
        """
        found = {
            owner: Claim.unpack(record) if record else None for owner, record in claims.items()
        }
        left = [c.loc for c in found.values() if c and c.loc and c.loc not in stored]
        if left:
            stored.update(self._records(left)[0])
        return found

    def apply(
        self, read: ReadBatch, after: BatchState, *, settled: Sequence[str] = (),
        decisions: Sequence[tuple[str, str, str, bool]] = (), payloads: Sequence[bytes] = (),
        resyncs: Sequence[tuple[str, int]] = (),
    ) -> bool:  # fmt: skip
        """Write the changes from what was `read` to `after`, all or nothing, and remove the events
        `settled` from the inbox.

        Return False if another worker changed one of the records meanwhile: read and decide again.
        `decisions` go into the event log: (event id, loc, reason, whether bytes change), with the
        stored events in the same order as `payloads`. `resyncs` are scopes to be compared with
        their source, with the time of the request (ms). Raises BatchTooLargeError if a divisible
        batch exceeds what one call may write: nothing was written.
        """
        packed = self.packed(
            read, after, settled=settled, decisions=decisions, payloads=payloads, resyncs=resyncs
        )
        return int(self.start(packed).reply()) == 0

    def packed(
        self, read: ReadBatch, after: BatchState, *, settled: Sequence[str],
        decisions: Sequence[tuple[str, str, str, bool]], payloads: Sequence[bytes],
        resyncs: Sequence[tuple[str, int]],
    ) -> tuple[list[str], bytes]:  # fmt: skip
        """Return keys and arguments of the script that `apply` runs. Raises BatchTooLargeError."""
        changes = changes_of(read, after)._replace(resyncs=resyncs)
        entry = log_entry(decisions, payloads) if decisions else b""
        counted = Counter("changed" if changed else "unchanged" for *_, changed in decisions)
        return self._message(changes, settled, entry, counted)

    def start(
        self, packed: tuple[list[str], bytes], follow_ups: Sequence[PipelinedScript] = ()
    ) -> RunningScript:
        """Send what `packed` returned, then `follow_ups`; the reply is 0 if it was applied."""
        return self._scripts.start(follow_ups, "pages/apply", *packed)

    def add(
        self, pages: Sequence[Sequence[Any]], claims: Sequence[tuple[bytes, bytes, bytes]],
        decisions: Sequence[tuple[str, str, str, bool]], payloads: Sequence[bytes],
    ) -> bool:  # fmt: skip
        """Write `pages` and `claims`, rows of BatchChanges, of which nothing was stored, and which
        no inbox held; False if something is stored by now: nothing was written.

        `decisions` and `payloads` are those of `apply`.
        """
        counted = {"accepted": len(decisions), "changed": len(decisions)}
        entry = log_entry(decisions, payloads)
        packed = self._message(BatchChanges(pages, claims), (), entry, counted)
        return int(self.start(packed).reply()) == 0

    def move(self, shard: Shard, listed: Sequence[bytes], section: str = "") -> int:
        """Move pages, by their fragments in `shard`, to the tail of `section` (default: its own);
        return the number.

        A page that changed since it was published stays; if one changes now, none is moved.
        """
        stored = self.lookup.records([fragments.loc_of(fragment) for fragment in listed])[0]
        number = self.sections.numbers()[shard.section]
        to = self.sections.numbers()[section] if section else number
        moved = []
        for fragment, (loc, record) in zip(listed, stored.items(), strict=True):
            place = PageRecord.unpack(record).place if record else None
            here = place is not None and place[:2] == (number, shard.number)
            if here and PageRecord.lists(record, fragments.digest(fragment), number):
                rest = (record[PLACE_BYTES:], "M", fragment, to, 1, 0)
                moved.append((digest_of(loc), record, *rest))
        applied = moved and not int(self.start(self._message(BatchChanges(moved))).reply())
        return len(moved) if applied else 0

    def _message(
        self, changes: BatchChanges, settled: Sequence[str] = (), entry: bytes = b"",
        counted: Mapping[str, int] = {},
    ) -> tuple[list[str], bytes]:  # fmt: skip
        keys = self._keys
        now = time.time_ns() // 1_000_000
        message = {
            "prefix": keys.prefix, "group": GROUP, "now": now, "forget": now + TOMBSTONE_MS,
            "since": int(settled[0].partition("-")[0]) if settled else now,
            "recent_most": RECENT, "recent": entry, "counted": dict(counted),
            "notifies": int(self._notifies), "numbering": self.sections.numbering.decode(),
            "sections": self._section_limits(changes.pages), "pages": changes.columns(),
            "claims": [[*claim[1:], claim[0]] for claim in changes.claims],
            "groups": changes.groups, "expiry": changes.expiry, "resyncs": changes.resyncs,
            "coming": changes.coming, "feed": changes.feed, "feed_most": self._feed_most,
            "settled": settled,
        }  # fmt: skip
        if changes.titles:
            message["titles"] = changes.titles
        names = [keys.inbox, keys.dirty, keys.tombs, keys.counters, keys.tails, keys.recent]
        return names, msgpack.packb(message, use_bin_type=False)

    def _section_limits(self, pages: Iterable[Sequence[Any]]) -> dict[int, _LimitsRow]:
        """Return the limits of the sections that these pages leave and enter."""
        left = {page[1][:PLACE_BYTES] for page in pages} - {b""}
        touched = {page[5] for page in pages} | {Place.unpack(place).section for place in left}
        rows, found = self._limit_rows, {}
        for number in touched & self.sections.by_number.keys():
            name = self.sections.by_number[number]
            if name not in rows:
                of = self.limits_of(name)
                rows[name] = (
                    name, of.urls, of.hard, of.soft, of.block_urls, of.block_size, int(of.reuse),
                )  # fmt: skip
            found[number] = rows[name]
        return found

    def purge_tombstones(self, now_ms: int, most: int = 1000) -> int:
        """Purge the tombstones due at `now_ms` (ms since 1970); return the number that was due."""
        return int(
            self._scripts(
                "pages/purge_tombstones", [self._keys.tombs], now_ms, most, self._keys.prefix
            )
        )
