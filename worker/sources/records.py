"""What a reader gives: pages as the source states them, and what to say about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HINTS = frozenset({"changefreq", "priority"})
EXTENDED = frozenset({"images", "videos", "news", "alternates"})
STATED = frozenset({"lastmod"}) | HINTS | EXTENDED
"""What a source may say of a page besides its address and section."""


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One page; texts are trimmed of XML white space, nothing else is changed or checked.

    `where` is the source's name and the entry's 1-based number in it (`posts.xml#17`); in text
    lists and NDJSON that is the line. `extra` holds `id`, `section` and `version` where a CSV or
    NDJSON source states them, and what else an event may have where NDJSON does, else None.
    `images` to `alternates` are members of an event as a
    sitemap states them. `silent` names those of STATED that its source has no place for, so that
    their absence says nothing; with `section` in it, the one in `extra` is meant for new pages.
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
    # Not in the repr, which marks what an import has sent: a set's order changes with the process.
    silent: frozenset[str] = field(default=frozenset(), repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class RecordRefusal:
    """Something in the source that gives no page; `rule` is a PROTOCOL id or a short code.

    `loc` is the page's address as far as one is stated; of a `whole` document, that of the document
    whose pages are not known.
    """

    where: str
    rule: str
    detail: str
    loc: str | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """Something read although it breaks a rule, or left out of pages that were read.

    Notes are gathered: one per kind and file, `count` says how often, `where` is the first place.
    """

    where: str
    rule: str
    detail: str
    count: int = 1


Item = SourceRecord | RecordRefusal | Note


class SourceCounts:
    """Gathers the notes of one file, so that 50,000 equal faults are one line of a report."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._notes: dict[tuple[str, str], tuple[str, int]] = {}
        self._dropped: dict[str, int] = {}

    def add(self, rule: str, detail: str, where: str | None = None, count: int = 1) -> None:
        first, before = self._notes.get((rule, detail), (where or self._name, 0))
        self._notes[rule, detail] = (first, before + count)

    def drop(self, label: str) -> None:
        """Count one element or field that is read past; the 21st and later labels become one."""
        if label not in self._dropped and len(self._dropped) >= 20:
            label = "others"
        self._dropped[label] = self._dropped.get(label, 0) + 1

    def notes(self) -> list[Note]:
        """The notes so far, in the order in which their kinds first appeared."""
        found = [Note(at, rule, text, n) for (rule, text), (at, n) in self._notes.items()]
        if self._dropped:
            listed = ", ".join(f"{label}={n}" for label, n in sorted(self._dropped.items()))
            detail = f"left out of the pages read: {listed}"
            found.append(Note(self._name, "C0", detail, sum(self._dropped.values())))
        return found
