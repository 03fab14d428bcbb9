"""Batch of a publish pass: taken under the lease of a site, and committed after its files."""

from __future__ import annotations

import json
import secrets
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgpack
import redis
from isal import isal_zlib

from shared.errors import ShardError
from shared.sitemap import fragments
from shared.sitemap.blocks import Block
from shared.sitemap.fragments import LOC_END
from shared.sitemap.shards import STATE, Shard, ShardState
from shared.store.client import Argument, PipelinedScript, Scripts, answering
from shared.store.counting.counters import BOUNDS_MS
from shared.store.keys import LEASE_MS, RECENT, Keys

PASS_SHARDS = 256
"""Maximum number of shards of one publish pass. Each pass dates the index a second later than the
one before, so this is what a site can publish in a second, whatever the disk could.
"""
PASS_BYTES = 64 * 1024 * 1024
"""Maximum size of one publish pass in bytes, so that it ends well within its lease."""

MOST_LINES, MOST_BYTES = 5_000, 2 * 1024 * 1024
"""Maximum number and size of the changed lines of one file that are kept (revisions.py)."""

DAMAGED = (ValueError, TypeError, IndexError, OverflowError, struct.error)
"""Errors raised when a record is read that was not written in that form (RELIABILITY T35)."""

Change = tuple[bytes | None, bytes | None]
"""A fragment before and after a publish; None where it is not listed."""

_UNKNOWN = ShardState(0, 0, 0, 0)
_BOUNDS = " ".join(map(str, BOUNDS_MS))


class PublishedFile(NamedTuple):
    """One shard file as it was last written.

    `generation` is the generation of the shard when it was read, `lastmod` the file's mtime in
    whole seconds since 1970 (PROTOCOL M7), `urls` its number of pages, `size` its bytes before
    compression. `peak` is the largest number of pages it listed since `peak_since` (s since 1970),
    for the shrink guard; older records lack both.
    """

    generation: int
    lastmod: int
    urls: int
    size: int
    peak: int = 0
    peak_since: int = 0

    def pack(self) -> str:
        """Return the stored form."""
        return " ".join(map(str, self))

    @classmethod
    def unpack(cls, stored: bytes) -> PublishedFile:
        """Return the file whose `pack` is `stored`."""
        return cls(*map(int, stored.split(b" ")))


class ShardWork(NamedTuple):
    """One shard as taken by a publisher.

    `patches` maps block number -> key -> new fragment (None: remove); `blocks` is the merged
    content; `file` is the file on disk, None if there is none. `moved` of its pages are listed by
    other files now, and an administrator has `confirmed` that it may shrink to that many (T32).
    `to_notify` are the pages whose change engines are to be notified of.
    """

    shard: Shard
    state: ShardState
    patches: Mapping[int, Mapping[bytes, bytes | None]]
    blocks: Mapping[int, Block]
    file: PublishedFile | None
    moved: int = 0
    confirmed: int | None = None
    to_notify: Sequence[str] = ()


class PublishedShard(NamedTuple):
    """One published shard: `blocks` that changed (None: gone), `file` (None: it has none).

    `page` is the index file that lists it, with this `line`. `lines` are the changed lines of the
    file (None: too many to keep), `changed` is their number. `taken` is the work it was made from.
    `held` for a shrink hold, which keeps the published file: the number of pages it would list, and
    the reference number (T32); the patches stay pending.
    """

    taken: ShardWork
    blocks: Mapping[int, Block | None]
    file: PublishedFile | None
    page: int
    line: bytes
    held: tuple[int, int] | None = None
    changed: int = 0
    lines: Sequence[Change] | None = ()


class PublishRun(NamedTuple):
    """Run marker: identity of the state, and its number of publishes (F22)."""

    ident: str
    publishes: int


