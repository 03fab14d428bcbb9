"""Records of pages and claims, packed for the Redis hashes `loc:<bucket>` and `id:<bucket>`.

One record per URL is most of the memory of a large site, so they are packed: 22 bytes, 30 with an
owner, 38 in a translation group. Two locs with the same 64-bit digest would be taken for one: a
chance of 1 in 15,000 for 50,000,000 URLs.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import NamedTuple

from shared.events.event import Event
from shared.events.event_fields import MAX_AHEAD_MS
from shared.sitemap import fragments

BUCKETS = 1 << 16
"""Buckets of a site: each stays a listpack (512 fields) up to 31,000,000 URLs, or 65,000,000 where
`hash-max-listpack-entries` is 1024. Twice as many cost each of 1,000,000 URLs four bytes more
(measured)."""

TOMBSTONE_MS = 7 * 24 * 3600 * 1000
"""Lifetime of a tombstone in ms; longer than any sender's retries (RELIABILITY F13)."""

MAX_SECTIONS = 4_094
"""Sections that a site can ever have: numbers have 12 bits, and all bits set means no place."""

PLACE_BYTES = 6
"""Bytes of a stored page record that are its place; PageRecord.tail follows."""
NOWHERE = b"\xff" * PLACE_BYTES
"""The place of a page that is not listed."""

UNLISTED = b"looks"
"""The digest of a tombstone that no event left: the page was found broken (domain.looks)."""

_REST = struct.Struct(">Q5s")
_RECORD = struct.Struct(">IHBHQ5s")  # the place, a length in three bytes, the rest
_PLACE = struct.Struct(">IH")
_SHARD_BITS = 20
_OWNER_AT, _GROUP_AT = 22, 30
_NOBODY = bytes(8)


class Arrival(NamedTuple):
    """Arrival of an event: its id in the inbox, as ms since 1970 and sequence number."""

    ms: int
    sequence: int

    @classmethod
    def of(cls, stream_id: str) -> Arrival:
        """The arrival of the stream id `ms-sequence`."""
        ms, _, sequence = stream_id.partition("-")
        return cls(int(ms), int(sequence))


class Place(NamedTuple):
    """The block that lists a page: numbers of the section, shard and block."""

    section: int
    shard: int
    block: int

    def pack(self) -> bytes:
        """Six bytes: section (12 bits), shard (20 bits), block (16 bits)."""
        return _PLACE.pack(self.section << _SHARD_BITS | self.shard, self.block)

    @classmethod
    def unpack(cls, stored: bytes) -> Place:
        """The place at the start of a stored record."""
        both, block = _PLACE.unpack_from(stored)
        return cls(both >> _SHARD_BITS, both & (1 << _SHARD_BITS) - 1, block)


class PageRecord(NamedTuple):
    """Page record or tombstone of one loc.

    `place` is None for a page that was never listed; a deleted page keeps its place, so that it
    returns there. `length` is the size of its fragment in bytes, 0 for a tombstone. `stamp` orders
    events (see `stamp`), `digest` identifies the fragment, `owner` the id that claims the loc, or
    the one that left it, `group` the translation group of a listed page
    (translation_groups.digest_of); empty: none.
    """

    place: Place | None
    length: int
    stamp: int
    digest: bytes
    owner: bytes
    group: bytes = b""

    @property
    def live(self) -> bool:
        """True if the page is listed."""
        return self.length > 0

    @property
    def was_left(self) -> bool:
        """True for a tombstone that an event left, which others may precede."""
        return not self.live and self.digest != UNLISTED

    @staticmethod
    def was_live(stored: bytes) -> bool:
        """True if `stored` (empty: none) is the record of a listed page."""
        return stored[6:9] > b"\0\0\0"

    @staticmethod
    def lists(stored: bytes, digest: bytes, section: int | None) -> bool:
        """True if `stored` (empty: none) is a listed page with this digest in this section."""
        live = stored[17:22] == digest and stored[6:9] > b"\0\0\0"
        return live and Place.unpack(stored).section == section

    @staticmethod
    def lists_as(stored: bytes, tail: bytes) -> bool:
        """True if `stored` is a listed page with this `tail`, whatever its stamp."""
        return stored[6:9] == tail[:3] != bytes(3) and stored[17:] == tail[11:]

    def tail(self) -> bytes:
        """The record without its place, which only the store can assign."""
        owner = self.owner or (_NOBODY if self.group else b"")
        rest = _REST.pack(self.stamp, self.digest)
        return self.length.to_bytes(3, "big") + rest + owner + self.group

    def pack(self) -> bytes:
        """The stored form of the record."""
        return (NOWHERE if self.place is None else self.place.pack()) + self.tail()

    @classmethod
    def unpack(cls, stored: bytes) -> PageRecord:
        """The record that `pack` wrote."""
        shard, block, high, low, stamp_, digest = _RECORD.unpack_from(stored)
        place = None
        if stored[:PLACE_BYTES] != NOWHERE:
            place = Place(shard >> _SHARD_BITS, shard & (1 << _SHARD_BITS) - 1, block)
        length = high << 16 | low
        if len(stored) == _OWNER_AT:
            return cls(place, length, stamp_, digest, b"")
        owner = stored[_OWNER_AT:_GROUP_AT]
        owner = b"" if owner == _NOBODY else owner
        return cls(place, length, stamp_, digest, owner, stored[_GROUP_AT:])


