"""Files: what each lists against its limits, what its publishes changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import or_
from typing import Any, NamedTuple

import redis
from isal import isal_zlib

from shared.config.site import Site
from shared.domain.routing import family_of
from shared.errors import Fault, InvalidError, ShardError
from shared.sitemap import fragments, shards
from shared.sitemap.shards import Limits, Shard
from shared.store.publishing.publish_state import PublishState
from shared.store.publishing.revisions import Revision, Revisions

_DEFAULT = Limits()


class FileRow(NamedTuple):
    """One file as it was last written.

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
    """What a file holds by its `blocks`, so many in number.

    `crc` (CRC-32) and `length` (bytes) are of the whole file before compression, the former also
    what a gzip file ends with (RFC 1952). `damaged` says which blocks are damaged in the store, and
    how; the other two are not known then.
    """

    blocks: int
    crc: int
    length: int
    damaged: Sequence[str]


class FileActions:
    """The shard files of one site."""

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._site = site
        self._state, self._revisions = PublishState(client, name), Revisions(client, name)

    def sections(self) -> list[str]:
        """The sections that ever were."""
        return self._state.sections()

    def rows(self, sections: Sequence[str] = ()) -> list[FileRow]:
        """Every shard that ever was, in order; only those of `sections` if some are named."""
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
        """How much fits into `shard`."""
        configured = self._site.limits
        return configured.get(family_of(shard.section, configured), _DEFAULT)

    def name(self, shard: Shard) -> str:
        """The file of `shard`, as the index lists it."""
        return shards.file_name(shard, self._site.form)

    def shard(self, file: str) -> Shard:
        """The shard that is meant by `file`: the name of a file, or as `posts/1`.

        InvalidError if there never was one.
        """
        for shard in self._state.shards(self._state.sections()):
            name = self.name(shard)
            if file in {name, shards.on_disk(name, self._site.form), str(shard)}:
                return shard
        raise InvalidError(Fault(file, "file", "no such file; to see them: sitemapd files list"))

    def content(self, shard: Shard) -> FileContent:
        """What the file of `shard` holds, as it was published last; each block is looked at."""
        states = self._state.shards([shard.section])
        ((taken, *_), _) = self._state.load([shard], [states[shard]])
        blocks = [block for _, block in sorted(taken.blocks.items())]
        text, damaged = self._site.form == "txt", list[str]()
        uses = reduce(or_, (block.uses for block in blocks), 0)
        start = b"" if text else fragments.urlset_start(uses, styled=self._site.pages)
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
        """The last `most` publishes that changed `shard` and are still known, newest first."""
        return list(islice(self._revisions.latest(shard), most))

    def since(self, shard: Shard, at: str) -> list[Revision]:
        """The publishes of `shard` from the newest down to the one at `at`.

        InvalidError if that one is not kept.
        """
        found = []
        for revision in self._revisions.latest(shard):
            found.append(revision)
            if revision.at == at:
                return found
        raise InvalidError(Fault(at, "revision", self._kept(found)))

    def revision(self, shard: Shard, at: str | None = None) -> Revision:
        """What the publish at `at` (None: the last) changed in `shard`.

        InvalidError if it is not kept.
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
            return "no publish of this file is kept"
        return f"not kept for this file; kept are {found[-1].at} to {found[0].at}"


def pairs(revision: Revision) -> Iterator[dict[str, Any]]:
    """The lines of a revision as JSON; none if they were too many to keep."""
    for line in revision.lines or ():
        yield {
            "loc": line.loc,
            "before": None if line.before is None else line.before.decode().rstrip("\n"),
            "after": None if line.after is None else line.after.decode().rstrip("\n"),
        }
