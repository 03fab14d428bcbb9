"""What is known of pages: read it to decide, and apply what was decided."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgpack
import redis

from shared import fragments
from shared.blocks import Block
from shared.errors import ConfigError, Fault
from shared.events import Event
from shared.locator import PLACE_BYTES, TOMBSTONE_MS, Claim, Located, digest_of
from shared.patch import Known, Op, net, subjects
from shared.shards import Limits, Shard
from shared.store.contract import GROUP, RECENT, Keys, field
from shared.store.redis import Errand, Scripts, answering

MAX_SECTIONS = 255
_NOT_LISTED = bytes(3)


class Pages:
    """The locators, claims and pending patches of one site."""

    def __init__(self, client: redis.Redis, site: str, limits: Mapping[str, Limits]) -> None:
        self._client = client
        self._keys = Keys(site)
        self._scripts = Scripts(client)
        self._limits = limits
        self._numbers: dict[str, int] = {}

    def sections(self, named: Iterable[str] = ()) -> dict[str, int]:
        """The number of each configured section, given at first use and never changed.

        `named` are sections that another configuration, newer or older, has besides.
        """
        wanted = {*self._limits, *named}
        if not wanted <= self._numbers.keys():
            with answering():
                known: Any = self._client.hgetall(self._keys.sections)
                self._numbers = {name.decode(): int(number) for name, number in known.items()}
                for name in sorted(wanted - self._numbers.keys()):
                    self._number(name)
        return self._numbers

    def _number(self, name: str) -> None:
        number = int(self._client.hincrby(self._keys.counters, "sections", 1))
        if number > MAX_SECTIONS:
            raise ConfigError(Fault("sections", "limit", f"at most {MAX_SECTIONS} ever per site"))
        self._client.hsetnx(self._keys.sections, name, str(number))
        stored: Any = self._client.hget(self._keys.sections, name)
        self._numbers[name] = int(stored)

    def know(self, events: Iterable[Event]) -> tuple[Known, dict[str, bytes], dict[bytes, bytes]]:
        """What must be known to decide `events`, and the records as stored, for `apply`."""
        events = list(events)
        wanted = [subjects(event) for event in events]
        # In order of arrival, and not as a set, whose order changes from process to process: new
        # pages are placed in this order.
        owners = list(dict.fromkeys(owner for _, owner in wanted if owner))
        locs = list(dict.fromkeys(loc for loc, _ in wanted if loc is not None))
        pages, claims = self._fetch(locs, owners)
        known = Known(self.sections({event.section for event in events if event.section}))
        known.claims = {o: Claim.unpack(stored) if stored else None for o, stored in claims.items()}
        # A page that moves leaves its old URL: that one must be known as well.
        left = [c.loc for c in known.claims.values() if c and c.loc and c.loc not in pages]
        if left:
            pages.update(self._fetch(left, [])[0])
        known.pages = {
            loc: Located.unpack(stored) if stored else None for loc, stored in pages.items()
        }
        listed = {page.place.section for page in known.pages.values() if page and page.place}
        if not listed <= set(known.sections.values()):
            # A worker with a newer configuration has put pages there (RELIABILITY F21).
            self._numbers = {}
            known.sections = self.sections(known.sections)
        return known, pages, claims

    def _fetch(
        self, locs: Sequence[str], owners: Sequence[bytes]
    ) -> tuple[dict[str, bytes], dict[bytes, bytes]]:
        replies = self._scripts(
            "know", [self._keys.inbox],
            self._keys.prefix, b"".join(map(digest_of, locs)), b"".join(owners),
        )  # fmt: skip
        return dict(zip(locs, replies, strict=False)), dict(
            zip(owners, replies[len(locs) :], strict=True)
        )

    def apply(
        self,
        known: Known,
        pages: Mapping[str, bytes],
        claims: Mapping[bytes, bytes],
        settled: Sequence[str],
        decisions: Sequence[tuple[str, str, str, bool]] = (),
        errand: Errand | None = None,
    ) -> bool:
        """Write what `known` has become, all or nothing, and settle the events of these ids.

        False if somebody else changed one of the records meanwhile: read and decide again.
        `decisions` is what people are told: (event id, loc, reason, whether bytes change).
        `errand` is done right behind it, unless it was done before.
        """
        owned = [
            (owner, claims[owner], after)
            for owner, claim in known.claims.items()
            if claim is not None and (after := claim.pack()) != claims[owner]
        ]
        ops = [_page(op) for op in net(known, pages)]
        return self._write(ops, owned, settled, decisions, errand)

    def move(self, shard: Shard, listed: Sequence[bytes]) -> int:
        """Move pages, by their fragments in `shard`, to the tail of its section; how many went.

        A page that has changed since it was published stays, and none goes if one changes now.
        """
        number = self.sections()[shard.section]
        stored = self._fetch([fragments.loc_of(fragment) for fragment in listed], [])[0]
        moved = []
        for fragment, (loc, record) in zip(listed, stored.items(), strict=True):
            place = Located.unpack(record).place if record else None
            here = place is not None and place[:2] == (number, shard.number)
            if here and Located.lists(record, fragments.digest(fragment), number):
                digest = digest_of(loc)
                moved.append(
                    [field(digest), record, record[PLACE_BYTES:], "M", fragment, number, digest]
                )
        return len(moved) if moved and self._write(moved, [], [], []) else 0

    def _write(
        self,
        pages: Sequence[Sequence[Any]],
        owned: Sequence[tuple[bytes, bytes, bytes]],
        settled: Sequence[str],
        decisions: Sequence[tuple[str, str, str, bool]],
        errand: Errand | None = None,
    ) -> bool:
        keys = self._keys
        now = time.time_ns() // 1_000_000
        message = {
            "prefix": keys.prefix, "group": GROUP, "now": now, "forget": now + TOMBSTONE_MS,
            "recent_most": RECENT // max(1, len(decisions)),
            "recent": json.dumps(decisions, separators=(",", ":")),
            "sections": self._section_limits(), "pages": pages,
            "claims": [[field(owner), *stored, owner] for owner, *stored in owned],
            "settled": settled,
        }  # fmt: skip
        names = [keys.inbox, keys.dirty, keys.tombs, keys.counters, keys.tails, keys.recent]
        names += [keys.loc(page[-1]) for page in pages] + [keys.id(owner) for owner, *_ in owned]
        packed = msgpack.packb(message, use_bin_type=False)
        if errand is None or errand.done:
            return int(self._scripts("apply", names, packed)) == 0
        return int(self._scripts.along(errand, "apply", names, packed)) == 0

    def _section_limits(self) -> dict[int, tuple[str, int, int, int, int, int]]:
        default = Limits()
        limits = {}
        for name, number in self.sections().items():
            of = self._limits.get(name, default)
            limits[number] = (name, of.urls, of.hard, of.soft, of.block_urls, of.block_size)
        return limits

    def forget(self, now_ms: int, most: int = 1000) -> int:
        """Forget deleted pages and ids whose time has come; how many were due."""
        return int(self._scripts("forget", [self._keys.tombs], now_ms, most, self._keys.prefix))

    def find(self, loc: str) -> Located | None:
        """What is known of `loc`."""
        stored = self._fetch([loc], [])[0][loc]
        return Located.unpack(stored) if stored else None

    def waiting_patch(self, shard: Shard, block: int, digest: bytes) -> bytes | None:
        """The pending fragment of one page of a block, empty if it is to go, None if none waits."""
        patch = digest + block.to_bytes(2, "big")
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.hget(self._keys.pending(shard), patch)
            pipe.hget(self._keys.taking(shard), patch)
            found = [patch for patch in pipe.execute() if patch]
        if not found:
            return None
        return found[0][3:] if found[0][2:3] == b"U" else b""

    def fragment(self, shard: Shard, block: int, key: bytes) -> bytes | None:
        """The published fragment of the page whose fragment begins with `key`."""
        with answering():
            stored: Any = self._client.hget(self._keys.blocks(shard), str(block))
        raw = Block.unpack(stored).raw() if stored else b""
        at = raw.find(key)
        return raw[at : raw.index(fragments.END, at) + len(fragments.END)] if at >= 0 else None

    def count(self) -> int:
        """How many pages are listed, patches not yet published included."""
        with answering():
            return int(self._client.hget(self._keys.counters, "urls") or 0)


def _page(op: Op) -> list[Any]:
    if op.fragment is not None:
        kind, payload = "P", op.fragment
    elif op.after.startswith(_NOT_LISTED) and Located.was_live(op.before):
        kind, payload = "D", fragments.key(op.loc)
    else:
        kind, payload = "T", b""
    return [field(op.digest), op.before, op.after, kind, payload, op.section or 0, op.digest]
