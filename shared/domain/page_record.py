"""Where a page is: the compact records behind `loc:<bucket>` and `id:<bucket>`.

One record per URL is most of what a large site costs in memory, so they are packed: 22 bytes, 30
with an owner, 38 in a translation group. Two locs would be taken for one if their 64-bit digests
met: 1 in 15,000 for 50,000,000 URLs.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import NamedTuple

from shared.events.event_fields import MAX_AHEAD_MS

BUCKETS = 1 << 16
"""So that a bucket stays a listpack (512 fields) up to 31,000,000 URLs of a site, or 65,000,000
where `hash-max-listpack-entries` is 1024. Twice as many buckets cost each of 1,000,000 URLs four
bytes more (measured)."""

TOMBSTONE_MS = 7 * 24 * 3600 * 1000
"""How long a deleted page is remembered; longer than any sender's retries (RELIABILITY F13)."""

MAX_SECTIONS = 4_094
"""Of a site, ever: their numbers have 12 bits, and all of them set means nowhere."""

PLACE_BYTES = 6
"""How many bytes of a stored page are its place; what follows is Located.tail."""
NOWHERE = b"\xff" * PLACE_BYTES
"""The place of a page that is not listed."""

_REST = struct.Struct(">Q5s")
_PLACE = struct.Struct(">IH")
_SHARD_BITS = 20
_OWNER_AT, _GROUP_AT = 22, 30
_NOBODY = bytes(8)


class Place(NamedTuple):
    """The block that lists a page: number of the section, shard and block."""

    section: int
    shard: int
    block: int

    def pack(self) -> bytes:
        """Six bytes: section (12 bit), shard (20 bit), block."""
        return _PLACE.pack(self.section << _SHARD_BITS | self.shard, self.block)

    @classmethod
    def unpack(cls, stored: bytes) -> Place:
        """The place that a record begins with."""
        both, block = _PLACE.unpack_from(stored)
        return cls(both >> _SHARD_BITS, both & (1 << _SHARD_BITS) - 1, block)


class PageRecord(NamedTuple):
    """What is known of one loc.

    `place` is None for a page that was never listed; a deleted page keeps its place, so that it
    returns there. `length` is the size of its fragment, 0 for a tombstone. `stamp` orders events
    (see `stamp`), `digest` tells equal fragments, `owner` is the id that claims the loc, or the one
    that left it, `group` the translation group of a listed page (translation_groups.digest_of);
    empty: none.
    """

    place: Place | None
    length: int
    stamp: int
    digest: bytes
    owner: bytes
    group: bytes = b""

    @property
    def live(self) -> bool:
        """Whether the page is listed."""
        return self.length > 0

    @staticmethod
    def was_live(stored: bytes) -> bool:
        """Whether the stored record `stored` (empty: none) is that of a listed page."""
        return stored[6:9] > b"\0\0\0"

    @staticmethod
    def lists(stored: bytes, digest: bytes, section: int | None) -> bool:
        """Whether `stored` (empty: none) is a listed page with this content in this section."""
        live = stored[17:22] == digest and stored[6:9] > b"\0\0\0"
        return live and Place.unpack(stored).section == section

    def tail(self) -> bytes:
        """The record without its place, which only the store can assign."""
        owner = self.owner or (_NOBODY if self.group else b"")
        rest = _REST.pack(self.stamp, self.digest)
        return self.length.to_bytes(3, "big") + rest + owner + self.group

    def pack(self) -> bytes:
        """The record as it is stored."""
        return (NOWHERE if self.place is None else self.place.pack()) + self.tail()

    @classmethod
    def unpack(cls, stored: bytes) -> PageRecord:
        """The record of what `pack` gave."""
        stamp_, digest = _REST.unpack_from(stored, 9)
        place = None
        if stored[:6] != NOWHERE:
            place = Place.unpack(stored)
        owner = stored[_OWNER_AT:_GROUP_AT]
        return cls(
            place, int.from_bytes(stored[6:9], "big"), stamp_, digest,
            b"" if owner == _NOBODY else owner, stored[_GROUP_AT:],
        )  # fmt: skip


class Claim(NamedTuple):
    """Where the page with one id of the CMS lives: `loc`, empty once it was deleted."""

    stamp: int
    loc: str

    def pack(self) -> bytes:
        """The claim as it is stored."""
        return self.stamp.to_bytes(8, "big") + self.loc.encode()

    @classmethod
    def unpack(cls, stored: bytes) -> Claim:
        """The claim of what `pack` gave."""
        return cls(int.from_bytes(stored[:8], "big"), stored[8:].decode())


def digest_of(loc: str) -> bytes:
    """The eight bytes that stand for `loc`."""
    return blake2b(loc.encode(), digest_size=8).digest()


def owner_of(source: str, kind: str, ident: str, locale: str) -> bytes:
    """The eight bytes that stand for one page of one sender, whatever its URL (WEBHOOKS 5.2)."""
    # With the lengths no text of a sender can be taken for a part of another one's.
    joined = f"{len(kind)} {len(locale)} {source} {kind}{locale}{ident}".encode()
    return blake2b(joined, digest_size=8, person=b"owner").digest()


def bucket_of(digest: bytes) -> int:
    """Which bucket holds the record of `digest`; its field is `field_of`."""
    return int.from_bytes(digest[:2], "big")


def field_of(digest: bytes) -> bytes:
    """The field of `digest` in its bucket: with the bucket it gives all 64 bits."""
    return digest[2:]


def stamp(version: int | None, arrived_ms: int, sequence: int) -> int:
    """The 64 bits by which events about one page are ordered: milliseconds, then 16 bits of tie.

    Without a version the time of arrival decides, and its sequence number within the millisecond.
    Among equal versions the later arrival wins (WEBHOOKS 5.3: senders' clocks tick in seconds):
    the tie is how long after its version an event arrived, up to 65 s.

    A version beyond MAX_AHEAD_MS is none: it would hold its page against every later event.
    """
    if version is None or version > arrived_ms + MAX_AHEAD_MS:
        return arrived_ms << 16 | min(sequence, 0xFFFF)
    return version << 16 | min(max(arrived_ms - version, 0), 0xFFFF)


def is_older(stamp: int, stored: int, by_ms: int) -> bool:
    """Whether an event of this stamp is older than what is `stored` says, as of `by_ms`.

    No event that has arrived by then (ms since 1970) leaves a stamp beyond MAX_AHEAD_MS. One that
    is there is of before such versions were refused, and says nothing about what is newer.
    """
    return stamp < stored <= (by_ms + MAX_AHEAD_MS) << 16 | 0xFFFF
