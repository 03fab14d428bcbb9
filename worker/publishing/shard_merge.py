"""Merging of patches into the blocks of a shard, and rendering of its file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from lxml import etree

from shared.config.site import Site
from shared.domain.shrink_guard import Peak
from shared.errors import ShardError
from shared.sitemap import blocks, fragments, shards
from shared.sitemap.blocks import Block
from shared.store.publishing.publish_batch import ShardWork
from shared.store.publishing.revisions import MOST_LINES, ChangedLine
from worker.publishing.web_root import Piece

_TAIL = blocks.deflate(fragments.URLSET_END)


@lru_cache(64)
def _head(start: bytes) -> Block:
    return blocks.deflate(start)


class MergedShard(NamedTuple):
    """A shard with its patches merged: `edited` blocks (None: removed), all blocks, raw bytes of
    the blocks that were inflated.

    `lines` are the changed ones, None if there are too many; `changed` counts them. `peak` and
    `held` come from the shrink guard (T32).
    """

    taken: ShardWork
    edited: dict[int, Block | None]
    blocks: dict[int, Block]
    raw: dict[int, bytes]
    peak: Peak = Peak(0, 0)
    held: tuple[int, int] | None = None
    lines: Sequence[ChangedLine] | None = ()
    changed: int = 0

    @property
    def urls(self) -> int:
        """Number of pages the shard lists."""
        return sum(block.urls for block in self.blocks.values())

    @property
    def uses(self) -> int:
        """The extensions that occur in it (fragments.uses)."""
        return used(self.blocks.values())

    def size(self, site: Site) -> int:
        """Return the bytes of the file before compression."""
        if site.form == "txt":
            return sum(len(piece) for piece in _lines(self))
        around = len(_start(site, self.uses)) + len(fragments.URLSET_END)
        return sum(block.length for block in self.blocks.values()) + around


def used(blocks_: Iterable[Block]) -> int:
    """Return the extensions that occur in these blocks (fragments.uses)."""
    uses = 0
    for block in blocks_:
        uses |= block.uses
    return uses


def unpatched(taken: ShardWork) -> MergedShard:
    """Return `taken` as last published, without the waiting patches."""
    return MergedShard(taken, {}, dict(sorted(taken.blocks.items())), {})


def merge(taken: ShardWork) -> MergedShard:
    """Merge the patches of `taken` into its blocks; only touched blocks are inflated.

    Raises ShardError if one of these is damaged in the store.
    """
    whole, raws = dict(taken.blocks), {}
    edited: dict[int, Block | None] = {}
    lines: list[ChangedLine] | None = (
        [] if sum(map(len, taken.patches.values())) <= MOST_LINES else None
    )
    changed = 0
    for number, patches in taken.patches.items():
        before = whole[number].raw() if number in whole else b""
        raw, count = blocks.edit(before, patches)
        if raw == before:
            continue
        if lines is None:
            changed += len(patches)
        else:
            lines += (ChangedLine(*pair) for pair in blocks.differences(before, patches))
        if count:
            raws[number] = raw
            whole[number] = blocks.deflate(raw, count, _uses(whole.get(number), patches, raw))
            edited[number] = whole[number]
        else:
            edited[number] = None
            whole.pop(number, None)
    if lines is not None:
        changed = len(lines)
        if taken.told:
            # A change undone before it was published is not notified.
            differ = {line.loc for line in lines}
            taken = taken._replace(told=[loc for loc in taken.told if loc in differ])
    merged = MergedShard(taken, edited, dict(sorted(whole.items())), raws)
    return merged._replace(lines=lines, changed=changed)


def _uses(before: Block | None, patches: Mapping[bytes, bytes | None], raw: bytes) -> int:
    """Return the extensions of an edited block; of a plain one, only the patches are searched."""
    if before is not None and before.uses:
        return fragments.uses(raw)
    return fragments.uses(b"".join(piece for piece in patches.values() if piece))


def _start(site: Site, uses: int) -> bytes:
    return fragments.urlset_start(uses, styled=site.pages)


def _lines(merged: MergedShard) -> list[bytes]:
    """Return the lines of a text sitemap, block by block (PROTOCOL F10)."""
    return [
        b"".join(fragments.lines(merged.raw.get(number) or block.raw()))
        for number, block in merged.blocks.items()
    ]


def render(merged: MergedShard, site: Site, before: bytes = b"") -> list[Piece]:
    """Return the bytes of a shard file, in pieces; ShardError if they break a limit (PROTOCOL F7).

    `before` is the current file: pieces with the checksum of an unchanged block are reused (0.002
    ms; inflating the block takes 0.055 ms).
    """
    if merged.urls > shards.MAX_URLS or merged.size(site) > shards.MAX_BYTES:
        raise ShardError("it would break the limits of PROTOCOL F7")
    if site.form == "txt":
        return [*_lines(merged)]
    start = _start(site, merged.uses)
    if site.form != "xml":
        return [blocks.gzip_file([_head(start), *merged.blocks.values(), _TAIL])]
    raws: dict[int, Piece] = dict(merged.raw)
    there = merged.taken.blocks
    at, file = len(_start(site, used(there.values()))), memoryview(before)
    for number, block in sorted(there.items()):
        piece = file[at : at + block.length]
        at += block.length
        if merged.blocks.get(number) is block and block.is_of(piece):
            raws[number] = piece
    pieces = (raws.get(number) or block.raw() for number, block in merged.blocks.items())
    return [start, *pieces, fragments.URLSET_END]


def check(merged: MergedShard) -> None:
    """Raise ShardError if a new fragment is not well-formed (PROTOCOL F4, RELIABILITY T14).

    Older fragments were checked when new, and every block has a checksum.
    """
    patches = merged.taken.patches
    new = [piece for number in merged.edited for piece in patches[number].values() if piece]
    start = fragments.urlset_start(fragments.EVERY_USE)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, collect_ids=False)
    try:
        etree.fromstring(b"".join((start, *new, fragments.URLSET_END)), parser)
    except etree.XMLSyntaxError as error:
        raise ShardError(f"it would not be well-formed: {error}") from error
