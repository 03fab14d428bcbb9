"""Revisions: the lines of each file that each publish changed, for display and rollback.

Bounded by size. worker/publishing/shard_file.py packs the lines of one; of too many only the
number is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgpack
import redis
from isal import isal_zlib
from isal.igzip_lib import IsalError

from shared.domain.page_record import Arrival
from shared.sitemap import fragments
from shared.sitemap.shards import Shard
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.publishing.publish_batch import PublishedFile
from shared.store.streams import backwards, forwards

_STEP = 100


class ChangedLine(NamedTuple):
    """One `<url>` of a file before and after a publish; None where it is not listed."""

    before: bytes | None
    after: bytes | None

    @property
    def loc(self) -> str:
        """Loc of the page it lists."""
        fragment = self.after or self.before
        assert fragment is not None
        return fragments.loc_of(fragment)


class Revision(NamedTuple):
    """One publish of one file: its id `at` in the stream (ms since 1970, a hyphen, a number).

    `file` is what was written, None if the file was removed; `changed` is the number of changed
    lines, `lines` these, None if there were too many to keep.
    """

    at: str
    shard: Shard
    file: PublishedFile | None
    changed: int
    lines: tuple[ChangedLine, ...] | None

    @property
    def at_ms(self) -> int:
        """Time of the publish (ms since 1970)."""
        return Arrival.of(self.at).ms


class Revisions:
    """Reader of the revisions of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, keys_of(site)

    def latest(self, shard: Shard | None = None, before: str = "") -> Iterator[Revision]:
        """Yield revisions of `shard` (None: any), newest first, before the id `before`."""
        for at, fields in backwards(self._client, self._keys.revisions, before=before, step=_STEP):
            if shard is None or fields[b"shard"] == str(shard).encode():
                yield _revision(at, fields)

    def get(self, at: str) -> list[Revision]:
        """Return the revision with this id as a list, empty if it is not kept."""
        with answering():
            rows: Any = self._client.xrange(self._keys.revisions, at, at)
        return [_revision(ident.decode(), fields) for ident, fields in rows]

    def since(self, since_ms: int = 0) -> Iterator[Revision]:
        """Return an iterator over revisions from `since_ms` (ms since 1970) on, oldest first."""
        rows = forwards(self._client, self._keys.revisions, str(since_ms), step=_STEP)
        return (_revision(at, fields) for at, fields in rows)

    def after(self, at: str) -> Iterator[Revision]:
        """Return an iterator over the revisions after the id `at`, oldest first."""
        rows = forwards(self._client, self._keys.revisions, after=at, step=_STEP)
        return (_revision(ident, fields) for ident, fields in rows)

    def oldest(self) -> str:
        """Return the id of the oldest revision; empty if there is none."""
        return next((at for at, _ in forwards(self._client, self._keys.revisions, step=1)), "")


def _revision(at: str, fields: dict[bytes, bytes]) -> Revision:
    section, _, number = fields[b"shard"].decode().rpartition("/")
    stored = fields[b"lines"]
    try:
        pairs = msgpack.unpackb(isal_zlib.decompress(stored)) if stored else None
    except (IsalError, ValueError):  # type: ignore[misc]  # see shared.sitemap.blocks
        pairs = None  # damaged: treated as too many lines
    lines = None if pairs is None else tuple(ChangedLine(*pair) for pair in pairs)
    file = PublishedFile.unpack(fields[b"file"]) if fields[b"file"] else None
    return Revision(at, Shard(section, int(number)), file, int(fields[b"changed"]), lines)
