"""Records of looks, packed for Redis: the last look at a page, and the proof of its last change."""

from __future__ import annotations

import struct
from typing import NamedTuple

from shared.domain.looks.answers import Grade

BUCKETS = 4_096
"""Buckets of a site: each stays a listpack (512 fields) up to 2,000,000 pages."""

_LOOK = struct.Struct(">IHB")
_PROOF = struct.Struct(">8s8sI")
_GRADE_BITS, _GOOD_ONCE, _FRESH = 0b11, 0b100, 0b1000


class LookRecord(NamedTuple):
    """Last look at one page: its time (s since 1970), status and grade; `good_once` if some look
    found the page good. `print` is the fingerprint seen last, `before` the one before that changed,
    at `changed_s`; empty and 0: none was seen, or none changed. `fresh` if no event came with that
    change so far.
    """

    at_s: int
    status: int
    grade: Grade
    good_once: bool = False
    print: bytes = b""
    before: bytes = b""
    changed_s: int = 0
    fresh: bool = False

    def pack(self) -> bytes:
        """The stored form: 7 bytes, 27 with fingerprints."""
        flags = int(self.grade) | (_GOOD_ONCE if self.good_once else 0)
        flags |= _FRESH if self.fresh else 0
        head = _LOOK.pack(min(self.at_s, 0xFFFFFFFF), self.status, flags)
        return head + _PROOF.pack(self.print, self.before, self.changed_s) if self.print else head

    @classmethod
    def unpack(cls, stored: bytes) -> LookRecord:
        """The record that `pack` wrote."""
        at_s, status, flags = _LOOK.unpack_from(stored)
        head = at_s, status, Grade(flags & _GRADE_BITS), bool(flags & _GOOD_ONCE)
        if len(stored) < _LOOK.size + _PROOF.size:
            return cls(*head)
        seen, before, changed_s = _PROOF.unpack_from(stored, _LOOK.size)
        fresh = bool(flags & _FRESH)
        return cls(*head, seen, before if changed_s else b"", changed_s, fresh)


def after(
    record: LookRecord | None, at_s: int, status: int, grade: Grade, seen: bytes, told_s: int = 0
) -> LookRecord:
    """Return the record after a look at `at_s` that found this, with the fingerprint `seen`
    (empty: none). The last event of the page came at `told_s` (s since 1970).
    """
    good = grade is Grade.GOOD or (record is not None and record.good_once)
    if not seen:
        kept = record[4:] if record else ()
        return LookRecord(at_s, status, grade, good, *kept)
    if record is None or not record.print:
        return LookRecord(at_s, status, grade, good, seen)
    if record.print == seen:
        return LookRecord(at_s, status, grade, good, *record[4:])
    return LookRecord(
        at_s, status, grade, good, seen, record.print, at_s, fresh=told_s < record.at_s
    )


def bucket_of(digest: bytes) -> int:
    """The number of the bucket that holds the record of the page `digest`."""
    return int.from_bytes(digest[:2], "big") >> 4


def field_of(digest: bytes) -> bytes:
    """The field of `digest` in its bucket: with the bucket number it gives all 64 bits."""
    return digest[1:]
