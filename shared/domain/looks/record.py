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
_ROUND_SHIFT, _ROUNDS = 4, 16


class LookRecord(NamedTuple):
    """Last look at one page: its time (s since 1970), status and grade; `good_once` if some look
    found the page good. `print` is the fingerprint seen last, `before` the one before that changed,
    at `changed_s`; empty and 0: none was seen, or none changed. `fresh` if no event came with that
    change so far. `round`: number of the round in which that was, modulo _ROUNDS.
    """

    at_s: int
    status: int
    grade: Grade
    good_once: bool = False
    print: bytes = b""
    before: bytes = b""
    changed_s: int = 0
    fresh: bool = False
    round: int = 0

    def is_of(self, number: int, began_ms: int) -> bool:
        """True if the look was in the round of this number, which began then (since 1970).

        The time alone does not say it, in whole seconds: a round may begin within that of a look.
        """
        return self.round == number % _ROUNDS and self.at_s >= began_ms // 1000

    def pack(self) -> bytes:
        """The stored form: 7 bytes, 27 with fingerprints."""
        flags = int(self.grade) | (_GOOD_ONCE if self.good_once else 0)
        flags |= (_FRESH if self.fresh else 0) | self.round << _ROUND_SHIFT
        head = _LOOK.pack(min(self.at_s, 0xFFFFFFFF), self.status, flags)
        return head + _PROOF.pack(self.print, self.before, self.changed_s) if self.print else head

    @classmethod
    def unpack(cls, stored: bytes) -> LookRecord:
        """The record that `pack` wrote."""
        at_s, status, flags = _LOOK.unpack_from(stored)
        head = at_s, status, Grade(flags & _GRADE_BITS), bool(flags & _GOOD_ONCE)
        number = flags >> _ROUND_SHIFT
        if len(stored) < _LOOK.size + _PROOF.size:
            return cls(*head, round=number)
        seen, before, changed_s = _PROOF.unpack_from(stored, _LOOK.size)
        fresh = bool(flags & _FRESH)
        return cls(*head, seen, before if changed_s else b"", changed_s, fresh, number)


def after(
    record: LookRecord | None, at_s: int, status: int, grade: Grade, seen: bytes, told_s: int = 0,
    number: int = 0,
) -> LookRecord:  # fmt: skip
    """Return the record after a look at `at_s` that found this, with the fingerprint `seen`
    (empty: none), in the round of this `number`. The last event of the page came at `told_s` (s
    since 1970).
    """
    good = grade is Grade.GOOD or (record is not None and record.good_once)
    found = LookRecord(at_s, status, grade, good, round=number % _ROUNDS)
    if record is None or (seen and not record.print):
        return found._replace(print=seen)
    if not seen or record.print == seen:
        return found._replace(
            print=record.print, before=record.before, changed_s=record.changed_s,
            fresh=record.fresh,
        )  # fmt: skip
    fresh = told_s < record.at_s
    return found._replace(print=seen, before=record.print, changed_s=at_s, fresh=fresh)


def bucket_of(digest: bytes) -> int:
    """The number of the bucket that holds the record of the page `digest`."""
    return int.from_bytes(digest[:2], "big") >> 4


def field_of(digest: bytes) -> bytes:
    """The field of `digest` in its bucket: with the bucket number it gives all 64 bits."""
    return digest[1:]
