"""Snapshots of parts of a site's state, each read at one instant, for checks of consistency.

Every script that changes pages writes record, patch, counts and group at once, and a commit moves
patches into blocks at once. So whatever one transaction reads must agree, also while events arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from shared.domain.page_record import NOWHERE, PLACE_BYTES, Place, digest_of
from shared.errors import ShardError
from shared.sitemap import blocks
from shared.sitemap.blocks import Block
from shared.sitemap.shards import Shard
from shared.store.client import answering
from shared.store.keys import field
from shared.store.layouts.version import BACK, FORM, Layout
from shared.store.pages.buckets import BucketScan
from shared.store.pages.shard_contents import ShardContent, content_of, key_of, readable
from shared.store.publishing.publish_work import fragment_of

_T = TypeVar("_T")


class At(NamedTuple):
    """Page to be read: its digest, place (as stored), and key if its expiry time is wanted."""

    digest: bytes
    place: bytes
    key: str = ""


class Seen(NamedTuple):
    """State of a page at one instant: its record (empty: none), its line at the place (None: none
    there), when it is due for expiry (ms since 1970; None: never). `unread` if the block there is
    damaged.
    """

    record: bytes
    fragment: bytes | None
    hour: int | None
    unread: bool = False


class Pair(NamedTuple):
    """Claim and page record, both as stored (empty: none)."""

    claim: bytes
    record: bytes


class Snapshots(BucketScan):
    """Reader of the state of one site. Each method is one transaction, unless noted otherwise."""

    def at_once(self, ask: Callable[[Any], None]) -> list[Any]:
        """Return the replies to the commands that `ask` puts into one transaction."""
        with answering():
            pipe = self._client.pipeline(transaction=True)
            ask(pipe)
            return list(pipe.execute())

    def content(self, shards: Sequence[Shard]) -> list[ShardContent]:
        """Return the stored content of `shards`."""
        replies = self.at_once(lambda pipe: self.ask_content(pipe, shards))
        return [content_of(s, replies[5 * n : 5 * n + 5]) for n, s in enumerate(shards)]

    def ask_content(self, pipe: Any, shards: Iterable[Shard]) -> None:
        """Queue the five commands of each of `shards` whose replies content_of takes."""
        keys = self.keys
        for shard in shards:
            pipe.hget(keys.shards(shard.section), str(shard.number))
            pipe.hget(keys.files(shard.section), str(shard.number))
            pipe.hgetall(keys.blocks(shard))
            pipe.hgetall(keys.taking(shard))
            pipe.hgetall(keys.pending(shard))

    def sections(self) -> dict[int, str]:
        """Return all sections that ever existed, by number. Raises LayoutError."""
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.hgetall(self.keys.sections)
            pipe.hmget(self.keys.counters, FORM, BACK)
            found, (form, back) = pipe.execute()
        layout = Layout.read(form, back, known=bool(found))
        if not layout.current:
            raise layout.refusal(self.site)
        return {int(number): name.decode() for name, number in found.items()}

    def look(self, wanted: Sequence[At]) -> list[Seen]:
        """Return the state of each of `wanted`."""
        return self._look(wanted, b"")[1]

    def _look(self, wanted: Sequence[At], group: bytes) -> tuple[dict[bytes, bytes], list[Seen]]:
        """Return the stored members of `group` and the state of each of `wanted`."""
        names = self.sections()  # read here: every place known so far is in a named section
        places = [_place(at.place, names) for at in wanted]
        merged = list(dict.fromkeys(place for place in places if place))

        def ask(pipe: Any) -> None:
            pipe.hgetall(self.keys.cluster(group))
            for at, place in zip(wanted, places, strict=True):
                pipe.hget(self.keys.loc(at.digest), field(at.digest))
                pipe.zscore(self.keys.expiry, at.key)
                if place:
                    patch = at.digest + at.place[4:]
                    pipe.hget(self.keys.pending(place[0]), patch)
                    pipe.hget(self.keys.taking(place[0]), patch)
            for shard, block in merged:
                pipe.hget(self.keys.blocks(shard), str(block))

        members, *rest = self.at_once(ask)
        replies, found = iter(rest), []
        for place in places:
            record, hour = next(replies) or b"", next(replies)
            found.append((record, hour, [next(replies), next(replies)] if place else []))
        raws = dict(zip(merged, replies, strict=True))
        return members, [
            _seen(at, *each, raws.get(place) if place else None)
            for at, place, each in zip(wanted, places, found, strict=True)
        ]

    def members(self, groups: Sequence[bytes]) -> list[dict[bytes, bytes]]:
        """Return the stored members of each of `groups`."""

        def ask(pipe: Any) -> None:
            for group in groups:
                pipe.hgetall(self.keys.cluster(group))

        return self.at_once(ask)

    def group(
        self, group: bytes, digests: Sequence[bytes]
    ) -> tuple[dict[bytes, bytes], dict[bytes, Seen]]:
        """Return the stored members of `group` and the state of these pages.

        Reading the line of a page takes its place: the read is repeated until no page has moved.
        """
        places = self.records(digests)
        while True:
            ats = [
                At(d, places[d][:PLACE_BYTES] if readable(places[d]) else NOWHERE) for d in digests
            ]
            members, seen = self._look(ats, group)
            moved = {
                at.digest: each.record
                for at, each in zip(ats, seen, strict=True)
                if readable(each.record) and each.record[:PLACE_BYTES] != at.place
            }
            if not moved:
                return members, dict(zip(digests, seen, strict=True))
            places |= moved

    def records(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the records of these pages, empty where there is none."""

        def ask(pipe: Any) -> None:
            for digest in digests:
                pipe.hget(self.keys.loc(digest), field(digest))

        return dict(zip(digests, (found or b"" for found in self.at_once(ask)), strict=True))

    def pairs(self, wanted: Sequence[tuple[bytes, bytes]]) -> list[Pair]:
        """Return the claim of each owner with the record of the page of the digest beside it."""

        def ask(pipe: Any) -> None:
            for owner, digest in wanted:
                pipe.hget(self.keys.id(owner), field(owner))
                pipe.hget(self.keys.loc(digest), field(digest))

        replies = [found or b"" for found in self.at_once(ask)]
        return [Pair(*replies[2 * n : 2 * n + 2]) for n in range(len(wanted))]

    def buried(self, members: Sequence[bytes]) -> list[tuple[bytes, bool]]:
        """Return the record or claim of each expected member of `tombs`, and if it is there."""

        def ask(pipe: Any) -> None:
            for member in members:
                digest = member[-8:]
                key = self.keys.id if len(member) > len(digest) else self.keys.loc
                pipe.hget(key(digest), field(digest))
                pipe.zscore(self.keys.tombs, member)

        replies = self.at_once(ask)
        return [
            (replies[2 * n] or b"", replies[2 * n + 1] is not None) for n in range(len(members))
        ]

    def unscheduled(self, entries: Mapping[str, int]) -> list[str]:
        """Return the keys of `entries` that are not scheduled by the given time (ms since 1970)."""
        return [
            key
            for key, at in self._scores(self.keys.expiry, entries)
            if at is None or at > entries[key]
        ]

    def unburied(self, members: Sequence[bytes]) -> list[bytes]:
        """Return those of `members` that are missing in `tombs`."""
        return [member for member, at in self._scores(self.keys.tombs, members) if at is None]

    def _scores(self, key: str, members: Iterable[_T]) -> Iterator[tuple[_T, float | None]]:
        named: list[Any] = list(members)
        with answering():
            found: Any = self._client.zmscore(key, named) if named else []
        return zip(named, found, strict=True)


def _place(stored: bytes, names: Mapping[int, str]) -> tuple[Shard, int] | None:
    """Return the shard and block of a stored place; None if it is no place."""
    if stored == NOWHERE:
        return None
    section, number, block = Place.unpack(stored)
    return (Shard(names[section], number), block) if section in names else None


def _seen(
    at: At, record: bytes, hour: float | None, patches: Sequence[bytes | None], block: bytes | None
) -> Seen:
    due = None if hour is None else int(hour)
    waiting = next((patch for patch in patches if patch), None)
    if waiting is not None:
        return Seen(record, fragment_of(waiting), due)
    if block is None:
        return Seen(record, None, due)
    try:
        raw = Block.unpack(block).raw()
    except ShardError:
        return Seen(record, None, due, unread=True)
    for fragment in blocks.split(raw):
        if digest_of(key_of(fragment)) == at.digest:
            return Seen(record, fragment, due)
    return Seen(record, None, due)
