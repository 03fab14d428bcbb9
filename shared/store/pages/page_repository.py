"""Page records and claims of a site: read the batch state, and apply what was decided on it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgpack
import redis

from shared.batches import batches
from shared.domain import expiry, group_alternates, translation_groups
from shared.domain.batch_state import NEWS, Arrival, BatchState, subjects
from shared.domain.page_record import PLACE_BYTES, TOMBSTONE_MS, Claim, PageRecord, Place, digest_of
from shared.domain.routing import family_of
from shared.domain.translation_groups import GroupMember
from shared.errors import LostLineError
from shared.events.event import Event
from shared.sitemap import fragments
from shared.sitemap.feed_writer import RESERVE
from shared.sitemap.shards import Limits, Shard
from shared.store.client import PipelinedScript, Scripts, answering
from shared.store.keys import GROUP, RECENT, Keys, field
from shared.store.operations import event_log
from shared.store.pages.changes import BatchChanges, BatchTooLargeError, ReadBatch, changes_of
from shared.store.pages.lookup import PageLookup, loc_of, unpacked
from shared.store.sections import Draft, Sections

_DEFAULT = Limits()
_GROUPS, _MEMBERS = 100, 50_000
"""Translation groups read in one round trip, and members of a batch."""


class PageRepository:
    """Page records, claims and pending patches of one site."""

    def __init__(
        self,
        client: redis.Redis,
        site: str,
        limits: Mapping[str, Limits],
        feed_entries: int = 0,
        *,
        draft: bool = False,
        tells: bool = False,
    ) -> None:
        """Create a repository with the `limits` of each configured section.

        News entries are read if one of the sections reuses its files. `feed_entries` is the number
        of pages the site's feeds list, 0 if it has none. A `draft` is for deciding only and must
        not be applied: nothing is written. `tells` if engines are notified of changes.
        """
        self._client = client
        self._keys = Keys(site)
        self._scripts = Scripts(client)
        self._limits = limits
        self.sections = (Draft if draft else Sections)(client, site, limits)
        self.lookup = PageLookup(client, site, self.sections)
        self._feed_most, self._tells = feed_entries * RESERVE, tells
        self._lists_news = any(each.reuse for each in limits.values())

    def limits_of(self, section: str) -> Limits:
        """Return the limits of a shard of `section`."""
        return self._limits.get(family_of(section, self._limits), _DEFAULT)

    def know(self, events: Iterable[Event]) -> ReadBatch:
        """Read the batch state needed to decide `events`, and the stored records, for `apply`.

        Raises BatchTooLargeError if the groups of several events have too many members to read.
        """
        events = list(events)
        wanted = [subjects(event) for event in events]
        # In order of arrival, and not as a set, whose order differs between processes: new pages
        # are placed in this order.
        owners = list(dict.fromkeys(owner for _, owner in wanted if owner))
        locs = list(dict.fromkeys(loc for loc, _ in wanted if loc is not None))
        pages, claims = self.lookup.records(self._with_news(locs), owners)
        known = BatchState(
            self.sections.numbers({event.section for event in events if event.section})
        )
        known.claims = {o: Claim.unpack(stored) if stored else None for o, stored in claims.items()}
        # A page that moves leaves its old URL: the record of that one is needed as well.
        left = [c.loc for c in known.claims.values() if c and c.loc and c.loc not in pages]
        if left:
            pages.update(self.lookup.records(self._with_news(left))[0])
        known.pages = unpacked(pages)
        self._learn_sections(known)
        named = {translation_groups.digest_of(event.group) for event in events if event.group}
        named |= {page.group for page in known.pages.values() if page}
        named.discard(b"")
        stored = self._groups(named, divisible=len(events) > 1) if named else {}
        known.groups = {group: dict(members) for group, (_, members) in stored.items()}
        known.sets = {
            group: translation_groups.alternates(members) for group, (_, members) in stored.items()
        }
        feed = self.lookup.feed(pages) if self._feed_most else {}
        known.feed = dict(feed)
        return ReadBatch(known, pages, claims, stored, feed, len(events) > 1)

    def _with_news(self, locs: Sequence[str]) -> list[str]:
        return [*locs, *(NEWS + loc for loc in locs)] if self._lists_news else [*locs]

    def _learn_sections(self, known: BatchState) -> None:
        listed = {page.place.section for page in known.pages.values() if page and page.place}
        if not listed <= set(known.sections.values()):
            # A worker with a newer configuration has placed pages there (RELIABILITY F21), or
            # another worker the first page of a month.
            self.sections.forget()
            known.sections = self.sections.numbers(known.sections)

    def _groups(
        self, wanted: Iterable[bytes], *, divisible: bool
    ) -> dict[bytes, tuple[bytes, dict[str, GroupMember]]]:
        """Return each group as stored: the number of its last change, and its members."""
        found: dict[bytes, tuple[bytes, dict[str, GroupMember]]] = {}
        read = 0
        for names in batches(wanted, _GROUPS):
            with answering():
                pipe = self._client.pipeline(transaction=False)
                for group in names:
                    pipe.hgetall(self._keys.cluster(group))
                replies = pipe.execute()
            for group, fields in zip(names, replies, strict=True):
                number = fields.pop(b"", b"")
                members = {
                    loc.decode(): GroupMember.unpack(stored) for loc, stored in fields.items()
                }
                found[group] = number, members
                read += len(members)
            if divisible and read > _MEMBERS:
                raise BatchTooLargeError(f"{read} members of {len(found)} groups")
        return found

    def relink(self, batch: ReadBatch) -> None:
        """Give every page the alternates that its group now has.

        Only members whose set changed are read, with their current fragments. Raises LostLineError
        if a fragment is missing: it is being published, so decide again; if the error persists, the
        state is damaged. Raises BatchTooLargeError if these are more pages than one call may write.
        """
        known = batch.known
        # One pass; more where the store was edited and a set names pages that have no record.
        while due := group_alternates.outdated(known):
            batch.bound([(group, 0) for group, _ in due.values()])
            new = self.lookup.records([loc for loc in due if loc not in batch.pages])[0]
            batch.pages.update(new)
            known.pages |= unpacked(new)
            self._learn_sections(known)
            here = {loc: known.fragments[loc] for loc in due if loc in known.fragments}
            there = {loc: page for loc in due if loc not in here and (page := known.pages[loc])}
            here |= self.lookup.current(there)
            for loc, (group, linked) in due.items():
                page = known.pages[loc]
                if page is not None and page.live and loc not in here:
                    raise LostLineError(loc)
                group_alternates.relink(known, loc, group, here.get(loc, b""), linked)

    def expiring(self, now_ms: int, most: int = 200) -> list[bytes]:
        """Return up to `most` entries due for expiry at `now_ms` (ms since 1970)."""
        with answering():
            found: Any = self._client.zrangebyscore(self._keys.expiry, "-inf", now_ms, 0, most)
        return list(found)

    def due(self, expiring: Iterable[bytes], now_ms: int) -> ReadBatch:
        """Read the entries `expiring` and change them as due at `now_ms`, for `apply`."""
        keys = [key.decode() for key in expiring]
        coming = self.lookup.coming(keys)
        wanted = dict.fromkeys([*keys, *(loc_of(key) for key in coming)])
        pages = self.lookup.records(list(wanted))[0]
        known = BatchState(self.sections.numbers())
        known.pages = unpacked(pages)
        self._learn_sections(known)
        listed = self.lookup.current({key: page for key, page in known.pages.items() if page})
        for key in keys:
            page = known.pages[key]
            if key in coming and (page is None or not page.live):
                expiry.appear(known, key, coming[key], now_ms)
            elif page is None or not page.live or key in listed:
                expiry.expire(known, key, listed.get(key, b""), now_ms)
                if key in coming and known.expiry[key] == 0:
                    known.coming[key] = b""  # listed by a later event
        return ReadBatch(known, pages, {}, {}, divisible=len(keys) > 1)

    def expect(self, entries: Mapping[Any, int]) -> None:
        """Schedule entries for expiry at these times (ms since 1970), whatever was scheduled."""
        if entries:
            with answering():
                self._client.zadd(self._keys.expiry, entries)

    def apply(
        self,
        batch: ReadBatch,
        settled: Sequence[str] = (),
        decisions: Sequence[tuple[str, str, str, bool]] = (),
        errand: PipelinedScript | None = None,
        resyncs: Sequence[tuple[str, int]] = (),
        payloads: Sequence[bytes] = (),
    ) -> bool:
        """Write the decided `batch.known`, all or nothing, and settle the events `settled`.

        Return False if another worker changed one of the records meanwhile: read and decide again.
        `decisions` go into the event log: (event id, loc, reason, whether bytes change). `errand`
        runs right after it, unless it is done. `resyncs` are scopes to be compared with their
        source, with the time of the request (ms). `payloads` are the stored events in the order of
        `decisions`, for the event log. Raises BatchTooLargeError if a divisible batch exceeds what
        one call may write: nothing was written.
        """
        changes = changes_of(batch)._replace(resyncs=resyncs)
        note = event_log.pack(decisions, payloads) if decisions else b""
        counted = Counter("changed" if changed else "unchanged" for *_, changed in decisions)
        return self._write(changes, settled, note, counted, errand)

    def move(self, shard: Shard, listed: Sequence[bytes]) -> int:
        """Move pages, by their fragments in `shard`, to the tail of its section; return the number.

        A page that changed since it was published stays; if one changes now, none is moved.
        """
        stored = self.lookup.records([fragments.loc_of(fragment) for fragment in listed])[0]
        number = self.sections.numbers()[shard.section]
        moved = []
        for fragment, (loc, record) in zip(listed, stored.items(), strict=True):
            place = PageRecord.unpack(record).place if record else None
            here = place is not None and place[:2] == (number, shard.number)
            if here and PageRecord.lists(record, fragments.digest(fragment), number):
                digest = digest_of(loc)
                rest = (record[PLACE_BYTES:], "M", fragment, number, digest, 1, 0)
                moved.append((field(digest), record, *rest))
        return len(moved) if moved and self._write(BatchChanges(moved)) else 0

    def _write(
        self,
        changes: BatchChanges,
        settled: Sequence[str] = (),
        note: bytes = b"",
        counted: Mapping[str, int] = {},
        errand: PipelinedScript | None = None,
    ) -> bool:
        keys = self._keys
        now = time.time_ns() // 1_000_000
        pages, owned = changes.pages, changes.claims
        message = {
            "prefix": keys.prefix, "group": GROUP, "now": now, "forget": now + TOMBSTONE_MS,
            "since": min((Arrival.of(ident).ms for ident in settled[:1]), default=now),
            "recent_most": RECENT, "recent": note, "counted": dict(counted),
            "tells": int(self._tells),
            "sections": self._section_limits(pages), "pages": pages,
            "claims": [[field(owner), *stored, owner] for owner, *stored in owned],
            "groups": changes.groups, "expiry": changes.expiry, "resyncs": changes.resyncs,
            "coming": changes.coming, "feed": changes.feed, "feed_most": self._feed_most,
            "settled": settled,
        }  # fmt: skip
        names = [keys.inbox, keys.dirty, keys.tombs, keys.counters, keys.tails, keys.recent]
        names += [keys.loc(page[6]) for page in pages] + [keys.id(owner) for owner, *_ in owned]
        packed = msgpack.packb(message, use_bin_type=False)
        if errand is None or errand.done:
            return int(self._scripts("pages/apply", names, packed)) == 0
        return int(self._scripts.along(errand, "pages/apply", names, packed)) == 0

    def _section_limits(
        self, pages: Iterable[Sequence[Any]]
    ) -> dict[int, tuple[str, int, int, int, int, int, int]]:
        """Return the limits of the sections that these pages leave and enter."""
        touched = {page[5] for page in pages}
        touched |= {Place.unpack(page[1]).section for page in pages if page[1]}
        limits = {}
        for name, number in self.sections.numbers().items():
            if number in touched:
                of = self.limits_of(name)
                limits[number] = (
                    name, of.urls, of.hard, of.soft, of.block_urls, of.block_size, int(of.reuse),
                )  # fmt: skip
        return limits

    def forget(self, now_ms: int, most: int = 1000) -> int:
        """Purge the tombstones due at `now_ms` (ms since 1970); return the number that was due."""
        return int(
            self._scripts(
                "pages/purge_tombstones", [self._keys.tombs], now_ms, most, self._keys.prefix
            )
        )
