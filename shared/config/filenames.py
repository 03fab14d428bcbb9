"""The name of every file that sitemapd can write into a web root, in one list.

The writer refuses any other name (RELIABILITY T19, T36). nginx serves these names, and the same
patterns distinguish sitemaps in a web root from files of other programs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from shared.config.notify.engines import KEY
from shared.config.sites.outputs import OutputSettings
from shared.config.sites.site import Site
from shared.domain.routing import family_of
from shared.sitemap import feed_writer, shards

MARKER = ".sitemapd"
TEMP = ".sitemapd-"
STYLESHEET, PAGE = "sitemap.css", "sitemap.html"
ROBOTS = "robots.txt"
LOOKUP = "sitemap-lookup"
"""No file: an address beside PAGE at which the web server asks the webhook for a listed page."""

_INDEX = r"sitemap(?:-[0-9]{1,9})?\.xml(?:\.gz)?"
_FORMS = r"\.(?:xml|txt)(?:\.gz)?"


class FileKind(NamedTuple):
    """One kind of file: its meaning, the pattern of its names, `served` if visitors may read it."""

    what: str
    pattern: str
    served: bool = True


KINDS = (
    FileKind("index", _INDEX),
    # The first file of a month has no shard number, but its month ends in a number (F16).
    FileKind("shard", rf"[a-z0-9-]{{1,100}}-[0-9]{{1,10}}{_FORMS}"),
    FileKind("feed", "|".join(map(re.escape, feed_writer.NAMES))),
    FileKind("change list", "|".join(map(re.escape, shards.CHANGE_LIST_FILES))),
    FileKind("llms.txt", re.escape(shards.LLMS)),
    FileKind("index of hosts", re.escape(shards.HOSTS)),
    FileKind("visitors' page", rf"{re.escape(shards.CONTENTS)}|{shards.VISITORS_PAGE}"),
    FileKind("visitors' stylesheet", re.escape(shards.CONTENTS_STYLE)),
    FileKind("stylesheet", re.escape(STYLESHEET)),
    FileKind("page", re.escape(PAGE)),
    FileKind("robots", re.escape(ROBOTS)),
    FileKind("key", rf"{KEY.pattern}\.txt"),
    FileKind("marker", re.escape(MARKER), served=False),
    FileKind("temporary", rf"{re.escape(TEMP)}[a-z0-9-]{{1,64}}", served=False),
)

_EVERY = re.compile("|".join(f"(?:{kind.pattern})" for kind in KINDS), re.ASCII)
_INDEX_NAME = re.compile(_INDEX, re.ASCII)
_SHARD_NAME = re.compile(rf"([a-z0-9-]{{1,100}})-[0-9]{{1,10}}{_FORMS}", re.ASCII)


@lru_cache(10_000)
def possible(name: str) -> bool:
    """True if the publisher can write a file of this name."""
    return _EVERY.fullmatch(name) is not None


def index_name(site: Site, page: int) -> str:
    """The name of index file `page` of `site`, from 0: on disk and as robots.txt lists it."""
    return shards.index_name(page, packed=site.outputs.gzip_index)


def is_index(name: str) -> bool:
    """True if this is the name of an index file."""
    return _INDEX_NAME.fullmatch(name) is not None


def sitemaps(names: Iterable[str], sections: Collection[str]) -> list[str]:
    """Those of `names` that an index, or a shard of `sections` or of a part of one, can have."""
    return sorted(name for name in names if is_index(name) or _is_shard(name, sections))


def _is_shard(name: str, sections: Collection[str]) -> bool:
    found = _SHARD_NAME.fullmatch(name)
    return (
        found is not None
        and not name.startswith("sitemap-")
        and family_of(found[1], sections) in sections
    )


def served(site: Site, sections: Iterable[str] = ()) -> Iterator[str]:
    """Patterns of the names that visitors of `site` may read, without those of other programs.

    `sections` are those with files besides the configured ones. A file of an earlier form is
    served until it is removed.
    """
    if site.index:
        yield _INDEX
    for section in sorted({*site.limits, *sections}):
        split = section in site.sections and site.sections[section].split
        yield rf"{re.escape(section)}{'(?:-[a-z0-9-]+)?' if split else ''}-[0-9]+{_FORMS}"
    if site.feed:
        yield from map(re.escape, feed_writer.NAMES)
    yield from _of_outputs(site.outputs)
    if site.viewer:
        yield from map(re.escape, (STYLESHEET, PAGE))
    if site.keeps_robots:
        yield re.escape(ROBOTS)
    indexnow = site.notify.indexnow
    if indexnow is not None and indexnow.key_location is None:
        yield re.escape(f"{indexnow.key}.txt")


def _of_outputs(outputs: OutputSettings) -> Iterator[str]:
    if outputs.change_list:
        yield from map(re.escape, shards.CHANGE_LIST_FILES)
    if outputs.llms:
        yield re.escape(shards.LLMS)
    if outputs.hosts:
        yield re.escape(shards.HOSTS)
    if outputs.html:
        yield from map(re.escape, (shards.CONTENTS, shards.CONTENTS_STYLE))
        yield shards.VISITORS_PAGE
