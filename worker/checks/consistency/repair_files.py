"""Repair of records, lines and counts of one shard: all of it at once, or nothing.

A line is published, so it prevails over a record; except where the record says that the page is
deleted or that another line lists it. Lost bytes cannot be recreated: such a page is recorded as
not listed, so that the next event about it lists it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import NamedTuple

from shared.batches import batches
from shared.clock import now_ms
from shared.config.sites.site import Site
from shared.domain.page_record import TOMBSTONE_MS, PageRecord, Place, digest_of, field_of
from shared.errors import PublishError, ShardError
from shared.sitemap import blocks, fragments
from shared.sitemap.blocks import Block
from shared.sitemap.shards import MAX_BYTES, TEXT_FORMS, Shard, ShardState
from shared.store.pages.amendments import Amendment, Amendments
from shared.store.pages.shard_contents import STATE_BYTES, ShardContent, key_of, lists, readable
from shared.store.pages.snapshots import At, Snapshots
from shared.store.publishing.publish_batch import PublishedFile
from worker.publishing.shard_file import path_of
from worker.publishing.targets.registry import open_own

READ_AT_ONCE = 500
_GZIP = 31


class FileLine(NamedTuple):
    """One line of a shard: digest of its page, block, fragment."""

    digest: bytes
    block: int
    fragment: bytes

    def page(
        self, place: bytes, stamp: int = 0, owner: bytes = b"", group: bytes = b""
    ) -> PageRecord:
        """Return the record of a page that this line lists."""
        said = len(self.fragment), stamp, fragments.digest(self.fragment)
        return PageRecord(Place.unpack(place), *said, owner, group)


class FileRepairPlan:
    """Planned writes for one shard, as it was read: `amendment`. `lost` pages have no line any
    more, `stale` ones a line other than decided.
    """

    def __init__(self, content: ShardContent, section: int, keys: Snapshots) -> None:
        self.amendment = Amendment()
        self.lost = self.stale = 0
        self._content, self._section, self._snapshots = content, section, keys
        self._keys, self._shard = keys.keys, content.shard
        self._urls = self._size = 0
        self._now = now_ms()

    def place(self, block: int) -> bytes:
        """Return the place of a block, as stored."""
        return Place(self._section, self._shard.number, block).pack()

    def drop_misnamed(self) -> bool:
        """Remove patches under the name of another page; return True if there were any."""
        keys = {"taking": self._keys.taking, "pending": self._keys.pending}
        for kind, name in self._content.misnamed():
            patches = getattr(self._content, kind)
            self.amendment.change(keys[kind](self._shard), name, patches[name], b"")
        return not self.amendment.empty

    def lines(self) -> list[FileLine]:
        """Return all lines, with the counts of their blocks corrected. ShardError if damaged."""
        found = []
        for lines in self._content.lines():
            if lines.block is not None and (lines.block.urls, lines.block.uses) != lines.head:
                before = self._content.blocks[lines.number]
                after = blocks.deflate(lines.merged, *lines.head).pack()
                key = self._keys.blocks(self._shard)
                self.amendment.change(key, str(lines.number), before, after)
            found += [FileLine(digest_of(key_of(f)), lines.number, f) for f in lines.listed]
        return found

    def keep(self, line: FileLine) -> None:
        """Count a line that stays."""
        self._urls, self._size = self._urls + 1, self._size + len(line.fragment)

    def record(self, digest: bytes, before: bytes, after: PageRecord | None) -> None:
        """Change the record of a page."""
        packed = after.pack() if after else b""
        self.amendment.change(self._keys.loc(digest), field_of(digest), before, packed)
        if after and not after.live:
            self.amendment.scores.append((self._keys.tombs, digest, self._now + TOMBSTONE_MS))

    def rely(self, digest: bytes, record: bytes) -> None:
        """Make the write conditional on this record."""
        self.amendment.compared.append((self._keys.loc(digest), field_of(digest), record))

    def remove(self, line: FileLine) -> None:
        """Remove a line."""
        key = fragments.key(fragments.loc_of(line.fragment))
        self._patch(line, b"D", key)

    def put(self, line: FileLine) -> None:
        """Restore a line."""
        self._patch(line, b"U", line.fragment)
        self.keep(line)

    def _patch(self, line: FileLine, op: bytes, payload: bytes) -> None:
        where = line.block.to_bytes(2, "big")
        key = self._keys.pending(self._shard)
        self.amendment.fields.append((key, line.digest + where, where + op + payload))

    def finish(self, new_ordinal: int | None) -> None:
        """Correct the counts, and mark the shard dirty if anything changed."""
        known = self._content.known
        file = self._content.file
        published = sum(Block.unpack(stored).urls for stored in self._content.blocks.values())
        counted = (self._urls, self._size) == known[1:3] and len(self._content.state) == STATE_BYTES
        filed = not file or PublishedFile.unpack(file).urls == published
        if counted and filed and self.amendment.empty:
            return
        generation = known.generation or (PublishedFile.unpack(file).generation if file else 0)
        ordinal = known.ordinal if new_ordinal is None else new_ordinal
        after = ShardState(generation + 1, self._urls, self._size, ordinal).pack()
        key, number = self._keys.shards(self._shard.section), str(self._shard.number)
        self.amendment.change(key, number, self._content.state, after)
        self.amendment.scores.append((self._keys.dirty, str(self._shard), self._now))


class FileRepair:
    """Repair of the files of one site; the caller holds the lease with `token`. `lost` and `stale`
    count the pages of which bytes are missing.
    """

    def __init__(self, snapshots: Snapshots, amending: Amendments, site: Site, token: str) -> None:
        self._snapshots, self._amending = snapshots, amending
        self._site, self._token = site, token
        self.lost = self.stale = 0

    def mend(self, shard: Shard, digests: Iterable[bytes]) -> bool:
        """Try once to repair `shard` and the pages `digests` that should be in it.

        Returns True if it was written, or nothing was to be done; unreadable parts stay as they
        are. Raises StoreError.
        """
        numbers = {name: number for number, name in self._snapshots.sections().items()}
        if shard.section not in numbers:
            return True
        (content,) = self._snapshots.content([shard])
        plan = FileRepairPlan(content, numbers[shard.section], self._snapshots)
        try:
            if not plan.drop_misnamed():
                listed = self._lines(plan)
                self._lost(plan, content, listed, digests)
                plan.finish(self._ordinal(content))
        except ShardError:
            return True
        if plan.amendment.empty:
            return True
        if not self._amending.write(plan.amendment, self._token):
            return False
        self.lost, self.stale = self.lost + plan.lost, self.stale + plan.stale
        return True

    def _lines(self, plan: FileRepairPlan) -> set[bytes]:
        """Compare every line with its record; return those that list their page, as digest and
        place.
        """
        listed: set[bytes] = set()
        for lines in batches(plan.lines(), READ_AT_ONCE):
            records = self._snapshots.records([line.digest for line in lines])
            for line in lines:
                if self._line(plan, line, records[line.digest], listed):
                    listed.add(line.digest + plan.place(line.block))
                    plan.keep(line)
                else:
                    plan.remove(line)
        return listed

    def _line(
        self, plan: FileRepairPlan, line: FileLine, record: bytes, listed: set[bytes]
    ) -> bool:
        """Return True if `line` stays; its record then matches it."""
        place = plan.place(line.block)
        if not readable(record):
            plan.record(line.digest, record, line.page(place))
            return True
        if not lists(record):
            plan.rely(line.digest, record)
            return False
        page = PageRecord.unpack(record)
        said = line.page(place, page.stamp, page.owner, page.group)
        if record == said.pack():
            return True
        if record[:6] == place:
            plan.stale += 1
        else:
            (seen,) = self._snapshots.look([At(line.digest, record[:6])])
            if (
                seen.fragment is not None
                or seen.unread
                or any(line.digest == each[:8] for each in listed)
            ):
                plan.rely(line.digest, record)
                return seen.unread
        plan.record(line.digest, record, said)
        return True

    def _lost(
        self,
        plan: FileRepairPlan,
        content: ShardContent,
        listed: set[bytes],
        digests: Iterable[bytes],
    ) -> None:
        """Restore the lines of pages recorded here without one, or record that they are gone."""
        here = plan.place(0)[:4]
        missing: dict[bytes, bytes] = {}
        for some in batches(dict.fromkeys(digests), READ_AT_ONCE):
            missing |= {
                digest: record
                for digest, record in self._snapshots.records(some).items()
                if lists(record) and record[:4] == here and digest + record[:6] not in listed
            }
        found = dict(self._published(content.shard, missing)) if missing else {}
        for digest, record in missing.items():
            page = PageRecord.unpack(record)
            if digest in found:
                plan.rely(digest, record)
                plan.put(FileLine(digest, Place.unpack(record).block, found[digest]))
            else:
                plan.lost += 1
                gone = page._replace(length=0, digest=bytes(5), group=b"")
                plan.record(digest, record, gone)

    def _published(
        self, shard: Shard, missing: Mapping[bytes, bytes]
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the lines of these pages in the published file, if they are as decided."""
        if self._site.form in TEXT_FORMS:
            return
        try:
            with closing(open_own(self._site)) as root:
                content = root.read_own(path_of(shard, self._site.form)) or b""
            if self._site.form != "xml":
                content = zlib.decompressobj(_GZIP).decompress(content, MAX_BYTES)
        except (PublishError, zlib.error):
            return
        start = content.find(fragments.START)
        for fragment in blocks.split(content[start:]) if start >= 0 else ():
            try:
                digest = digest_of(key_of(fragment))
            except (ValueError, UnicodeDecodeError):
                continue  # the file was edited by hand
            if record := missing.get(digest):
                page = PageRecord.unpack(record)
                if (page.length, page.digest) == (len(fragment), fragments.digest(fragment)):
                    yield digest, fragment

    def _ordinal(self, content: ShardContent) -> int | None:
        """Return a new ordinal in the index for a shard without state."""
        known = len(content.state) == STATE_BYTES
        if known or not (content.blocks or content.pending or content.taking):
            return None
        return self._amending.new_ordinal()
