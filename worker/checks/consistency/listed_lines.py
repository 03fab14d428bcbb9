"""Compare every line with the record of its page, both ways, in bounded memory.

Each line adds a row to a spool: its place and content digest. The records are then read bucket by
bucket and matched with these rows. Rows and records are read at different moments, so each mismatch
is read again, record and line in one transaction: only a mismatch there is a flaw.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Self

from shared.batches import batches
from shared.domain import expiry
from shared.domain.batch_state import NEWS
from shared.domain.page_record import NOWHERE, PageRecord, Place, digest_of
from shared.errors import DateError, ShardError
from shared.sitemap import fragments, shards
from shared.sitemap.extensions import news
from shared.sitemap.shards import Shard
from shared.store.pages.shard_contents import ShardContent, ShardLines, key_of, lists, readable
from shared.store.pages.snapshots import At, Seen, Snapshots
from shared.store.publishing.publish_batch import PublishedFile
from worker.checks.consistency.flaws import (
    LOST_LINE,
    NOT_SCHEDULED,
    OTHER_LINE,
    UNKNOWN_LINE,
    WRONG_COUNT,
    WRONG_FILE,
    Flaw,
)
from worker.checks.consistency.join_spool import JoinSpool
from worker.checks.progress import Step

ASKED_AT_ONCE = 200

_PLACED, _LINKED = slice(8, 22), slice(22, 26)
_LINE_BYTES, LINK_BYTES = 26, 4
_RECORDED = (slice(0, 9), slice(17, 22))
_OWNER, _GROUP = slice(22, 30), slice(30, 38)
_NOBODY = bytes(8)
_HOURS = (b"<news:news>", b"<video:expiration_date>")


def link_of(links: bytes) -> bytes:
    """Return a short hash that tells sets of alternates apart."""
    return blake2b(links, digest_size=LINK_BYTES).digest()


def due_ms(fragment: bytes) -> int:
    """Return the time at which a listed entry expires (ms since 1970); 0: never."""
    if not any(mark in fragment for mark in _HOURS):
        return 0
    try:
        entry = fragments.parse(fragment)
        return news.leaves_ms(entry.news) if entry.news else expiry.next_over_ms(entry.videos)
    except (DateError, ValueError, KeyError):
        return 0  # not an entry that sitemapd writes: another check reports it


class ListedLines:
    """Every line and every record of one site.

    `owners` (owner, digest) and `groups` (group, digest, link_of) are rows of the claims and groups
    in the records of listed pages; `mixed` are the shards that list news.
    """

    def __init__(self, snapshots: Snapshots, form: str) -> None:
        self._snapshots, self._form = snapshots, form
        self._lines, self.owners = JoinSpool(_LINE_BYTES), JoinSpool(16)
        self.groups = JoinSpool(16 + LINK_BYTES)
        self.mixed: set[Shard] = set()
        self._met: set[bytes] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for spool in (self._lines, self.owners, self.groups):
            spool.__exit__()

    def flaws(self, every: Iterable[Shard], step: Step) -> Iterator[Flaw]:
        """Yield the flaws of all known shards. Raises StoreError, CheckError."""
        names = {name: number for number, name in self._snapshots.sections().items()}
        looked = set()
        for shard in every:
            looked.add(shard)
            (content,) = self._snapshots.content([shard])
            yield from self._shard(content, names.get(shard.section), step)
        for part, records in enumerate(self._snapshots.pages()):
            yield from self._match(self._lines.part(part), records, step)
        yield from self._uncounted(looked, step)

    def file(self, shard: Shard) -> str:
        """Return the name of a shard's file, for display."""
        return shards.file_name(shard, self._form)

    def _shard(self, content: ShardContent, section: int | None, step: Step) -> Iterator[Flaw]:
        """Add the lines of a shard to the spool and count them."""
        urls = size = published = 0
        hours: dict[str, tuple[At, int]] = {}
        wrong = [f"a change waits under a wrong name in {kind}" for kind, _ in content.misnamed()]
        try:
            for lines in content.lines():
                step(0)
                wrong += _head(lines)
                published += lines.head[0]
                urls += len(lines.listed)
                size += sum(map(len, lines.listed))
                if section is not None:
                    place = Place(section, content.shard.number, lines.number).pack()
                    hours |= self._put_down(content.shard, place, lines.listed)
        except ShardError:
            return  # another check reports unreadable blocks
        known = content.known
        if (urls, size) != known[1:3]:
            counted, there = f"{known.urls} pages ({known.size} B)", f"{urls} ({size} B)"
            wrong.append(f"{counted} are counted, {there} are listed")
        if (urls or content.file) and not content.state:
            wrong.append("this file has no record")
        for detail in wrong:
            yield Flaw(WRONG_COUNT, self.file(content.shard), detail, content.shard)
        filed = PublishedFile.unpack(content.file).urls if content.file else published
        if filed != published:
            detail = f"published with {filed} pages, {published} are stored"
            yield Flaw(WRONG_FILE, self.file(content.shard), detail, content.shard)
        yield from self._late(hours)

    def _put_down(
        self, shard: Shard, place: bytes, listed: Sequence[bytes]
    ) -> Iterator[tuple[str, tuple[At, int]]]:
        """Add a row for each line; yield the lines that expire, with the time."""
        for fragment in listed:
            key = key_of(fragment)
            digest, content = digest_of(key), fragments.digest(fragment)
            said = place + len(fragment).to_bytes(3, "big") + content
            self._lines.add(digest + said + link_of(fragments.linked(fragment)))
            if key.startswith(NEWS):
                self.mixed.add(shard)
            if when := due_ms(fragment):
                yield key, (At(digest, place, key), when)

    def _late(self, hours: dict[str, tuple[At, int]]) -> Iterator[Flaw]:
        late = self._snapshots.unscheduled({key: when for key, (_, when) in hours.items()})
        for some in batches(late, ASKED_AT_ONCE):
            ats = [hours[key][0] for key in some]
            for at, seen in zip(ats, self._snapshots.look(ats), strict=True):
                when = due_ms(seen.fragment) if seen.fragment else 0
                if when and (seen.hour is None or seen.hour > when):
                    detail = "its news or video would never expire"
                    yield Flaw(NOT_SCHEDULED, at.key, detail, key=at.key, when=when)

    def _match(
        self, put_down: Iterable[bytes], records: Iterable[tuple[bytes, bytes]], step: Step
    ) -> Iterator[Flaw]:
        """Match a part of the records with the rows of their lines."""
        rows: dict[bytes, bytes] = {}
        doubts: list[At] = []
        for row in put_down:
            if row[:8] in rows:
                doubts.append(At(row[:8], row[8:14]))  # a duplicate, or moved during the reading
            else:
                rows[row[:8]] = row
        gone = []
        for digest, record in records:
            row = rows.get(digest, b"")
            if lists(record):
                self._met.add(record[:4])
                if b"".join(record[each] for each in _RECORDED) != row[_PLACED]:
                    doubts.append(At(digest, record[:6]))
                else:
                    del rows[digest]
                self._note(digest, record, row)
            elif readable(record):
                gone.append(digest)
            elif not row:
                doubts.append(At(digest, NOWHERE))
        doubts += [At(digest, row[8:14]) for digest, row in rows.items()]
        step(0)
        yield from self._judge(doubts, step)
        yield from self._unforgettable(gone)

    def _note(self, digest: bytes, record: bytes, row: bytes) -> None:
        owner, group = record[_OWNER], record[_GROUP]
        if owner and owner != _NOBODY:
            self.owners.add(owner + digest)
        if group:
            self.groups.add(group + digest + (row[_LINKED] or bytes(LINK_BYTES)))

    def _judge(self, doubts: Sequence[At], step: Step) -> Iterator[Flaw]:
        sections: dict[int, str] = {}
        for some in batches(dict.fromkeys(doubts), ASKED_AT_ONCE):
            found = self._snapshots.look(some)
            for at, seen in zip(some, found, strict=True):
                if verdict := _verdict(at, seen):
                    sections = sections or self._snapshots.sections()
                    yield self._flaw(at, seen, sections, *verdict)
            step(0)

    def _flaw(self, at: At, seen: Seen, sections: dict[int, str], kind: str, detail: str) -> Flaw:
        place = Place.unpack(at.place)
        shard = None
        if at.place != NOWHERE and place.section in sections:
            shard = Shard(sections[place.section], place.shard)
        if seen.fragment is not None:
            return Flaw(kind, fragments.loc_of(seen.fragment), detail, shard, at.digest)
        where = self.file(shard) if shard else "no file"
        return Flaw(kind, where, f"{detail}: page {at.digest.hex()}", shard, at.digest)

    def _unforgettable(self, gone: Sequence[bytes]) -> Iterator[Flaw]:
        for some in batches(gone, ASKED_AT_ONCE):
            if left := self._snapshots.unburied(some):
                for digest, (record, known) in zip(left, self._snapshots.buried(left), strict=True):
                    if not known and readable(record) and not lists(record):
                        detail = "a tombstone that would never expire"
                        yield Flaw(NOT_SCHEDULED, f"page {digest.hex()}", detail, digest=digest)

    def _uncounted(self, looked: Collection[Shard], step: Step) -> Iterator[Flaw]:
        """Yield shards that page records name, and that have no shard state."""
        sections = self._snapshots.sections()
        for packed in sorted(self._met):
            place = Place.unpack(packed + bytes(2))
            if place.section not in sections:
                continue
            shard = Shard(sections[place.section], place.shard)
            if shard not in looked:
                step(0)
                (content,) = self._snapshots.content([shard])
                if not content.state and (content.blocks or content.taking or content.pending):
                    detail = "this file has no record"
                    yield Flaw(WRONG_COUNT, self.file(shard), detail, shard)


def _head(lines: ShardLines) -> list[str]:
    """Return the faults of a block's description of itself."""
    block = lines.block
    if block is None or (block.urls, block.uses) == lines.head:
        return []
    return [f"block {lines.number} says {block.urls} pages and holds {lines.head[0]}"]


def _verdict(at: At, seen: Seen) -> tuple[str, str] | None:
    """Return the flaw of a page as read at one instant; None if it has none."""
    if seen.unread:
        return None
    record, fragment = seen.record, seen.fragment
    here = lists(record) and record[:6] == at.place
    if fragment is None:
        if here:
            return LOST_LINE, "recorded as listed, but without an entry"
        if record and not readable(record):
            return LOST_LINE, "its record cannot be read"
        return None
    if here:
        page = PageRecord.unpack(record)
        if (page.length, page.digest) == (len(fragment), fragments.digest(fragment)):
            return None
        return OTHER_LINE, "its entry differs from its record"
    if lists(record):
        return UNKNOWN_LINE, "a second entry: its record names another place"
    return UNKNOWN_LINE, ("deleted, but its entry is still there") if readable(
        record
    ) else "no record of it"
