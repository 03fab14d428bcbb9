"""Batch of a publish pass: taken under the lease of a site, and committed after its files."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import redis

from shared.sitemap import fragments
from shared.sitemap.blocks import Block
from shared.sitemap.fragments import LOC_END
from shared.sitemap.shards import STATE, Shard, ShardState
from shared.store.client import Argument, PipelinedScript, Scripts, answering
from shared.store.counting.counters import BOUNDS_MS
from shared.store.keys import LEASE_MS, RECENT, keys_of
from shared.store.layouts.version import CURRENT
from shared.store.publishing.publish_work import (
    DAMAGED,
    Commit,
    PublishBatch,
    PublishedShard,
    PublishRun,
    ShardWork,
    damage,
    index_lines,
)
from shared.store.servers.replica_wait import commit_scripts

PASS_SHARDS = 256
"""Maximum number of shards of one publish pass. Each pass dates the index a second later than the
one before, so this is what a site can publish in a second, whatever the disk could.
"""
PASS_BYTES = 64 * 1024 * 1024
"""Maximum size of one publish pass in bytes, so that it ends well within its lease."""
MOST_KNOWN, MOST_NAMES, BULK = 8 * 1024 * 1024, 64, 1_000
"""Maximum bytes of the content that a process keeps (5 shards of 10,000 URLs), its files, and the
changed lines of one: an import fills file after file."""
_EACH, _UNKNOWN = 200, ShardState(0, 0, 0, 0)  # bytes of the objects around a block or line
_BOUNDS = " ".join(map(str, BOUNDS_MS))


class PublishedFile(NamedTuple):
    """One shard file as it was last written.

    `generation` is that of the shard when it was read, `lastmod` the file's mtime in whole seconds
    since 1970 (PROTOCOL M7), `urls` its number of pages, `size` its bytes before compression.
    `peak` is the largest number of pages it listed since `peak_since` (s since 1970), for the
    shrink guard; older records lack both.
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


class _Content(NamedTuple):
    """Blocks of one shard or lines of one index file, and their bytes."""

    blocks: dict[int, Block]
    lines: dict[int, bytes]
    size: int


class _Known:
    """Content that a publisher committed itself, to be read again only after the next commit of
    another. All publishers of a process keep MOST_KNOWN bytes together."""

    _all, _size, _lock = OrderedDict[tuple[int, str], _Content](), 0, threading.Lock()

    def __init__(self) -> None:
        self.token, self.publishes, self._names = "", 0, dict[str, None]()

    def content(self, token: str) -> dict[str, _Content]:
        """Return what `token` knows of the last MOST_NAMES files that it committed."""
        names = [*self._names][-MOST_NAMES:] if token == self.token else ()
        found = {name: self._all.get((id(self), name)) for name in names}
        return {name: content for name, content in found.items() if content}

    def keep(self, new: Mapping[str, _Content | None]) -> None:
        """Keep what was committed (None: not worth it), besides the content of other files."""
        with self._lock:
            for name, content in new.items():
                self._drop(name)
                if content is not None:
                    self._names[name], self._all[id(self), name] = None, content
                    _Known._size += content.size
            while self._size > MOST_KNOWN:
                _Known._size -= self._all.popitem(last=False)[1].size

    def forget(self) -> None:
        """Forget everything."""
        with self._lock:
            for name in [*self._names]:
                self._drop(name)

    def _drop(self, name: str) -> None:
        self._names.pop(name, None)
        if old := self._all.pop((id(self), name), None):
            _Known._size -= old.size


