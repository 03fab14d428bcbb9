"""HTML sitemap of a site for visitors: a page of links for each block of a shard, and the contents.

A publish pass writes the pages of the blocks that it changed, and all pages of a shard whose number
of blocks changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import redis

from shared.batches import batches
from shared.config.sites.site import Site
from shared.domain.routing import family_of
from shared.sitemap import blocks, fragments, html_writer
from shared.sitemap.blocks import Block
from shared.sitemap.shards import CONTENTS, CONTENTS_STYLE, Shard
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.pages.lookup import PageLookup
from shared.store.publishing.publish_state import PublishState
from worker.publishing import static
from worker.publishing.outputs.output import Output
from worker.publishing.shard_file import MergedShard
from worker.publishing.targets.target import Target

_BUCKETS, _AT_ONCE = 65_536, 1_000


@lru_cache(1)
def stylesheet() -> bytes:
    """Return the shipped stylesheet."""
    return files(static).joinpath(CONTENTS_STYLE).read_bytes()


class HtmlPages(Output):
    """The HTML sitemap of one site."""

    names = (CONTENTS_STYLE, CONTENTS)
    careful = True

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._client, self._site, self._keys = client, site, keys_of(name)
        self._state = PublishState(client, name)
        self._lookup = PageLookup.of(client, name, site)
        self._news = frozenset(site.routing.news)
        self._merged, self._counts = dict[Shard, MergedShard](), dict[Shard, int]()

    def record(self, published: Sequence[MergedShard]) -> None:
        """Keep the published shards for `contents`: the store does not have them yet."""
        self._merged = {
            each.taken.shard: each for each in published if self._lists(each.taken.shard)
        }

    def contents(self, shards: Collection[Shard] | None = None) -> Iterator[tuple[str, bytes]]:
        """Yield the stylesheet, the pages of `shards` (None: of all), and then what names them."""
        merged, self._merged, self._counts = self._merged, {}, {}
        listed = self._listed(merged)
        yield CONTENTS_STYLE, stylesheet()
        for shard in listed if shards is None else sorted(filter(self._lists, shards)):
            yield from self._pages(shard, merged.get(shard))
        sections: dict[str, list[Shard]] = {}
        for shard in listed:
            sections.setdefault(shard.section, []).append(shard)
        if sections:
            yield CONTENTS, html_writer.contents(self._site.feed_title, sections)

    def expected(self) -> Sequence[str]:
        """Return the names of all files."""
        listed = self._listed()
        with answering():
            pipe = self._client.pipeline(transaction=False)
            for shard in listed:
                pipe.hlen(self._keys.blocks(shard))
            counts: Any = pipe.execute() if listed else ()
        pages = [
            html_writer.name_of(shard, n + 1)
            for shard, count in zip(listed, counts, strict=True)
            for n in range(count)
        ]
        return [CONTENTS_STYLE, *([CONTENTS] if listed else ()), *pages]

    def content(self, name: str) -> bytes | None:
        """Return the expected content of one file; None if there should be none."""
        if (found := html_writer.parse_name(name)) is None:
            return dict(self.contents(())).get(name) if name in self.names else None
        shard, number = found
        content = self._state.content(shard) if self._lists(shard) else {}
        ordered = [content[n] for n in sorted(content)]
        if not 0 < number <= len(ordered):
            return None
        return self._page(shard, number, len(ordered), ordered[number - 1].raw())

    def shard_of(self, name: str) -> Shard | None:
        """Return the shard whose page `name` is."""
        found = html_writer.parse_name(name)
        return found[0] if found else None

    def gone(self, root: Target, shards: Collection[Shard] | None) -> Iterable[str]:
        """Return the pages in `root` behind the last one of each of `shards` (None: of all)."""
        if shards is None:
            wanted = {*self.expected()}
            return [name for name in self.found(root) if name not in wanted]
        return [name for shard in filter(self._lists, shards) for name in self._behind(root, shard)]

    def found(self, root: Target) -> Sequence[str]:
        """Return the names of files in `root` that may be of this output."""
        if root.look(CONTENTS) is None and root.look(CONTENTS_STYLE) is None:
            return ()
        return [each for each in root.names() if each in self.names or html_writer.parse_name(each)]

    def is_ours(self, content: bytes) -> bool:
        """Return True if `content` is one of the pages, or the stylesheet as it is shipped."""
        mark = stylesheet().partition(b"\n")[0]
        return html_writer.is_ours(content) or content.startswith(mark)

    def forget(self) -> None:
        """Delete the titles, if there are any: nobody reads them without this output."""
        with answering():
            if not self._client.hdel(self._keys.counters, "titles"):
                return
            for some in batches(range(_BUCKETS), _AT_ONCE):
                self._client.unlink(*(f"{self._keys.prefix}titles:{n:x}" for n in some))

    def _lists(self, shard: Shard) -> bool:
        """Return False for news, whose pages are listed by their own sections, too."""
        return family_of(shard.section, self._site.limits) not in self._news

    def _listed(self, merged: Mapping[Shard, MergedShard] = {}) -> list[Shard]:
        """Return the shards that list pages, once those of `merged` are committed."""
        stored = self._state.files(self._state.sections())
        listed = {shard for shard, file in stored.items() if file.urls and shard not in merged}
        listed |= {shard for shard, each in merged.items() if each.urls}
        return sorted(filter(self._lists, listed))

    def _pages(self, shard: Shard, merged: MergedShard | None) -> Iterator[tuple[str, bytes]]:
        """Yield the pages of a shard; of a `merged` one those that its patches may have changed."""
        content = merged.blocks if merged else self._state.content(shard)
        ordered = sorted(content)
        patched = merged.taken.patches if merged else {}
        if merged and (not patched or merged.taken.blocks.keys() != content.keys()):
            patched = {number: {} for number in ordered}
        self._counts[shard] = len(ordered)
        for place, number in enumerate(ordered):
            if merged is None or number in patched:
                raw = self._raw(shard, number, content[number], merged)
                name = html_writer.name_of(shard, place + 1)
                yield name, self._page(shard, place + 1, len(ordered), raw)

    def _raw(self, shard: Shard, number: int, block: Block, merged: MergedShard | None) -> bytes:
        if merged and number in merged.raw:
            return bytes(merged.raw[number])
        return self._state.content(shard)[number].raw() if block.bare else block.raw()

    def _page(self, shard: Shard, number: int, pages: int, raw: bytes) -> bytes:
        locs = [fragments.loc_of(each) for each in blocks.split(raw)]
        titles = self._lookup.titles(locs)
        links = [(loc, titles[loc]) for loc in locs]
        return html_writer.page(self._site.feed_title, shard, number, pages, links)

    def _behind(self, root: Target, shard: Shard) -> Iterator[str]:
        number = self._counts.get(shard, 0) + 1
        while root.look(name := html_writer.name_of(shard, number)) is not None:
            yield name
            number += 1
