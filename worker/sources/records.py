"""Items of a source: pages as the source states them, refusals and notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HINTS = frozenset({"changefreq", "priority"})
EXTENDED = frozenset({"images", "videos", "news", "alternates"})
STATED = frozenset({"lastmod"}) | HINTS | EXTENDED
"""Fields of a page that a source may state besides its address and section."""

PARTIAL = "partial"
"""Rule of a note: the source never names all pages (a feed, a crawl). That it does not name a page
proves nothing."""


@dataclass(slots=True)  # not frozen: to set each field of a frozen one takes most of reading it
class SourceRecord:
    """One page; texts are trimmed of XML white space and otherwise unchanged and unchecked.

    `where` is the source's name and the entry's 1-based number in it (`posts.xml#17`); in text
    lists and NDJSON the line. `extra` holds `id`, `section` and `version` if a CSV or NDJSON source
    states them, further event fields of NDJSON, else None. `images` to `alternates` are event
    fields as a sitemap states them. `silent` names the STATED fields that the source format cannot
    express, so that their absence means nothing; with `section` in it, the one in `extra` applies
    to new pages only. `owner` is the source, kind and locale within which the id in `extra` is
    unique, as in an event of that sender; None: the id is of the native interface.
    """

    loc: str
    where: str
    lastmod: str | None = None
    changefreq: str | None = None
    priority: str | None = None
    extra: Mapping[str, Any] | None = None
    images: Sequence[Mapping[str, Any]] = ()
    videos: Sequence[Mapping[str, Any]] = ()
    news: Mapping[str, Any] | None = None
    alternates: Sequence[Mapping[str, str]] = ()
    owner: tuple[str, str, str] | None = None
    # Not in the repr, which identifies what an import has sent: the order of a set varies.
    silent: frozenset[str] = field(default=frozenset(), repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class RecordRefusal:
    """A part of the source that gives no page; `rule` is a PROTOCOL id or a short code.

    `loc` is the page's address if one is stated; for a `whole` document, the address of the
    document whose pages are unknown.
    """

    where: str
    rule: str
    detail: str
    loc: str | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """Content that was read although it breaks a rule, or that was left out of pages.

    Notes are aggregated: one per kind and file, with the `count` and the first place in `where`.
    """

    where: str
    rule: str
    detail: str
    count: int = 1


Item = SourceRecord | RecordRefusal | Note


class SourceCounts:
    """Aggregates the notes of one file, so that 50,000 equal faults are one line of a report."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._notes: dict[tuple[str, str], tuple[str, int]] = {}
        self._dropped: dict[str, int] = {}

    def add(self, rule: str, detail: str, where: str | None = None, count: int = 1) -> None:
        first, before = self._notes.get((rule, detail), (where or self._name, 0))
        self._notes[rule, detail] = (first, before + count)

    def drop(self, label: str) -> None:
        """Count one ignored element or field; the 21st and later labels are merged."""
        if label not in self._dropped and len(self._dropped) >= 20:
            label = "others"
        self._dropped[label] = self._dropped.get(label, 0) + 1

    def notes(self) -> list[Note]:
        """Return the notes so far, in the order in which their kinds first appeared."""
        found = [Note(at, rule, text, n) for (rule, text), (at, n) in self._notes.items()]
        if self._dropped:
            listed = ", ".join(f"{label}={n}" for label, n in sorted(self._dropped.items()))
            detail = f"left out of the pages read: {listed}"
            found.append(Note(self._name, "C0", detail, sum(self._dropped.values())))
        return found
