"""Routing of pages to sections where the sender names none, and to the parts of split sections.

A configured section is a family: it may be split by month or by language, and each part is a
section of its own, with its own files (`posts-2025-11.xml`, `posts-de-1.xml`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from fnmatch import translate
from functools import lru_cache, partial
from typing import NamedTuple

from shared.domain.archive_rules import ArchiveRule
from shared.events.event import Event
from shared.sitemap import w3c_dates

DEFAULT_SECTION = "pages"
_MONTH = len("2026-11")
_FIRST = "1990-01"
_ORIGIN = re.compile(r"https?://[^/]*")


class Family(NamedTuple):
    """Rules by which one configured section takes pages.

    `split` is `month`, `language` or empty. Pages whose path matches one of `paths` or whose
    language is one of `languages` (lower case) come here if their events name no section. `news`
    marks the sections that list the news of the last 48 hours (PROTOCOL W4). A section with an
    `archive` rule takes pages of another one.
    """

    split: str = ""
    paths: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    news: bool = False
    archive: ArchiveRule | None = None


class Routing:
    """The families of one site, in the order of their evaluation."""

    def __init__(self, families: Mapping[str, Family]) -> None:
        self._families = {DEFAULT_SECTION: Family(), **families}
        self._paths = {
            name: re.compile("|".join(map(translate, family.paths)))
            for name, family in families.items()
            if family.paths
        }
        self.news = [name for name, family in families.items() if family.news]
        self._asked = [
            name for name, f in families.items() if (f.paths or f.languages) and not f.news
        ]
        self._splits = {name: family.split for name, family in families.items() if family.split}
        self.archives = {
            f.archive.of: (name, f.archive) for name, f in families.items() if f.archive
        }
        """Of each section with an archive, the name and the rule of that."""
        self._archived = {name: of for of, (name, _) in self.archives.items()}
        ruled = self.archives or self._paths or self._asked or self._splits or self.news
        self.unruled = frozenset() if ruled else frozenset(self._families)
        """Sections whose pages just name them or stay there; none if there are rules."""
        self._family_of = lru_cache(1024)(partial(family_of, families=frozenset(self._families)))

    def section(
        self, event: Event, loc: str, here: str | None, arrived_ms: int, now_ms: int = 0
    ) -> str:
        """The section of the page at `loc` after `event`; `here` is its present one, None: none.

        Archive rules are those of the time `now_ms` (since 1970).

        A page stays in the month it was listed in unless its event states the publication; else the
        month is that of its lastmod, else that of the arrival (`arrived_ms`, ms since 1970).
        """
        family = event.section
        if family is None or family in self.news:
            family = self._family_of(here) if here else self._claimed(event, loc)
            family = self._archived.get(family, family)
        if family in self.archives:
            archive, rule = self.archives[family]
            family = archive if rule.takes(event, now_ms) else family
        split = self._splits.get(family)
        if split is None:
            return family
        stays = here if here and self._family_of(here) == family else None
        if split == "month":
            return self._month(event, family, stays, arrived_ms)
        return _language(event, family, stays)

    def news_section(self, event: Event) -> str | None:
        """The section that lists `event` as news: the one it names, else the first that fits; None
        if the site has no news section.
        """
        if event.section in self.news:
            return event.section
        code = _base(event.news["publication"]["language"]) if event.news else ""
        for name in self.news:
            if code in map(_base, self._families[name].languages):
                return name
        plain = (name for name in self.news if not self._families[name].languages)
        return next(plain, self.news[0] if self.news else None)

    def _claimed(self, event: Event, loc: str) -> str:
        """The first family whose rules match the page, else `pages`."""
        if not self._asked:
            return DEFAULT_SECTION
        path = _ORIGIN.sub("", loc, count=1)
        codes = {code.lower() for code in event.lang}
        for name in self._asked:
            if name in self._paths and self._paths[name].match(path):
                return name
            if codes & set(self._families[name].languages):
                return name
        return DEFAULT_SECTION

    @staticmethod
    def _month(event: Event, family: str, stays: str | None, arrived_ms: int) -> str:
        if event.published is None and stays is not None:
            return stays
        arrived = w3c_dates.from_epoch_s(arrived_ms // 1000)
        told = event.published or event.lastmod or arrived
        # A date in the future or before the web is a mistake and must not create a file.
        return f"{family}-{min(max(told, _FIRST), arrived)[:_MONTH]}"


def _language(event: Event, family: str, stays: str | None) -> str:
    code = next((code for code in event.lang if code != "x-default"), None)
    if code is None:
        return stays or family
    return f"{family}-{code.lower()}"


def _base(code: str) -> str:
    return code.lower().partition("-")[0]


def family_of(section: str, families: Collection[str]) -> str:
    """The configured family of `section`; `section` itself if it is a family, or part of none."""
    name = section
    while name not in families:
        name, dash, _ = name.rpartition("-")
        if not dash:
            return section
    return name
