"""Sitemap files of a site: limits, content, and revisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import or_
from typing import Any, NamedTuple

import redis
from isal import isal_zlib

from shared.config.sites.site import Site
from shared.domain.routing import family_of
from shared.errors import Fault, InvalidError, ShardError
from shared.sitemap import fragments, shards
from shared.sitemap.shards import Limits, Shard
from shared.store.publishing.publish_state import PublishState
from shared.store.publishing.revisions import Revision, Revisions

_DEFAULT = Limits()


class FileRow(NamedTuple):
    """One file as last written.

    `urls` of `most_urls` pages and `size` of `most_size` bytes before compression, as published;
    `generation` counts the changes of the shard until then, `lastmod` is in s since 1970. `state`
    is current, dirty (changes wait), held (by the shrink guard), or gone (it lists nothing).
    """

    file: str
    shard: Shard
    url: str
    form: str
    urls: int
    most_urls: int
    size: int
    most_size: int
    generation: int
    lastmod: int | None
    state: str


class FileContent(NamedTuple):
    """Content of a file by its blocks; `blocks` is their number.

    `crc` (CRC-32) and `length` (bytes) are of the whole file before compression, the former also
    the trailer of a gzip file (RFC 1952). `damaged` describes the damaged blocks in the store; the
    other two are unknown then.
    """

    blocks: int
    crc: int
    length: int
    damaged: Sequence[str]


class FileActions:
    """Files of the shards of one site."""

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._site = site
        self._state, self._revisions = PublishState(client, name), Revisions(client, name)

    def sections(self) -> list[str]:
        """Return the sections that ever existed."""
        return self._state.sections()

    def rows(self, sections: Sequence[str] = ()) -> list[FileRow]:
        """Return every shard that ever existed, in order; only those of `sections` if given."""
        sections = sections or self._state.sections()
        files = self._state.files(sections)
        dirty, held = set(self._state.dirty()), self._state.shrink.held()
        rows = []
        for shard in self._state.shards(sections):
            file, limits = files.get(shard), self.limits(shard)
            state = "held" if shard in held else "dirty" if shard in dirty else "current"
            if file is None and state == "current":
                state = "gone"
            name = self.name(shard)
            rows.append(
                FileRow(
                    name, shard, self._site.base.url(name), self._site.form,
                    file.urls if file else 0, limits.urls, file.size if file else 0, limits.size,
                    file.generation if file else 0, file.lastmod if file else None, state,
                )
            )  # fmt: skip
        return rows

    def limits(self, shard: Shard) -> Limits:
        """Return the limits of `shard`."""
        configured = self._site.limits
        return configured.get(family_of(shard.section, configured), _DEFAULT)

    def name(self, shard: Shard) -> str:
        """Return the file name of `shard`, as the index lists it."""
        return shards.file_name(shard, self._site.form)

    def shard(self, file: str) -> Shard:
        """Return the shard of `file`: a file name, or a shard such as `posts/1`.

        Raises InvalidError if it never existed.
        """
        for shard in self._state.shards(self._state.sections()):
            name = self.name(shard)
            if file in {name, shards.on_disk(name, self._site.form), str(shard)}:
                return shard
        raise InvalidError(Fault(file, "file", "no such file; to list them: sitemapd files list"))

    def content(self, shard: Shard) -> FileContent:
        """Return the content of the file of `shard` as published last; every block is checked."""
        blocks = [*self._state.content(shard).values()]
        text, damaged = self._site.form in shards.TEXT_FORMS, list[str]()
        uses = reduce(or_, (block.uses for block in blocks), 0)
        start = b"" if text else fragments.urlset_start(uses, styled=self._site.viewer)
        crc, length = isal_zlib.crc32(start), len(start)
        for number, block in enumerate(blocks, 1):
            try:
                raw = block.raw()
            except ShardError as error:
                damaged.append(f"{number} of {len(blocks)}: {error}")
                continue
            piece = b"".join(fragments.lines(raw)) if text else raw
            crc, length = isal_zlib.crc32(piece, crc), length + len(piece)
        end = b"" if text else fragments.URLSET_END
        return FileContent(len(blocks), isal_zlib.crc32(end, crc), length + len(end), damaged)

    def history(self, shard: Shard, most: int = 50) -> list[Revision]:
        """Return the last `most` revisions of `shard` that are kept, newest first."""
        return list(islice(self._revisions.latest(shard), most))

    def since(self, shard: Shard, at: str) -> list[Revision]:
        """Return the revisions of `shard` from the newest down to the one at `at`.

        Raises InvalidError if that one is not kept.
        """
        found = []
        for revision in self._revisions.latest(shard):
            found.append(revision)
            if revision.at == at:
                return found
        raise InvalidError(Fault(at, "revision", self._kept(found)))

    def revision(self, shard: Shard, at: str | None = None) -> Revision:
        """Return the revision of `shard` at `at` (None: the last).

        Raises InvalidError if it is not kept.
        """
        if at is not None:
            return self.since(shard, at)[-1]
        found = self.history(shard, 1)
        if not found:
            raise InvalidError(Fault(str(shard), "revision", self._kept([])))
        return found[0]

    @staticmethod
    def _kept(found: list[Revision]) -> str:
        if not found:
            return "no revision of this file is kept"
        return f"not kept for this file; kept are {found[-1].at} to {found[0].at}"


def pairs(revision: Revision) -> Iterator[dict[str, Any]]:
    """Yield the lines of a revision as JSON values; none if they were too many to keep."""
    for line in revision.lines or ():
        yield {
            "loc": line.loc,
            "before": None if line.before is None else line.before.decode().rstrip("\n"),
            "after": None if line.after is None else line.after.decode().rstrip("\n"),
        }
