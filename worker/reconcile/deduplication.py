"""Deduplication of a source: one statement from all statements of one page (PROTOCOL L10).

Images and videos are united, and so are alternates that do not contradict each other; the newest
date and the newest article win. Where no rule decides between several values, none is taken, and
this is reported. The order of the statements does not affect the result.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from shared.events.event import Event
from shared.events.event_fields import MOST_BYTES
from shared.events.extension_fields import MAX_LANGS
from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from shared.sitemap.extensions import alternates, images, videos
from shared.sitemap.extensions.languages import X_DEFAULT

_SINGLE = (
    "section", "changefreq", "priority", "title", "id", "group", "publish_at", "expires",
)  # fmt: skip
_UNITED = {"images": images, "videos": videos}
_RULES = {"changefreq": "M8", "priority": "M8", "group": "H2", "images": "I1", "videos": "V11"}
_LISTS = ("videos", "images", "alternates")
_SLACK = 10
"""Multiple of the allowed items that is kept in memory before the last are discarded."""


class Statement(NamedTuple):
    """A statement of a source about one page, at `where`; `silent` as in a SourceRecord."""

    event: Event
    where: str
    silent: frozenset[str]


class Dropped(NamedTuple):
    """A value that was not taken, and the rule that excludes it."""

    rule: str
    detail: str


class Deduplication:
    """Collects the statements of one page; an entry may take `most_bytes`.

    Only the statements of the newest version count; those without one have `began_ms` (ms since
    1970).
    """

    def __init__(self, began_ms: int, most_bytes: int) -> None:
        self._began_ms, self._most_bytes = began_ms, min(most_bytes, MOST_BYTES)
        self._version = -1
        self._newest: _Gathered | None = None
        self.count = 0

    def add(self, said: Statement) -> None:
        """Add a statement of the page."""
        self.count += 1
        version = self._began_ms if said.event.version is None else said.event.version
        if version > self._version or self._newest is None:
            self._version, self._newest = version, _Gathered(said)
        if version == self._version:
            self._newest.add(said)

    def result(self) -> tuple[Statement, list[Dropped]]:
        """Return the united statement of the page, and the values that are not in it.

        Requires at least one `add`.
        """
        assert self._newest is not None
        whole, dropped = self._newest.result()
        event, cut = _within(whole.event, self._most_bytes) if dropped else (whole.event, [])
        return whole._replace(event=event), [*dropped, *cut]


class _Gathered:
    """All statements of one version."""

    def __init__(self, first: Statement) -> None:
        self._first, self._silent, self._count = first, first.silent, 0
        self._differs = False
        self._values: dict[str, set[str]] = {name: set() for name in _SINGLE}
        self._lastmod = self._published = ""
        self._langs: set[str] = set()
        self._news: list[str] = []
        self._links: dict[str, set[str]] = {}
        self._united = {name: _United(module.MAX) for name, module in _UNITED.items()}

    def add(self, said: Statement) -> None:
        event = said.event
        self._count += 1
        self._silent &= said.silent
        self._differs = self._differs or event != self._first.event
        for name, values in self._values.items():
            value = getattr(event, name)
            if value is not None and len(values) < 2:
                values.add(value)
        # Canonical dates and times sort as text.
        self._lastmod = max(self._lastmod, event.lastmod or "")
        self._published = min(filter(None, (self._published, event.published)), default="")
        self._langs.update(event.lang)
        if event.news is not None:
            self._news = sorted({*self._news, _text(event.news)}, key=_newest)[-2:]
        for code, href in event.alternates:
            hrefs = self._links.setdefault(code, set())
            if len(hrefs) < 2:
                hrefs.add(href)
        for name, united in self._united.items():
            united.add(getattr(event, name))

    def result(self) -> tuple[Statement, list[Dropped]]:
        if not self._differs:
            return self._first._replace(silent=self._silent), []
        dropped = [Dropped("L10", f"stated {self._count} times in different words: united")]
        members: dict[str, Any] = dict(self._certain(dropped))
        members |= {"lastmod": self._lastmod or None, "published": self._published or None}
        members["alternates"] = self._alternates(dropped)
        members["lang"] = ()
        if members["group"] is not None:
            members["lang"] = tuple(sorted(self._langs, key=lambda c: (c == X_DEFAULT, c)))[
                :MAX_LANGS
            ]
            if members["alternates"]:
                dropped.append(Dropped("H2", "alternates left out: the page is in a group"))
                members["alternates"] = ()
        if len(self._news) > 1:
            dropped.append(Dropped("W3", "news left out: of several articles the newest was taken"))
        members["news"] = json.loads(self._news[-1]) if self._news else None
        for name, united in self._united.items():
            members[name], over = united.kept()
            if over:
                said = f"{over} {name} left out: at most {united.most} are allowed"
                dropped.append(Dropped(_RULES[name], said))
        event = replace(self._first.event, **members)
        return Statement(event, self._first.where, self._silent), dropped

    def _certain(self, dropped: list[Dropped]) -> Iterator[tuple[str, str | None]]:
        """Yield each single-valued member: its value if no other is stated."""
        for name, values in self._values.items():
            if len(values) > 1:
                said = f"several {name} that differ: none was taken"
                dropped.append(Dropped(_RULES.get(name, "L10"), said))
            yield name, next(iter(values)) if len(values) == 1 else None

    def _alternates(self, dropped: list[Dropped]) -> Sequence[tuple[str, str]]:
        torn = sorted(code for code, hrefs in self._links.items() if len(hrefs) > 1)
        if torn:
            said = f"alternates left out: {', '.join(torn[:10])} with several addresses"
            dropped.append(Dropped("H5", said))
        pairs = [(code, *hrefs) for code, hrefs in self._links.items() if len(hrefs) == 1]
        whole = alternates.ordered((code, href) for code, href in pairs)
        if len(whole) > alternates.MAX:
            said = f"{len(whole) - alternates.MAX} alternates left out: at most {alternates.MAX}"
            dropped.append(Dropped("H2", said))
        return whole[: alternates.MAX]


class _United:
    """The distinct items of several lists, ordered by their best place in one of them."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._places: dict[str, int] = {}
        self._let_go = 0

    def add(self, items: Sequence[Mapping[str, Any]]) -> None:
        for place, item in enumerate(items):
            text = _text(item)
            self._places[text] = min(place, self._places.get(text, place))
        if len(self._places) > self.most * _SLACK:
            before = len(self._places)
            self._places = dict(self._sorted()[: self.most])
            self._let_go += before - len(self._places)

    def kept(self) -> tuple[tuple[Mapping[str, Any], ...], int]:
        """Return the first items, and the number of those left out."""
        ranked = self._sorted()
        kept = tuple(json.loads(text) for text, _ in ranked[: self.most])
        return kept, len(ranked) - len(kept) + self._let_go

    def _sorted(self) -> list[tuple[str, int]]:
        return sorted(self._places.items(), key=lambda each: (each[1], each[0]))


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _newest(article: str) -> tuple[str, str]:
    return json.loads(article)["publication_date"], article


def _within(event: Event, most: int) -> tuple[Event, list[Dropped]]:
    """Return `event` with as many items as its entry has room for (PROTOCOL F7)."""
    dropped = []
    for name in _LISTS:
        over = _size(event) - most
        items = getattr(event, name)
        if over <= 0 or not items:
            continue
        kept = len(items)
        while kept and over > 0:
            kept -= 1
            over -= _size(Event("upsert", "", **{name: items[kept : kept + 1]})) - _EMPTY
        said = f"{len(items) - kept} {name} left out: the page may take {most} bytes"
        dropped.append(Dropped("F7", said))
        event = replace(event, **{name: items[:kept]})
    return event, dropped


def _size(event: Event) -> int:
    return len(
        fragments.render(
            Entry(
                event.loc or "", event.lastmod, event.changefreq, event.priority, event.images,
                event.videos, event.news, event.alternates,
            )
        )
    )  # fmt: skip


_EMPTY = _size(Event("upsert", ""))
