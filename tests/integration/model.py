"""What sitemapd promises, as plain dicts: the pages after some events, and the files of them.

Written apart from the product: it imports nothing of it. It is told the events in the batches in
which the worker read them, because new pages are placed batch by batch: first come, first placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

HEAD = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b'<?xml-stylesheet type="text/css" href="sitemap.css"?>\n'
    b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
)
TAIL = b"</urlset>\n"


class Bounds(NamedTuple):
    """Of one section: URLs and bytes of a shard (`soft`: for new pages), of a block."""

    urls: int
    hard: int
    soft: int
    block_urls: int
    block_size: int


@dataclass
class Page:
    """One URL: `text` is its fragment, empty where it is not listed; `place` outlives it."""

    stamp: int
    text: str = ""
    owner: str = ""
    section: str = ""
    place: tuple[str, int, int] | None = None


@dataclass
class Shard:
    urls: int = 0
    size: int = 0


@dataclass
class Tail:
    shard: int = 1
    block: int = 0
    urls: int = 0
    size: int = 0


@dataclass
class Model:
    """`bounds` by section. Events are mappings of their members, `at` the (ms, sequence)."""

    bounds: Mapping[str, Bounds]
    pages: dict[str, Page] = field(default_factory=dict)
    claims: dict[str, tuple[int, str]] = field(default_factory=dict)
    shards: dict[tuple[str, int], Shard] = field(default_factory=dict)  # in order of creation
    tails: dict[str, Tail] = field(default_factory=dict)

    def batch(self, events: Iterable[tuple[Mapping[str, Any], tuple[int, int]]]) -> None:
        """One batch as the worker reads it: each event decides, then every page moves once."""
        events = list(events)
        left = [self.claims[e["id"]][1] for e, _ in events if e.get("id") in self.claims]
        order = dict.fromkeys([e["loc"] for e, _ in events if e.get("loc")] + left)
        before = {loc: (page.text, page.section) for loc in order if (page := self.pages.get(loc))}
        for event, at in events:
            self._decide(event, at)
        for loc in order:
            if loc in self.pages:
                self._settle(self.pages[loc], *before.get(loc, ("", "")))

    def _decide(self, event: Mapping[str, Any], at: tuple[int, int]) -> None:
        version, owner, loc = event.get("version"), event.get("id", ""), event.get("loc")
        stamp = at[0] << 16 | at[1]
        if version is not None:
            stamp = version << 16 | min(max(at[0] - version, 0), 0xFFFF)
        gone = event["type"] == "delete" or event.get("noindex")
        gone = gone or event.get("canonical", loc) != loc
        if owner:
            known = self.claims.get(owner)
            if known and stamp < known[0]:
                return
            left = known[1] if known and (gone or known[1] != loc) else ""
            if left and self.pages[left].owner == owner:
                self._remove(left, owner, stamp)
            self.claims[owner] = (stamp, "" if gone or not loc else loc)
        if loc and gone:
            self._remove(loc, owner, stamp)
        elif loc:
            self._list(loc, owner, stamp, event)

    def _remove(self, loc: str, owner: str, stamp: int) -> None:
        page = self.pages.setdefault(loc, Page(0))
        another = page.text and owner and page.owner and page.owner != owner
        if stamp >= page.stamp and not another:
            page.stamp, page.text, page.owner = stamp, "", owner

    def _list(self, loc: str, owner: str, stamp: int, event: Mapping[str, Any]) -> None:
        page = self.pages.setdefault(loc, Page(0))
        vacated = not page.text and owner and page.owner and page.owner != owner
        if stamp >= page.stamp or vacated:
            page.stamp = stamp
            page.owner = owner or (page.owner if page.text else "")
            page.section = event.get("section") or page.section or "pages"
            page.text = fragment(event)

    def _settle(self, page: Page, text: str, section: str) -> None:
        """Move `page`, which was listed as `text` in `section`, to where it belongs now."""
        if page.text == text and (page.section == section or not text):
            return
        place, old, new = page.place, len(text), len(page.text)
        bounds, shard = self.bounds[page.section], self.shards[place[:2]] if place else Shard()
        stays = False
        if place and new and place[0] == page.section:
            stays = shard.size - old + new <= bounds.hard
            if not old:  # back from the dead
                stays = stays and 0 < shard.urls < bounds.urls
        if old:
            shard.urls, shard.size = shard.urls - 1, shard.size - old
        if new and not stays:
            page.place = self._tail(page.section, new)
        if new and page.place:
            shard = self.shards[page.place[:2]]
            shard.urls, shard.size = shard.urls + 1, shard.size + new

    def drain(self) -> tuple[str, int] | None:
        """Move the pages of the emptiest shard under a quarter to the tail of its section."""
        last = dict(sorted(self.shards))
        low = [
            (shard.urls, at)
            for at, shard in sorted(self.shards.items())
            if at[1] < last[at[0]] and self._is_low(at[0], shard)
        ]
        if not low:
            return None
        at = min(low, key=lambda found: found[0])[1]
        inside = [page for page in self.pages.values() if page.text and page.place[:2] == at]
        for page in sorted(inside, key=lambda page: (page.place[2], page.text)):
            self.shards[at].urls -= 1
            self.shards[at].size -= len(page.text)
            page.place = self._tail(at[0], len(page.text))
            shard = self.shards[page.place[:2]]
            shard.urls, shard.size = shard.urls + 1, shard.size + len(page.text)
        return at

    def _is_low(self, section: str, shard: Shard) -> bool:
        bounds = self.bounds[section]
        return 0 < shard.urls * 4 < bounds.urls and shard.size * 4 < bounds.hard

    def _tail(self, section: str, size: int) -> tuple[str, int, int]:
        bounds, tail = self.bounds[section], self.tails.setdefault(section, Tail())
        shard = self.shards.setdefault((section, tail.shard), Shard())
        if shard.urls >= bounds.urls or (shard.urls and shard.size + size > bounds.soft):
            tail = self.tails[section] = Tail(tail.shard + 1)
            self.shards[section, tail.shard] = Shard()
        elif tail.urls >= bounds.block_urls or (tail.urls and tail.size + size > bounds.block_size):
            tail = self.tails[section] = Tail(tail.shard, tail.block + 1)
        tail.urls, tail.size = tail.urls + 1, tail.size + size
        return section, tail.shard, tail.block

    def listed(self) -> dict[str, str]:
        """loc -> fragment of every page that is in the sitemap."""
        return {loc: page.text for loc, page in self.pages.items() if page.text}

    def files(self) -> dict[str, bytes]:
        """Every shard file as it has to be, uncompressed, by its name without a suffix."""
        content: dict[tuple[str, int], dict[int, list[str]]] = {}
        for page in self.pages.values():
            if page.text and page.place:
                section, number, block = page.place
                content.setdefault((section, number), {}).setdefault(block, []).append(page.text)
        files = {}
        for section, number in self.shards:  # in order of creation: that of the index
            blocks = content.get((section, number), {})
            texts = [text for _, block in sorted(blocks.items()) for text in sorted(block)]
            if texts:
                files[f"{section}-{number}"] = HEAD + "".join(texts).encode() + TAIL
        return files

    def indexes(self, most: int) -> dict[str, list[str]]:
        """The shard files that each index file lists, `most` shards to an index, in order."""
        files, found = self.files(), dict[str, list[str]]()
        for ordinal, (section, number) in enumerate(self.shards):
            page = ordinal // most
            if f"{section}-{number}" in files:
                name = f"sitemap-{page + 1}.xml" if page else "sitemap.xml"
                found.setdefault(name, []).append(f"{section}-{number}")
        return found


def fragment(event: Mapping[str, Any]) -> str:
    """`<url>` of an event's page."""
    loc = escape(event["loc"], {"'": "&apos;", '"': "&quot;"})
    lastmod = event.get("lastmod")
    return f"<url><loc>{loc}</loc>{f'<lastmod>{lastmod}</lastmod>' if lastmod else ''}</url>\n"
