"""Iterators over all page records, claims and translation groups of a site, in parts."""

from __future__ import annotations

from collections.abc import Iterator

import redis

from shared.domain.page_record import BUCKETS
from shared.store.client import Scripts, answering
from shared.store.keys import keys_of

BUCKETS_AT_ONCE = 2_048
FEW_KEYS = 20_000
FIELDS_AT_ONCE = 1_000
"""Maximum number of buckets and of records (plus those of one bucket) that one script reads: one or
two milliseconds. Below FEW_KEYS keys the existing buckets are listed instead.
"""


class BucketScan:
    """Reader of the records stored by digest. No iterator reads at one instant."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self.site, self.keys = client, site, keys_of(site)
        self._scripts = Scripts(client)

    def pages(self) -> Iterator[list[tuple[bytes, bytes]]]:
        """Yield digest and record of every page: a list for each first byte of the digest, in
        order.
        """
        return self._by_first_byte(self.keys.loc(bytes(2)))

    def claims(self) -> Iterator[list[tuple[bytes, bytes]]]:
        """Yield owner and claim of every id likewise."""
        return self._by_first_byte(self.keys.id(bytes(2)))

    def _by_first_byte(self, zeroth: str) -> Iterator[list[tuple[bytes, bytes]]]:
        found: list[tuple[bytes, bytes]] = []
        part = 0
        for name, stored in self._buckets(zeroth.removesuffix("0")):
            while name[0] > part:
                yield found
                found, part = [], part + 1
            found.append((name, stored))
        for _ in range(part, 256):
            yield found
            found = []

    def _buckets(self, prefix: str) -> Iterator[tuple[bytes, bytes]]:
        with answering():
            few = int(self._client.dbsize()) < FEW_KEYS
        return self._some_buckets(prefix) if few else self._all_buckets(prefix)

    def _some_buckets(self, prefix: str) -> Iterator[tuple[bytes, bytes]]:
        """Read existing buckets only: faster on a small server than reading all."""
        with answering():
            keys = self._client.scan_iter(f"{_literal(prefix)}*", count=FIELDS_AT_ONCE)
            numbers = sorted({int(key.decode()[len(prefix) :], 16) for key in keys})
        for start in range(0, len(numbers), FIELDS_AT_ONCE):
            some = numbers[start : start + FIELDS_AT_ONCE]
            with answering():
                pipe = self._client.pipeline(transaction=False)
                for bucket in some:
                    pipe.hgetall(f"{prefix}{bucket:x}")
                replies = pipe.execute()
            for bucket, stored in zip(some, replies, strict=True):
                for rest, value in stored.items():
                    yield bucket.to_bytes(2, "big") + rest, value

    def _all_buckets(self, prefix: str) -> Iterator[tuple[bytes, bytes]]:
        at = 0
        while at < BUCKETS:
            last = min(at + BUCKETS_AT_ONCE, BUCKETS) - 1
            arguments = (prefix, at, last, FIELDS_AT_ONCE)
            at, *found = self._scripts("pages/read_buckets", [self.keys.inbox], *arguments)
            for bucket, stored in zip(found[::2], found[1::2], strict=True):
                head = bucket.to_bytes(2, "big")
                for rest, value in zip(stored[::2], stored[1::2], strict=True):
                    yield head + rest, value

    def groups(self) -> Iterator[bytes]:
        """Yield the names of all translation groups, some perhaps twice."""
        prefix = self.keys.cluster(b"")
        with answering():
            for key in self._client.scan_iter(f"{_literal(prefix)}*", count=1_000):
                name = key.decode(errors="replace")[len(prefix) :]
                if len(name) == 16 and all(each in "0123456789abcdef" for each in name):
                    yield bytes.fromhex(name)


def _literal(text: str) -> str:
    """Escape `text` for a pattern of SCAN."""
    return "".join(f"\\{each}" if each in "*?[]\\" else each for each in text)
