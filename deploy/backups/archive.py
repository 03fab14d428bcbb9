"""Backup files: the state of sites at one instant, with a head that describes it.

The first line is JSON, the head; then come the keys, MessagePack `[name, expires (ms since 1970, 0:
never), type and value]`; then a BLAKE2b digest of all before it. It holds no secrets, which are in
sitemapd.toml.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgpack
import redis

from deploy.backups.packed import hash_of
from deploy.backups.rdb import Key, Snapshot
from deploy.backups.sync import receive
from shared.durable_files import sync_directory
from shared.errors import BackupError
from shared.sitemap import w3c_dates
from shared.store.keys import keys_of

FORMAT, VERSION = "sitemapd backup", 1

_DIGEST = 32
_RECORD, _BIN = b"\x93", b"\xc6"
"""MessagePack: an array of three, and bytes with a length of four bytes."""
_HEAD_MOST = 16 * 1024 * 1024
_CHUNK = 1024 * 1024

Seen = Callable[[int], None]


class SiteHead(NamedTuple):
    """Contents of a backup for one site.

    `urls` counts listed pages, `shards` all shards ever created; `waiting` events are accepted and
    not applied, `pending` of them were delivered to a worker; `run` and `publishes` are the run
    marker.
    """

    keys: int = 0
    urls: int = 0
    shards: int = 0
    waiting: int = 0
    pending: int = 0
    run: str = ""
    publishes: int = 0


class ArchiveHead(NamedTuple):
    """Head of a backup: time `taken`, `sitemapd` version, `server`, sites."""

    taken: str
    sitemapd: str
    server: str
    sites: dict[str, SiteHead]

    def pack(self) -> bytes:
        """Return the first line of a file."""
        sites = {name: site._asdict() for name, site in self.sites.items()}
        head = {"format": FORMAT, "version": VERSION} | self._asdict() | {"sites": sites}
        return json.dumps(head).encode() + b"\n"

    @classmethod
    def unpack(cls, line: bytes, path: Path) -> ArchiveHead:
        """Return the head in `line`. Raises BackupError if it is none, or of an unknown version."""
        try:
            head: Any = json.loads(line)
        except ValueError:
            head = None
        if not isinstance(head, dict) or head.pop("format", None) != FORMAT:
            raise BackupError(f"{path} is no backup of sitemapd, or its beginning is lost")
        if (found := head.pop("version", None)) != VERSION:
            raise BackupError(
                f"{path} has format {found}, written by sitemapd {head.get('sitemapd')}; this is "
                f"{version('sitemapd')}, which reads format {VERSION}: restore it with the version "
                "that wrote it"
            )
        try:
            sites = {name: SiteHead(**site) for name, site in head.pop("sites").items()}
            return cls(sites=sites, **head)
        except (TypeError, LookupError, AttributeError):
            raise _damaged(path) from None


def write(
    client: redis.Redis, sites: Sequence[str], path: Path, seen: Seen = lambda _: None
) -> ArchiveHead:
    """Write the server's present state of `sites` to `path`, completely or not at all.

    `seen` is called with the number of bytes received, then of bytes written. Raises BackupError,
    StoreError.
    """
    with _refusals(path), _part(path) as file:
        with tempfile.TemporaryFile(dir=path.parent) as spool:
            snapshot, origin = receive(client, spool, seen)
            head = _survey(snapshot, origin.database, sites, origin.server)
            digest = blake2b(digest_size=_DIGEST)
            pack = msgpack.Packer(use_bin_type=True).pack

            def put(data: bytes) -> None:
                digest.update(data)
                file.write(data)
                seen(len(data))

            put(head.pack())
            for _, key in _chosen(snapshot, origin.database, head.sites):
                # `value` is written as it is: packing it with the rest would copy it twice.
                put(_RECORD + pack(key.name) + pack(key.expires_ms))
                put(_BIN + len(key.value).to_bytes(4, "big"))
                put(key.value)
            file.write(digest.digest())
        file.flush()
        os.fsync(file.fileno())
    return head


def _survey(snapshot: Snapshot, database: int, sites: Sequence[str], server: str) -> ArchiveHead:
    found = dict.fromkeys(sites, SiteHead())
    for name, key in _chosen(snapshot, database, sites):
        site, keys = found[name], keys_of(name)
        site = site._replace(keys=site.keys + 1)
        if key.name == keys.inbox.encode():
            site = site._replace(waiting=key.entries, pending=key.pending)
        elif key.name == keys.counters.encode():
            counters = hash_of(key.value)
            site = site._replace(
                urls=int(counters.get(b"urls", 0)),
                shards=int(counters.get(b"shards", 0)),
                run=counters.get(b"run", b"").decode(),
                publishes=int(counters.get(b"publishes", 0)),
            )
        found[name] = site
    held = {name: site for name, site in found.items() if site.keys}
    if not held:
        raise BackupError(f"the server holds nothing of {', '.join(sites)}: nothing to back up")
    taken = w3c_dates.from_epoch_s(int(snapshot.aux[b"ctime"]))
    return ArchiveHead(taken, version("sitemapd"), server, held)


def _chosen(
    snapshot: Snapshot, database: int, sites: Sequence[str] | dict[str, SiteHead]
) -> Iterator[tuple[str, Key]]:
    """Yield the keys of `sites`, without their leases and awake marks, which belong to running
    workers.
    """
    names = {keys_of(site).prefix.encode(): site for site in sites}
    fleeting = {
        key.encode() for site in sites for key in (keys_of(site).lease, keys_of(site).awake)
    }
    for key in snapshot.keys(database, tuple(names)):
        if key.name not in fleeting:
            yield names[key.name[: key.name.index(b":") + 1]], key


class Backup:
    """A complete backup in a file. Raises BackupError if it is damaged or no backup."""

    def __init__(self, path: Path, seen: Seen = lambda _: None) -> None:
        """Read the whole file once; `seen` is called with the number of bytes."""
        with _refusals(path), contextlib.ExitStack() as opened:
            self._file: BinaryIO = opened.enter_context(path.open("rb"))
            line = self._file.readline(_HEAD_MOST)
            self.head = ArchiveHead.unpack(line, path)
            self._begin, digest = len(line), blake2b(line, digest_size=_DIGEST)
            left = os.fstat(self._file.fileno()).st_size - len(line) - _DIGEST
            while left > 0 and (chunk := self._file.read(min(left, _CHUNK))):
                digest.update(chunk)
                left -= len(chunk)
                seen(len(chunk))
            if left or self._file.read(_DIGEST) != digest.digest():
                raise _damaged(path)
            opened.pop_all()

    def keys(self, sites: Sequence[str]) -> Iterator[tuple[str, Key]]:
        """Yield every key of `sites`, with its site."""
        names = {keys_of(site).prefix.encode(): site for site in sites}
        self._file.seek(self._begin)
        unpacker = msgpack.Unpacker(self._file, max_buffer_size=0, use_list=False)
        for _ in range(sum(site.keys for site in self.head.sites.values())):
            name, expires, value = unpacker.unpack()
            if site := names.get(name[: name.index(b":") + 1]):
                yield site, Key(name, expires, value)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@contextlib.contextmanager
def _part(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that replaces `path` at the end; the file of a killed run is reused. Raises
    BackupError if another backup to `path` is running.
    """
    part = path.with_name(f".{path.name}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(part, flags, 0o600), "wb") as file:
        if not _ours(part, file):
            raise BackupError(f"another backup to {path} is under way")
        try:
            file.truncate()
            os.fchmod(file.fileno(), 0o600)
            yield file
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    sync_directory(path.parent)


def _ours(part: Path, file: BinaryIO) -> bool:
    """Lock `file`; return False if another process has locked it, or has just renamed it to the
    backup.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.stat(part), os.fstat(file.fileno()))
    except (BlockingIOError, FileNotFoundError):
        return False


@contextlib.contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BackupError(f"{path}: {error.strerror}") from error


def _damaged(path: Path) -> BackupError:
    return BackupError(f"{path} is damaged or cut off: its digest is not that of its content")