class PublishBatch(NamedTuple):
    """Shards that a publisher has taken, the `lines` of the index files that list them by ordinal,
    and the run marker of the state.

    `damaged` maps shards whose records cannot be read to the error. `full` is True if other shards
    may be as dirty: the pass has as many shards or bytes as one may have.
    """

    run: PublishRun
    taken: list[ShardWork]
    lines: dict[int, dict[int, bytes]]
    damaged: dict[Shard, ShardError]
    full: bool = False


class PublishLease:
    """The lease of one site: the right to publish it, and what its holder takes and commits."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys, self._scripts = client, Keys(site), Scripts(client)

    def begin(
        self, token: str, per_index: int, shards: Sequence[Shard] = (), most: int = PASS_SHARDS,
        aside: Iterable[Shard] = (),
    ) -> PipelinedScript:  # fmt: skip
        """Return the script that takes the lease and the patches of `shards`, by default of the
        `most` longest dirty ones, to be pipelined after another script.

        An index file lists `per_index` shards. Shards that are set `aside` are taken only by name.
        A state without an identity gets a new one.
        """
        keys, names = self._keys, (part for shard in shards for part in shard) if shards else ()
        fresh = secrets.token_hex(8)
        args = (token, LEASE_MS, keys.prefix, fresh, most, PASS_BYTES, per_index, len(shards))
        used = [keys.lease, keys.dirty, keys.counters, keys.allowed]
        return PipelinedScript("publishing/begin_publish", used, (*args, *names, *map(str, aside)))

    def begun(self, begin: PipelinedScript) -> PublishBatch | str | None:
        """Return what `begin` took, once it was pipelined or else now; None if no shard is dirty,
        the token of the holder if the lease is taken.
        """
        reply = begin.reply if begin.done else self._scripts.run(begin)
        if isinstance(reply, bytes):
            return reply.decode()
        if not reply:
            return None
        ident, publishes, shards, pages, full = reply
        taken, damaged = [], {}
        for section, number, *records in shards:
            shard = Shard(section.decode(), int(number))
            try:
                taken.append(_work(shard, *records))
            except DAMAGED as error:
                damaged[shard] = damage(shard, error)
        lines = {page: index_lines(_pairs(found)) for page, found in _pairs(pages)}
        run = PublishRun(ident.decode(), int(publishes))
        return PublishBatch(run, taken, lines, damaged, bool(full))

    def commit(
        self, token: str, done: Iterable[PublishedShard], note: Mapping[str, object],
        files: tuple[int, int] = (0, 0), engines: Iterable[str] = (), took_ms: int = 0,
    ) -> int:  # fmt: skip
        """Record the published shards and release the lease.

        Return the number of publishes so far; 0 if the lease was lost: the shards are then dirty
        again. `note` goes into the event log, `files` are the numbers of files written and removed,
        `engines` are notified of the pages that changed, `took_ms` is how long ago the patches were
        taken (ms).
        """
        names = " ".join(engines)
        args: list[Argument] = [
            token, self._keys.prefix, time.time_ns() // 1_000_000, RECENT,
            json.dumps(note, separators=(",", ":")), took_ms, RECENT, names, _BOUNDS, *files,
        ]  # fmt: skip
        for each in done:
            taken, confirmed = each.taken, each.taken.confirmed
            to_notify = taken.to_notify if names else ()
            args += [
                *taken.shard, taken.state.generation, each.file.pack() if each.file else "",
                each.page, taken.state.ordinal, each.line,
                taken.moved, "" if confirmed is None else confirmed,
                f"{each.held[0]} {each.held[1]}" if each.held else "",
                each.changed, pack_lines(each.lines), len(to_notify), len(each.blocks), *to_notify,
            ]  # fmt: skip
            for number, block in each.blocks.items():
                args += [number, b"" if block is None else block.pack()]
        keys = self._keys
        used = [keys.lease, keys.dirty, keys.counters, keys.recent, keys.held, keys.allowed]
        used += [keys.revisions, keys.quarantine, keys.stats]
        return int(self._scripts("publishing/commit_publish", used, *args))

    def take(self, token: str) -> bool:
        """Take the lease and no patches; False if it is held."""
        with answering():
            return bool(self._client.set(self._keys.lease, token, nx=True, px=LEASE_MS))

    def holds(self, token: str) -> bool:
        """Return True if `token` still holds the lease."""
        with answering():
            holder: Any = self._client.get(self._keys.lease)
        return bool(holder == token.encode())

    def extend(self, token: str) -> bool:
        """Extend the lease by LEASE_MS; False if it was lost."""
        return bool(self._scripts("publishing/extend_lease", [self._keys.lease], token, LEASE_MS))

    def release(self, token: str, shards: Iterable[Shard] = ()) -> None:
        """Release the lease of `token`, the caller's or that of a dead publisher.

        If it was lost, `shards` are dirty again: their files may be older than the new holder's.
        """
        names = (part for shard in shards for part in shard)
        keys, now = [self._keys.lease, self._keys.dirty], time.time_ns() // 1_000_000
        self._scripts("publishing/release_lease", keys, token, self._keys.prefix, now, *names)


def _work(
    shard: Shard, state: bytes | None, patches: Sequence[bytes], blocks: Sequence[bytes] | None,
    file: bytes | None, moved: bytes | None, confirmed: bytes | None,
) -> ShardWork:  # fmt: skip
    """Return the work on one shard that begin_publish.lua read. Raises any of DAMAGED."""
    if blocks is None:
        raise ValueError("its blocks are no hash")
    to_notify = [patch[3:] for patch in patches[1::2] if patch[2:3].islower()]
    return ShardWork(
        shard, _UNKNOWN if state is None else ShardState(*STATE.unpack(state)),
        patches_of(patches[1::2]),
        {int(number): Block.unpack(block) for number, block in _pairs(blocks)},
        PublishedFile.unpack(file) if file else None,
        0 if moved is None else int(moved), None if confirmed is None else int(confirmed),
        list(dict.fromkeys(map(fragments.loc_of, to_notify))),
    )  # fmt: skip


def _pairs(flat: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    """Return the fields and values of a hash as Redis lists them."""
    return zip(flat[::2], flat[1::2], strict=True)


def fragment_of(patch: bytes) -> bytes | None:
    """Return the fragment that a stored patch lists; None if it removes a page."""
    return patch[3:] if patch[2:3] in {b"U", b"u"} else None


def patches_of(stored: Iterable[bytes]) -> dict[int, dict[bytes, bytes | None]]:
    """Return stored patches by block: fragments.key -> new fragment, None to remove.

    Raises ValueError if one is not a patch.
    """
    found: dict[int, dict[bytes, bytes | None]] = {}
    for patch in stored:
        block, op, payload = int.from_bytes(patch[:2], "big"), patch[2:3], patch[3:]
        if op in {b"U", b"u"}:
            key = payload[: payload.index(LOC_END) + len(LOC_END)]
            found.setdefault(block, {})[key] = payload
        elif op in {b"D", b"d"}:
            found.setdefault(block, {})[payload] = None
        else:
            raise ValueError(f"{op!r} is no operation of a patch")
    return found


def pack_lines(lines: Sequence[Change] | None) -> bytes:
    """Return the stored form of changed lines; empty if there are none, or too many to keep."""
    size = sum([len(before or b"") + len(after or b"") for before, after in lines or ()])
    if not lines or len(lines) > MOST_LINES or size > MOST_BYTES:
        return b""
    return isal_zlib.compress(msgpack.packb(lines), 1)


def damage(shard: Shard, error: Exception) -> ShardError:
    """Return the error for a shard with damaged records."""
    return ShardError(f"the records of {shard} in Redis are damaged: {error}")


def index_lines(stored: Iterable[tuple[bytes, bytes]]) -> dict[int, bytes]:
    """Return index lines by ordinal, without fields that no publish has written."""
    return {
        int(ordinal): line
        for ordinal, line in stored
        if ordinal.isdigit() and line.startswith(b"<sitemap>") and line.endswith(b"</sitemap>\n")
    }
