"""Shards and indexes: names, numbers, limits and bytes."""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from typing import NamedTuple

from shared.sitemap import blocks
from shared.sitemap.fragments import OVERHEAD

MAX_URLS = 50_000
MAX_BYTES = 52_428_800
MAX_INDEX = 50_000
"""Limits of one file (PROTOCOL F7, F8); bytes before compression."""

DEFAULT_URLS = 10_000
DEFAULT_INDEX = 1_000
"""Lines of one index file; more shards get further index files, so the cost of one stays flat."""

HEADROOM = 16
"""One sixteenth of the bytes is reserved for edits of the pages that are already listed."""

SECTION = re.compile(r"[a-z0-9-]{1,32}", re.ASCII)
NUMBERED = re.compile(r"-[0-9]+$", re.ASCII)
_MONTHLY = re.compile(r"-[0-9]{4}-[0-9]{2}$", re.ASCII)
RESERVED = frozenset({"sitemap", "robots", "atom", "rss"})
CHANGE_LIST_FILES = ("changelist.xml", "capabilitylist.xml", "resourcesync.xml")
"""Files of a change list (change_list.py): itself, what names it, and where clients begin."""
WELL_KNOWN = ".well-known/resourcesync"
"""Path below the host at which clients look for the last of them: web servers map it to that."""
LLMS = "llms.txt"
HOSTS = "sitemap-hosts.xml"
"""Index of the files of several hosts (PROTOCOL R11)."""
CONTENTS, CONTENTS_STYLE = "sitemap-contents.html", "sitemap-contents.css"
VISITORS_PAGE = r"sitemap-[a-z0-9-]{1,100}-[0-9]{1,7}-[0-9]{1,6}\.html"
"""Files of the HTML sitemap for visitors (html_writer.py); the last one is the pattern of names."""
FORMS = ("xml", "xml.gz", "encoded", "txt", "txt.gz")
TEXT_FORMS = frozenset({"txt", "txt.gz"})
"""Forms that list one URL on each line, and nothing else (PROTOCOL F10)."""

_NAME = re.compile(r"[a-z0-9-]{1,100}", re.ASCII)
_SHARD = re.compile(r"([a-z0-9-]{1,100})/([1-9][0-9]{0,6})", re.ASCII)

STATE = struct.Struct(">QIQI")
"""Stored form of a ShardState."""


class Shard(NamedTuple):
    """A shard: its section's name and its number, from 1."""

    section: str
    number: int

    def __str__(self) -> str:
        return f"{self.section}/{self.number}"

    @classmethod
    def read(cls, stored: bytes) -> Shard | None:
        """The shard named `stored` in Redis; None if no shard has that name (RELIABILITY T35)."""
        found = _SHARD.fullmatch(stored.decode("ascii", errors="replace"))
        return cls(found[1], int(found[2])) if found and nameable(found[1]) else None


def nameable(section: str) -> bool:
    """True if files can have the name `section`: that of a section, or of a part of one."""
    return _NAME.fullmatch(section) is not None and section not in RESERVED


class ShardState(NamedTuple):
    """Counts of one shard in the store, pending patches included.

    `generation` grows with every patch, `urls` is the number of listed pages, `size` the raw bytes
    of their fragments, `ordinal` the shard's position among all shards of the site, assigned once
    and never again.
    """

    generation: int
    urls: int
    size: int
    ordinal: int

    def pack(self) -> bytes:
        """The form that shared/store/pages/apply.lua reads and writes."""
        return STATE.pack(*self)

    @classmethod
    def unpack(cls, stored: bytes) -> ShardState:
        """The state that `pack` wrote."""
        return cls(*STATE.unpack(stored))


class Limits(NamedTuple):
    """Capacity of one shard: URLs, and bytes of the whole file before compression.

    A new block begins at `block_urls` or `block_size` (bytes). With `reuse`, new pages go to the
    first shard with room and not to the last: pages that come and go keep the same file names.
    """

    urls: int = DEFAULT_URLS
    size: int = MAX_BYTES
    block_urls: int = blocks.MAX_FRAGMENTS
    block_size: int = blocks.MAX_BYTES
    reuse: bool = False

    @property
    def hard(self) -> int:
        """Maximum bytes of fragments in the file."""
        return self.size - OVERHEAD

    def nearly_empty(self, state: ShardState) -> bool:
        """True if a shard lists pages, but under a quarter of its URLs and of its bytes."""
        return 0 < state.urls * 4 < self.urls and state.size * 4 < self.hard

    @property
    def soft(self) -> int:
        """Bytes of fragments up to which new pages are added."""
        return self.hard - self.hard // HEADROOM


@lru_cache(10_000)
def file_name(shard: Shard, form: str) -> str:
    """The name that the index lists; in the form `encoded` the file on disk has `.gz` added.

    The first file of a month has the month alone (`posts-2025-11.xml`, PROTOCOL F16); no configured
    section ends in a number, so no other file can have that name.
    """
    name = f"{shard.section}-{shard.number}"
    if shard.number == 1 and _MONTHLY.search(shard.section):
        name = shard.section
    return f"{name}.{'xml' if form == 'encoded' else form}"


@lru_cache(1_000)
def index_name(page: int, *, packed: bool = False) -> str:
    """The name of index file `page`, from 0; that of a gzip file if `packed`."""
    return f"sitemap{f'-{page + 1}' if page else ''}.xml{'.gz' if packed else ''}"


def packed_index(content: bytes) -> bytes:
    """The gzip file of the index file `content`."""
    return blocks.gzip_file([blocks.deflate(content)])


def on_disk(name: str, form: str) -> str:
    """The name on disk of the listed shard file `name`."""
    return f"{name}.gz" if form == "encoded" else name
