"""Walk a snapshot in the RDB format of Redis and Valkey key by key, without loading it into a
server.

Only lengths are interpreted; a value is copied unchanged. Followed by RDB's version and checksum it
is the payload of RESTORE, so any server from 7.0 on accepts it, from whichever server it came.

No kept library does this: rdbtools 0.1.15, its last release, of 2020, refuses every snapshot of
Redis 7.0 and later, and its maintainers call it abandoned; python-lzf needs a C compiler, for the
twenty lines of `unpack`. DUMP of all keys at one instant needs MULTI, which stopped the server for
1.06 s at 194 MB (measured), and Redis 7.0 refuses the RESTORE of what Valkey 9.1 dumps.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import NamedTuple

from anycrc import Model

from deploy.backups.packed import HASH, HASH_LISTPACK, Cursor, damaged
from shared.errors import StoreError

# The parts of a value: s string, l length, 8 eight bytes, d a number as text.
_ONE = dict.fromkeys((0, 9, 10, 11, 12, 13, HASH_LISTPACK, 17, 20), "s")
_MANY = {1: "s", 2: "s", 3: "sd", HASH: "ss", 5: "s8", 14: "s", 18: "ls"}
_VALKEY_ONLY = {22: "ss8"}  # hashes whose fields have a TTL; of Redis another form
_STREAM_1, _STREAM_2, _STREAM_3 = 15, 19, 21
_VERSION, _NEWEST = 10, _STREAM_2  # the newest form that Redis 7.0 reads

_AUX, _RESIZE, _SELECT, _END = 250, 251, 254, 255
_EXPIRES_MS, _EXPIRES_S, _IDLE, _FREQ = 252, 253, 248, 249
_FUNCTION, _SLOT = 245, 244
_MODULE, _MODULE_AUX = 7, 247
_RELEASED = 4 * 1024 * 1024

_crc = Model("CRC64-REDIS")


class Key(NamedTuple):
    """One key of a snapshot.

    `expires_ms` is a time in ms since 1970, 0: never. `value` is the type and the value in RDB
    version 10. Of a stream, `entries` is its length and `pending` the number of entries that its
    groups were given and did not acknowledge.
    """

    name: bytes
    expires_ms: int
    value: bytes
    entries: int = 0
    pending: int = 0


def payload(value: bytes) -> bytes:
    """Return the payload of RESTORE for `value` of a Key."""
    version = _VERSION.to_bytes(2, "little")
    crc: int = _crc.calc(version, _crc.calc(value))
    return b"".join((value, version, crc.to_bytes(8, "little")))


class Snapshot:
    """A snapshot in a file. Raises StoreError if it is damaged, or holds an unknown form."""

    def __init__(self, fileno: int) -> None:
        try:
            self._data = mmap.mmap(fileno, 0, access=mmap.ACCESS_READ)
        except ValueError as error:  # an empty file cannot be mapped
            raise damaged() from error
        self._cursor = Cursor(self._data)
        magic = self._data[:9]
        self._valkey = magic.startswith(b"VALKEY")
        if not self._valkey and not magic.startswith(b"REDIS"):
            raise damaged()
        self.aux: dict[bytes, bytes] = {}
        self._check()

    def keys(self, database: int, prefixes: tuple[bytes, ...]) -> Iterator[Key]:
        """Yield the keys of `database` that begin with one of `prefixes`. Raises StoreError."""
        try:
            yield from self._keys(database, prefixes)
        except (IndexError, KeyError) as error:
            raise damaged() from error

    def _keys(self, database: int, prefixes: tuple[bytes, ...]) -> Iterator[Key]:
        self._cursor.at, current, expires, released = 9, 0, 0, 0
        while (code := self._cursor.byte()) != _END:
            if code == _EXPIRES_MS:
                expires = int.from_bytes(self._cursor.take(8), "little")
            elif code == _EXPIRES_S:
                expires = int.from_bytes(self._cursor.take(4), "little") * 1000
            elif code == _SELECT:
                current = self._cursor.length()
            elif code == _AUX:
                name = self._cursor.text()
                self.aux[name] = self._cursor.text()
            elif code >= _SLOT:
                self._skip_mark(code)
            else:
                name = self._cursor.text()
                wanted = current == database and name.startswith(prefixes)
                key = self._value(code, name, expires, wanted=wanted)
                if wanted:
                    yield key
                expires = 0
            if self._cursor.at - released > _RELEASED:
                # release the memory of what was read
                upto = self._cursor.at - self._cursor.at % mmap.PAGESIZE
                self._data.madvise(mmap.MADV_DONTNEED, 0, upto)
                released = upto

    def _value(self, kind: int, name: bytes, expires: int, *, wanted: bool) -> Key:
        start, cuts, entries, pending = self._cursor.at, list[int](), 0, 0
        if kind in _ONE:
            self._cursor.skip(_ONE[kind])
        elif many := _MANY.get(kind) or (self._valkey and _VALKEY_ONLY.get(kind)):
            for _ in range(self._cursor.length()):
                self._cursor.skip(many)
        elif kind in (_STREAM_1, _STREAM_2, _STREAM_3):
            entries, pending, cuts = self._stream(kind)
        elif kind == _MODULE:
            self._cursor.length()
            self._skip_module()
        else:
            raise StoreError(f"the snapshot holds {_shown(name)} in a form ({kind}) unknown here")
        if not wanted:
            return Key(name, expires, b"")
        if kind == _STREAM_3:
            # The form of Redis 7.0 lacks the consumers' last active time, which no command here
            # reads.
            kind, ends = _STREAM_2, [at + 8 for at in cuts]
            pieces = zip([start, *ends], [*cuts, self._cursor.at], strict=True)
            body = [self._data[begin:end] for begin, end in pieces]
        elif kind > _NEWEST:
            raise StoreError(
                f"{_shown(name)} is kept in a form ({kind}) that Redis 7.0 cannot read"
            )
        else:
            body = [self._data[start : self._cursor.at]]
        return Key(name, expires, b"".join((bytes([kind]), *body)), entries, pending)

    def _stream(self, kind: int) -> tuple[int, int, list[int]]:
        """Skip a stream; return its length, its pending count, and the offsets of the `active`
        times.
        """
        for _ in range(self._cursor.length()):
            self._cursor.skip("ss")
        entries = self._cursor.length()
        self._cursor.skip("ll" if kind == _STREAM_1 else "lllllll")
        pending, cuts = 0, []
        for _ in range(self._cursor.length()):
            self._cursor.skip("sll" if kind == _STREAM_1 else "slll")
            given = self._cursor.length()
            pending += given
            for _ in range(given):
                self._cursor.at += 24  # event id, time it was given
                self._cursor.length()
            for _ in range(self._cursor.length()):
                self._cursor.skip("s8")
                if kind == _STREAM_3:
                    cuts.append(self._cursor.at)
                    self._cursor.at += 8
                unsettled = self._cursor.length()
                self._cursor.at += 16 * unsettled
        return entries, pending, cuts

    def _skip_mark(self, code: int) -> None:
        """Skip an opcode that is no key."""
        if code == _RESIZE:
            self._cursor.skip("ll")
        elif code == _SLOT:
            self._cursor.skip("lll")
        elif code == _FUNCTION:
            self._cursor.skip("s")
        elif code == _IDLE:
            self._cursor.skip("l")
        elif code == _FREQ:
            self._cursor.at += 1
        elif code == _MODULE_AUX:
            self._cursor.skip("lll")
            self._skip_module()
        else:
            raise StoreError(f"the snapshot holds a mark ({code}) unknown here")

    def _skip_module(self) -> None:
        parts = {1: "l", 2: "l", 4: "8", 5: "s"}
        while code := self._cursor.length():
            if code == 3:
                self._cursor.at += 4
            else:
                self._cursor.skip(parts[code])

    def _check(self) -> None:
        """Compare the checksum at the end with all before it; 0: the server writes none."""
        size = len(self._data) - 8
        stored = int.from_bytes(self._data[size:], "little")
        crc = 0
        for start in range(0, size, _RELEASED):
            crc = _crc.calc(self._data[start : min(size, start + _RELEASED)], crc)
            self._data.madvise(mmap.MADV_DONTNEED)
        if size < 9 or (stored and stored != crc):
            raise damaged()


def _shown(name: bytes) -> str:
    return name.decode(errors="backslashreplace")