class PublishLease:
    """The lease of one site: the right to publish it, and what its holder takes and commits."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys, self._scripts = client, keys_of(site), Scripts(client)
        self._commits = commit_scripts(client)
        self._known, self._begun = _Known(), dict[int, dict[int, bytes]]()
        self._offered = dict[str, _Content]()

    def begin(
        self, token: str, per_index: int, shards: Sequence[Shard] = (), most: int = PASS_SHARDS,
        aside: Iterable[Shard] = (), *, bare: bool = False,
    ) -> PipelinedScript:  # fmt: skip
        """Return the script that takes the lease and the patches of `shards`, by default of the
        `most` longest dirty ones, to be pipelined after another script. Shards set `aside` come
        only by name, blocks without patches `bare` to a caller that has their text in a file.
        """
        keys, names = self._keys, (part for shard in shards for part in shard) if shards else ()
        # Named shards are compared with their files.
        known = self._offered = {} if shards else self._known.content(token)
        args: list[Argument] = [
            token, LEASE_MS, keys.prefix, secrets.token_hex(8), most, PASS_BYTES, per_index,
            self._known.publishes if known else "", len(known), CURRENT, len(shards),
            int(bare), *names,
        ]  # fmt: skip
        for name, content in known.items():
            args += name, len(content.blocks or content.lines)
        used = [keys.lease, keys.dirty, keys.counters, keys.allowed]
        return PipelinedScript("publishing/begin_publish", used, (*args, *map(str, aside)))

    def begun(self, begin: PipelinedScript) -> PublishBatch | str | None:
        """Return what `begin` took, once it was pipelined or else now; None if no shard is dirty,
        the token of the holder if the lease is taken.
        """
        reply = begin.reply if begin.done else self._scripts.run(begin)
        known, self._offered, self._begun = self._offered, {}, {}
        if isinstance(reply, bytes) or not reply:
            return reply.decode() if reply else None
        ident, publishes, shards, pages, full, same = reply
        if not same:
            self._known.forget()
        taken, damaged = [], {}
        for section, number, *records, some in shards:
            shard = Shard(section.decode(), int(number))
            blocks = known[f"{section.decode()}/{shard.number}"].blocks if some else {}
            try:
                taken.append(_work(shard, blocks, *records))
            except DAMAGED as error:
                damaged[shard] = damage(shard, error)
        lines = {
            page: {**known[f"{page}"].lines} if found is None else index_lines(_pairs(found))
            for page, found in _pairs(pages)
        }
        run = PublishRun(ident.decode(), int(publishes))
        self._begun, self._known.publishes = lines, run.publishes
        return PublishBatch(run, taken, lines, damaged, bool(full))

    def commit(
        self, token: str, done: Sequence[PublishedShard], note: Mapping[str, object],
        files: tuple[int, int] = (0, 0), engines: Iterable[str] = (), took_ms: int = 0,
        versions: tuple[str, str, str] = ("", "", ""), purge: tuple[str, str] = ("", ""),
    ) -> Commit:  # fmt: skip
        """Record the published shards and release the lease.

        If the lease was lost, the shards are dirty again. `note` goes into the event log, `files`
        are the numbers of files written and removed, `engines` are told what changed, `took_ms` is
        how long ago the patches were taken (ms). `versions`: the changed files, the target that has
        them, the others. `purge`: engines of files, and the URLs of the files.
        """
        names = " ".join(engines)
        args: list[Argument] = [
            token, self._keys.prefix, time.time_ns() // 1_000_000, RECENT,
            json.dumps(note, separators=(",", ":")), took_ms, RECENT, names, _BOUNDS, *files,
            *versions, *purge]  # fmt: skip
        for each in done:
            taken, confirmed = each.taken, each.taken.confirmed
            to_notify = taken.to_notify if names else ()
            args += [
                *taken.shard, taken.state.generation, each.file.pack() if each.file else "",
                each.page, taken.state.ordinal, each.line,
                taken.moved, "" if confirmed is None else confirmed,
                f"{each.held[0]} {each.held[1]}" if each.held else "",
                each.changed, each.lines, len(to_notify), len(each.blocks), *to_notify,
            ]  # fmt: skip
            for number, block in each.blocks.items():
                args += [number, b"" if block is None else block.pack()]
        keys = self._keys
        used = [keys.lease, keys.dirty, keys.counters, keys.recent, keys.held, keys.allowed,
                keys.revisions, keys.quarantine, keys.stats]  # fmt: skip
        script = PipelinedScript("publishing/commit_publish", used, tuple(args))
        reply, confirmed, history = self._commits.commit(script)
        return Commit(self._know(token, done, int(reply)), confirmed, history)

    def _know(self, token: str, done: Sequence[PublishedShard], publishes: int) -> int:
        """Keep what was committed as number `publishes`, unless others may have written since."""
        lines, known, new = self._begun, self._known, dict[str, _Content | None]()
        if not lines or publishes != known.publishes + 1:
            known.forget()
            return publishes
        known.token, known.publishes = token, publishes
        for each in done:
            found = {
                number: block._replace(kept=block.kept or each.raw.get(number, b""))
                for number, block in {**each.taken.blocks, **each.blocks}.items()
                if block is not None and each.changed <= BULK
            }
            size = sum(len(block.segment) + len(block.kept) + _EACH for block in found.values())
            new["{}/{}".format(*each.taken.shard)] = _Content(found, {}, size) if found else None
            if each.file:
                lines[each.page][each.taken.state.ordinal] = each.line
            else:
                lines[each.page].pop(each.taken.state.ordinal, None)
        for page, of in lines.items():
            new[f"{page}"] = _Content({}, of, 2 * _EACH * len(of))  # a line has about as many
        known.keep(new)
        return publishes

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
        keys, now = [self._keys.lease, self._keys.dirty], time.time_ns() // 1_000_000
        names = (part for shard in shards for part in shard)
        self._scripts("publishing/release_lease", keys, token, self._keys.prefix, now, *names)


def _work(
    shard: Shard, known: Mapping[int, Block], state: bytes | None, patches: Sequence[bytes],
    blocks: Sequence[bytes] | None, file: bytes | None, moved: bytes | None, confirmed: bytes | None
) -> ShardWork:  # fmt: skip
    """Return the work on a shard as read, with the `known` blocks. Raises any of DAMAGED."""
    if blocks is None:
        raise ValueError("its blocks are no hash")
    to_notify = [patch[3:] for patch in patches[1::2] if patch[2:3].islower()]
    return ShardWork(
        shard, _UNKNOWN if state is None else ShardState(*STATE.unpack(state)),
        patches_of(patches[1::2]),
        {**known, **{int(number): Block.unpack(block) for number, block in _pairs(blocks)}},
        PublishedFile.unpack(file) if file else None,
        0 if moved is None else int(moved), None if confirmed is None else int(confirmed),
        list(dict.fromkeys(map(fragments.loc_of, to_notify))),
    )  # fmt: skip


def _pairs(flat: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    """Return the fields and values of a hash as Redis lists them."""
    return zip(flat[::2], flat[1::2], strict=True)


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