class Claim(NamedTuple):
    """The loc that one id of a sender stands for; `loc` is empty once the page was deleted."""

    stamp: int
    loc: str

    def pack(self) -> bytes:
        """The stored form of the claim."""
        return self.stamp.to_bytes(8, "big") + self.loc.encode()

    @classmethod
    def unpack(cls, stored: bytes) -> Claim:
        """The claim that `pack` wrote."""
        return cls(int.from_bytes(stored[:8], "big"), stored[8:].decode())


def listed_tail(fragment: bytes, stamp: int, owner: bytes) -> bytes:
    """PageRecord.tail of a page without a group that is listed as `fragment`."""
    rest = _REST.pack(stamp, fragments.digest(fragment))
    return len(fragment).to_bytes(3, "big") + rest + owner


def digest_of(loc: str) -> bytes:
    """The eight bytes that stand for `loc`."""
    return blake2b(loc.encode(), digest_size=8).digest()


def owner_of(source: str, kind: str, ident: str, locale: str, *, former: bool = False) -> bytes:
    """The eight bytes that stand for one page of one sender, whatever its URL (WEBHOOKS 5.2).

    `former` owners are those of a site that began in layout 2: its claims are stored under them.
    """
    if former:
        joined = f"{source}\0{kind}\0{ident}\0{locale}"
    else:
        # With the lengths no two different pages give the same text.
        joined = f"{len(kind)} {len(locale)} {source} {kind}{locale}{ident}"
    return blake2b(joined.encode(), digest_size=8, person=b"owner").digest()


def subjects(event: Event, *, former: bool = False) -> tuple[str | None, bytes]:
    """The loc and the owner (empty: none; `former` of owner_of) whose records are needed to decide
    `event`.
    """
    if event.id is None:
        return event.loc, b""
    return event.loc, owner_of(event.source, event.kind, event.id, event.locale, former=former)


def bucket_of(digest: bytes) -> int:
    """The number of the bucket that holds the record of `digest`; its field is `field_of`."""
    return int.from_bytes(digest[:2], "big")


def field_of(digest: bytes) -> bytes:
    """The field of `digest` in its bucket: with the bucket number it gives all 64 bits."""
    return digest[2:]


def stamp(version: int | None, arrived_ms: int, sequence: int) -> int:
    """The 64 bits that order the events of one page: ms since 1970, then 16 bits for ties.

    Without a version the time of arrival decides, then its sequence number in the millisecond.
    Among equal versions the later arrival wins (WEBHOOKS 5.3: senders' clocks tick in seconds):
    the tie is the time from the version to the arrival in ms, up to 65 s.

    A version beyond MAX_AHEAD_MS is ignored: it would block every later event of its page.
    """
    if version is None or version > arrived_ms + MAX_AHEAD_MS:
        return arrived_ms << 16 | min(sequence, 0xFFFF)
    return version << 16 | min(max(arrived_ms - version, 0), 0xFFFF)


def is_older(stamp: int, stored: int, by_ms: int) -> bool:
    """True if an event of this stamp is older than the stamp `stored`, as of `by_ms`.

    No event that arrived by then (ms since 1970) leaves a stamp beyond MAX_AHEAD_MS. A stored one
    dates from before such versions were refused, and makes no event older.
    """
    return stamp < stored <= (by_ms + MAX_AHEAD_MS) << 16 | 0xFFFF
