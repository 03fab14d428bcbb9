"""Alternates that their target does not return (PROTOCOL H2, H3), found in bounded memory.

Each alternate that is a page of the same site adds 17 bytes to a temporary file: the digests of
both pages in one order, and the direction. A pair with one direction only is looked for again in
the files, for its addresses. What a page of another site lists is unknown here, also if that site
is below the directory of this one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from shared.domain.page_record import digest_of
from shared.errors import ShardError
from shared.sitemap import blocks, fragments
from shared.sitemap.blocks import Block
from shared.sitemap.extensions import alternates
from worker.checks.consistency.join_spool import PARTS, JoinSpool
from worker.checks.progress import Step

LINK = b"<xhtml:link"
MOST = 10_000
"""Maximum number of pairs whose addresses are looked for; more are only counted."""

_DIGEST = 8
_THERE, _BACK = b"\1", b"\2"


class Reciprocity(contextlib.AbstractContextManager["Reciprocity"]):
    """Collects the alternates of a site whose pages begin with `prefix`, and with none of
    `elsewhere`.
    """

    def __init__(self, prefix: str, elsewhere: Sequence[str] = ()) -> None:
        """Open the temporary file. Raises CheckError."""
        self._prefix, self._elsewhere = prefix, tuple(elsewhere)
        self._spool = JoinSpool(2 * _DIGEST + 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.__exit__()

    def note(self, raw: bytes) -> None:
        """Add the alternates of a block. Raises CheckError if there is no room."""
        for here, _, there, _ in self._pairs(raw):
            pair = here + there + _THERE if here < there else there + here + _BACK
            self._spool.add(pair)

    def found(self, published: Iterable[Block], step: Step) -> Iterator[tuple[str, str, int]]:
        """Yield each page that names another as an alternate and is not named by it, the other, and
        1; beyond MOST, an empty page and the number of the others. `published` are all blocks.

        Raises CheckError.
        """
        pairs, beyond = set[bytes](), 0
        for pair in self._one_way(step):
            if len(pairs) < MOST:
                pairs.add(pair)
            else:
                beyond += 1
        for block in published if pairs else ():
            step(0)
            with contextlib.suppress(ShardError):
                raw = block.raw()
                for here, loc, there, href in self._pairs(raw) if LINK in raw else ():
                    if here + there in pairs:
                        yield loc, href, 1
        if beyond:
            yield "", "", beyond

    def _pairs(self, raw: bytes) -> Iterator[tuple[bytes, str, bytes, str]]:
        """Yield digest and loc of each page, and of each of its alternates on this site."""
        for fragment in blocks.split(raw):
            links = fragments.linked(fragment)
            if not links:
                continue
            loc = fragments.loc_of(fragment)
            here = digest_of(loc)
            for href in {href for _, href in alternates.read(links.decode())} - {loc}:
                if href.startswith(self._prefix) and not href.startswith(self._elsewhere):
                    yield here, loc, digest_of(href), href

    def _one_way(self, step: Step) -> Iterator[bytes]:
        """Yield the digests of a page and of an alternate that does not return it."""
        for part in range(PARTS):
            step(0)
            seen: dict[bytes, int] = {}
            for row in self._spool.part(part):
                pair = row[:-1]
                seen[pair] = seen.get(pair, 0) | row[-1]
            for pair, directions in seen.items():
                if directions == _THERE[0]:
                    yield pair
                elif directions == _BACK[0]:
                    yield pair[_DIGEST:] + pair[:_DIGEST]
