"""Current place and fragment of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import redis

from shared.batches import batches
from shared.config.sites.site import Site
from shared.domain.batch_state import NEWS
from shared.domain.deferral import AT
from shared.domain.page_record import PageRecord, Place, digest_of
from shared.domain.translation_groups import GroupMember
from shared.sitemap import fragments
from shared.sitemap.blocks import Block
from shared.sitemap.feed_writer import FeedItem
from shared.sitemap.shards import Shard
from shared.sitemap.xml_text import legal
from shared.store.client import Scripts, answering
from shared.store.keys import keys_of
from shared.store.pages.changes import BatchTooLargeError, loc_of, read_records, unpacked
from shared.store.publishing.publish_work import fragment_of
from shared.store.sections import Sections

_GROUPS, MOST_MEMBERS = 100, 50_000
"""Translation groups read in one round trip, and members of a batch of several events."""


class PageLookup:
    """Reader of page records, claims and fragments of one site."""

    def __init__(self, client: redis.Redis, site: str, sections: Sections) -> None:
        self._client, self.sections = client, sections
        self._keys = keys_of(site)
        self._scripts = Scripts(client)

    @classmethod
    def of(cls, client: redis.Redis, name: str, site: Site) -> Self:
        """Return the reader of a configured site."""
        return cls(client, name, Sections(client, name, site.limits))

    def records(
        self, keys: Sequence[str], owners: Sequence[bytes] = ()
    ) -> tuple[dict[str, bytes], dict[bytes, bytes]]:
        """Return the stored records of pages and claims, empty where there is none."""
        prefix = self._keys.prefix
        pages, claims, numbering, sections = read_records(self._scripts, prefix, keys, owners)
        self.sections.check(numbering, sections)
        return pages, claims

    def find(self, key: str) -> PageRecord | None:
        """Return the record of the page or news entry `key`."""
        return unpacked(self.records([key])[0])[key]

    def shard_of(self, page: PageRecord) -> Shard | None:
        """Return the shard that lists `page`; None if it has no place."""
        if page.place is None:
            return None
        section = page.place.section
        return Shard(self.sections.names([section])[section], page.place.shard)

    def current(self, pages: Mapping[str, PageRecord]) -> dict[str, bytes]:
        """Return the fragments of the listed ones of `pages`, pending patches before blocks.

        A fragment may be missing while a publisher commits it.
        """
        live = {key: page for key, page in pages.items() if page.live and page.place}
        places = {key: Place(*page.place) for key, page in live.items() if page.place}
        names = self.sections.names(at.section for at in places.values())
        shards = {key: Shard(names[at.section], at.shard) for key, at in places.items()}
        blocks = list(dict.fromkeys((shards[key], places[key].block) for key in live))
        with answering():
            pipe = self._client.pipeline(transaction=False)
            for key, shard in shards.items():
                patch = digest_of(key) + places[key].block.to_bytes(2, "big")
                # In the order in which a patch moves.
                pipe.hget(self._keys.pending(shard), patch)
                pipe.hget(self._keys.taking(shard), patch)
            for shard, block in blocks:
                pipe.hget(self._keys.blocks(shard), str(block))
            replies = pipe.execute()
        stored = dict(zip(blocks, replies[2 * len(live) :], strict=True))
        raws = {at: Block.unpack(block).raw() if block else b"" for at, block in stored.items()}
        found = {}
        for n, (key, page) in enumerate(live.items()):
            waiting = [patch[3:] for patch in replies[2 * n : 2 * n + 2] if patch]
            merged = fragments.find(raws[shards[key], places[key].block], loc_of(key))
            for fragment in (*waiting, merged):
                if fragment and fragments.digest(fragment) == page.digest:
                    found[key] = fragment
        return found

    def feed(self, keys: Iterable[str]) -> dict[str, FeedItem | None]:
        """Return the feed item of each page among `keys`, None where it has none.

        News entries are left out: they have no feed item besides that of their page.
        """
        locs = [key for key in keys if not key.startswith(NEWS)]
        if not locs:
            return {}
        with answering():
            found: Any = self._client.hmget(self._keys.feed_items, locs)
        return dict(zip(locs, (FeedItem.unpack(stored or b"") for stored in found), strict=True))

    def titles(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the title of each page among `keys`, empty where it has none; news entries are
        left out.
        """
        locs = [key for key in keys if not key.startswith(NEWS)]
        if not locs:
            return {}
        digests = b"".join(map(digest_of, locs))
        found = self._scripts("pages/read_titles", [self._keys.inbox], self._keys.prefix, digests)
        return {
            loc: legal(stored.decode(errors="replace"))
            for loc, stored in zip(locs, found, strict=True)
        }

    def groups(
        self, wanted: Iterable[bytes], most: int = MOST_MEMBERS
    ) -> dict[bytes, tuple[bytes, dict[str, GroupMember]]]:
        """Return each translation group as stored: the number of its last change, and its members.

        Raises BatchTooLargeError if they have more than `most` members.
        """
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
            if read > most:
                raise BatchTooLargeError(f"{read} members of {len(found)} groups")
        return found

    def coming(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the scheduled news entries and the deferrals among `keys`, as stored."""
        wanted = [key for key in keys if key.startswith((NEWS, AT))]
        if not wanted:
            return {}
        with answering():
            found: Any = self._client.hmget(self._keys.coming, wanted)
        return {
            key: stored for key, stored in zip(wanted, found, strict=True) if stored is not None
        }

    def all_coming(self) -> Iterator[tuple[str, bytes]]:
        """Yield all scheduled news entries and deferrals."""
        with answering():
            for key, stored in self._client.hscan_iter(self._keys.coming):
                yield key.decode(errors="replace"), stored

    def waiting_patch(self, shard: Shard, block: int, digest: bytes) -> bytes | None:
        """Return the unpublished fragment of a page in a block; empty: removal, None: no patch."""
        patch = digest + block.to_bytes(2, "big")
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.hget(self._keys.pending(shard), patch)
            pipe.hget(self._keys.taking(shard), patch)
            found = [patch for patch in pipe.execute() if patch]
        if not found:
            return None
        return fragment_of(found[0]) or b""

    def fragment(self, shard: Shard, block: int, loc: str) -> bytes | None:
        """Return the published fragment of the page `loc` in one block; None if it is not there."""
        with answering():
            stored: Any = self._client.hget(self._keys.blocks(shard), str(block))
        raw = Block.unpack(stored).raw() if stored else b""
        return fragments.find(raw, loc)

    def published(self, pages: Mapping[str, PageRecord]) -> dict[str, tuple[Shard, bytes]]:
        """Return the shard and the fragment of those of `pages` (by loc) that its file lists."""
        placed = {loc: page.place for loc, page in pages.items() if page.place is not None}
        if not placed:
            return {}
        names = self.sections.names(place.section for place in placed.values())
        at = {loc: Shard(names[place.section], place.shard) for loc, place in placed.items()}
        with answering():
            pipe = self._client.pipeline(transaction=False)
            for loc, shard in at.items():
                pipe.hget(self._keys.blocks(shard), str(placed[loc].block))
            stored = dict(zip(at, pipe.execute(), strict=True))
        raws = {loc: Block.unpack(block).raw() for loc, block in stored.items() if block}
        found = ((loc, fragments.find(raw, loc)) for loc, raw in raws.items())
        return {loc: (at[loc], fragment) for loc, fragment in found if fragment is not None}

    def count(self) -> int:
        """Return the number of listed pages, patches not yet published included."""
        with answering():
            return int(self._client.hget(self._keys.counters, "urls") or 0)
