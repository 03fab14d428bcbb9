"""Lengths, strings and packed small hashes of the RDB format."""

from __future__ import annotations

import mmap

from shared.errors import StoreError

HASH, HASH_LISTPACK = 4, 16

_INTEGERS = {0: 1, 1: 2, 2: 4}
_LZF = 3
_NUMBERS = {0xF1: 2, 0xF2: 3, 0xF3: 4, 0xF4: 8}


class Cursor:
    """A position in RDB data. Raises IndexError behind its end, StoreError for unknown forms."""

    def __init__(self, data: bytes | mmap.mmap, at: int = 0) -> None:
        self.data, self.at = data, at

    def text(self) -> bytes:
        """Return the next string, unpacked."""
        first = self.data[self.at]
        if first >> 6 != 3:
            return self.take(self.length())
        self.at += 1
        if size := _INTEGERS.get(first & 63):
            return b"%d" % int.from_bytes(self.take(size), "little", signed=True)
        if first & 63 != _LZF:
            raise damaged()
        packed, size = self.length(), self.length()
        return unpack(self.take(packed), size)

    def skip(self, parts: str) -> None:
        """Skip the next values: for each letter of `parts`, s a string, l a length, 8 eight bytes,
        d a number as text.
        """
        for part in parts:
            if part == "s":
                self._skip_text()
            elif part == "l":
                self.length()
            elif part == "8":
                self.at += 8
            elif (size := self.byte()) < 253:  # above: not a number, infinities
                self.at += size

    def _skip_text(self) -> None:
        first = self.data[self.at]
        if first >> 6 != 3:
            size = self.length()
            self.at += size
            return
        self.at += 1
        if first & 63 == _LZF:
            packed = self.length()
            self.length()
            self.at += packed
        else:
            self.at += _INTEGERS[first & 63]

    def length(self) -> int:
        """Return the next length, or small number."""
        first = self.byte()
        if first < 0x40:
            return first
        if first < 0x80:
            return (first & 63) << 8 | self.byte()
        if first in (0x80, 0x81):
            return int.from_bytes(self.take(4 if first == 0x80 else 8), "big")
        raise damaged()

    def byte(self) -> int:
        """Return the next byte."""
        self.at += 1
        return self.data[self.at - 1]

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        self.at += size
        return self.data[self.at - size : self.at]


def hash_of(value: bytes) -> dict[bytes, bytes]:
    """Return the fields of a small hash, given its type and value in RDB form. Raises StoreError
    for other types.
    """
    cursor = Cursor(value, 1)
    if value[0] == HASH_LISTPACK:
        items = listpack(cursor.text())
    elif value[0] == HASH:
        items = [cursor.text() for _ in range(2 * cursor.length())]
    else:
        raise damaged()
    return dict(zip(items[::2], items[1::2], strict=True))


def listpack(data: bytes) -> list[bytes]:
    """Return the items of a listpack: after six bytes each entry, followed by its length for
    reading backwards.
    """
    found, at = [], 6
    while (first := data[at]) != 0xFF:
        start, number = at + 1, None
        if first < 0x80:  # a number of 7 bits
            number, size = first, 0
        elif first < 0xC0:
            size = first & 63
        elif first < 0xE0:  # a number of 13 bits
            number, size = ((first & 31) << 8 | data[start]) + 4096 & 8191, 1
            number -= 4096
        elif first < 0xF0:
            size, start = (first & 15) << 8 | data[start], start + 1
        elif first == 0xF0:
            size, start = int.from_bytes(data[start : start + 4], "little"), start + 4
        else:
            size = _NUMBERS[first]
            number = int.from_bytes(data[start : start + size], "little", signed=True)
        found.append(data[start : start + size] if number is None else b"%d" % number)
        taken = start + size - at
        at += taken + _backwards(taken)
    return found


def _backwards(size: int) -> int:
    """Return the number of bytes, of 7 bits each, in which a listpack writes `size`."""
    return max(1, -(-size.bit_length() // 7))


def unpack(packed: bytes, size: int) -> bytes:
    """Unpack `size` bytes from LZF. Raises StoreError if `packed` holds another number."""
    out, at = bytearray(), 0
    while at < len(packed):
        control = packed[at]
        at += 1
        if control < 32:
            out += packed[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            length += packed[at]
            at += 1
        back = len(out) - ((control & 31) << 8 | packed[at]) - 1
        at += 1
        for offset in range(back, back + length + 2):  # may overlap what it appends
            out.append(out[offset])
    if len(out) != size:
        raise damaged()
    return bytes(out)


def damaged() -> StoreError:
    """Return the error for a damaged snapshot."""
    return StoreError("the snapshot that Redis sent is damaged: try again")
