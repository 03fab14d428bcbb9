"""ResourceSync change list of a site (ANSI/NISO Z39.99-2017), and the two files that lead to it.

Pure: changes in, finished bytes out. Only what is kept is claimed: the list is open, and begins at
`since`. The sitemap is no Resource List, so none is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from shared.errors import DateError
from shared.sitemap import fragments, shards, w3c_dates
from shared.sitemap.xml_text import escape

NAMES = shards.CHANGE_LIST_FILES
CHANGES, CAPABILITIES, SOURCE = NAMES

NAMESPACE = "http://www.openarchives.org/rs/terms/"
_START = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    f'<urlset xmlns="{fragments.NAMESPACE}" xmlns:rs="{NAMESPACE}">\n<!-- of sitemapd -->\n'
)
_END = "</urlset>\n"
_DATE = r"[0-9]{4}-[01][0-9]-[0-3][0-9](?:T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z)?"
# No look at the calendar: this is read for every change at every publish.
_STORED = re.compile(rf"([0-9]{{1,12}}) (created|updated|deleted) ((?:{_DATE})?) ([!-~]+)")
_moment = lru_cache(4_096)(w3c_dates.from_epoch_s)
_LASTMOD = re.compile(rb"<lastmod>([^<]*)</lastmod>")

Line = tuple[bytes | None, bytes | None]
"""A fragment before and after a publish; None where the page is not listed."""


class LoggedChange(NamedTuple):
    """One change of one page: `created`, `updated` or `deleted`, when it was published (s since
    1970, 0 before that is known), and the page's `lastmod` (empty: none is stated).
    """

    kind: str
    loc: str
    lastmod: str = ""
    at_s: int = 0

    def pack(self) -> str:
        """The stored form, which change_log.lua begins with the time."""
        return f"{self.kind} {self.lastmod} {self.loc}"

    @classmethod
    def unpack(cls, stored: bytes) -> LoggedChange | None:
        """The change stored with its time; None for anything else (RELIABILITY T14)."""
        found = _STORED.fullmatch(stored.decode("ascii", errors="replace"))
        if found is None:
            return None
        at, kind, lastmod, loc = found.groups()
        try:
            _moment(at_s := int(at))
        except DateError:
            return None
        return cls(kind, loc, lastmod, at_s)


def changes(lines: Iterable[Line]) -> dict[str, LoggedChange]:
    """The change of each page by the changed `lines` of all files of a publish: one that only
    leaves a file for another is no change, or an update if its line differs.
    """
    pairs: dict[str, list[bytes | None]] = {}
    for before, after in lines:
        pair = pairs.setdefault(fragments.loc_of(after or before or b""), [None, None])
        pair[0], pair[1] = before or pair[0], after or pair[1]
    return {
        loc: _change(loc, before, after)
        for loc, (before, after) in pairs.items()
        if before != after
    }


def _change(loc: str, before: bytes | None, after: bytes | None) -> LoggedChange:
    if after is None:
        return LoggedChange("deleted", loc)
    found = _LASTMOD.search(after)
    lastmod = found[1].decode() if found else ""
    return LoggedChange("updated" if before else "created", loc, lastmod)


class ResourceSyncFiles(NamedTuple):
    """URLs of the three files; `home` is the page that describes the site."""

    changes: str
    capabilities: str
    source: str
    home: str


def change_list(urls: ResourceSyncFiles, since_s: int, listed: Sequence[LoggedChange]) -> bytes:
    """Render CHANGES: all changes since `since_s` (s since 1970), oldest first."""
    parts = [
        f'<rs:ln rel="up" href="{escape(urls.capabilities)}"/>\n',
        f'<rs:md capability="changelist" from="{w3c_dates.from_epoch_s(since_s)}"/>\n',
    ]
    for each in listed:
        lastmod = f"<lastmod>{each.lastmod}</lastmod>" if each.lastmod else ""
        parts.append(
            f"<url><loc>{escape(each.loc)}</loc>{lastmod}"
            f'<rs:md change="{each.kind}" datetime="{_moment(each.at_s)}"/></url>\n'
        )
    return _file(parts)


def capability_list(urls: ResourceSyncFiles) -> bytes:
    """Render CAPABILITIES, which names the change list and nothing else."""
    text = (
        f'<rs:ln rel="describedby" href="{escape(urls.home)}"/>\n'
        f'<rs:ln rel="up" href="{escape(urls.source)}"/>\n<rs:md capability="capabilitylist"/>\n'
        f'<url><loc>{escape(urls.changes)}</loc><rs:md capability="changelist"/></url>\n'
    )
    return _file([text])


def source_description(urls: ResourceSyncFiles) -> bytes:
    """Render SOURCE, where clients begin."""
    text = (
        f'<rs:ln rel="describedby" href="{escape(urls.home)}"/>\n'
        '<rs:md capability="description"/>\n'
        f'<url><loc>{escape(urls.capabilities)}</loc><rs:md capability="capabilitylist"/></url>\n'
    )
    return _file([text])


def is_ours(content: bytes) -> bool:
    """True if `content` is one of the three files as they are made here, or the beginning of it."""
    start = _START.encode()
    return bool(content) and start.startswith(content[: len(start)])


def _file(parts: Iterable[str]) -> bytes:
    return "".join((_START, *parts, _END)).encode()
