"""What a site has to list and feed, from all events that were ever accepted: as plain as can be.

Written apart from the product: it imports nothing of it. It knows no batches and no order of work;
of each page the newest event counts, and a translation group is what the listed pages say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from lxml import etree

HOUR = 3_600_000
ALWAYS, NEVER = "1970-01-01T00:00:00Z", "9999-01-01T00:00:00Z"
SITE = "https://www.example.com/"
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
LINK = "{http://www.w3.org/1999/xhtml}link"
IMAGE = "{http://www.google.com/schemas/sitemap-image/1.1}"
VIDEO = "{http://www.google.com/schemas/sitemap-video/1.1}"
NEWS = "{http://www.google.com/schemas/sitemap-news/0.9}"
LANGUAGES_OF_NEWS = {"nachrichten": "de", "news": ""}

Event = Mapping[str, Any]


class Accepted(NamedTuple):
    """One event, and when it was accepted: milliseconds and sequence."""

    event: Event
    ms: int
    sequence: int

    @property
    def stamp(self) -> tuple[int, int]:
        """Later events have greater ones: by version, then by arrival."""
        version = self.event.get("version")
        if version is None:
            return self.ms, self.sequence
        return version, min(max(self.ms - version, 0), 0xFFFF)


class Entry(NamedTuple):
    """One `<url>`: addresses of links by code and of images, titles of videos and of the news."""

    lastmod: str | None
    links: tuple[tuple[str, str], ...]
    images: tuple[str, ...]
    videos: tuple[str, ...]
    news: str | None


class Fed(NamedTuple):
    """One page of the feeds."""

    loc: str
    title: str
    updated: str


def newest(accepted: Iterable[Accepted], now_ms: int) -> dict[str, Accepted]:
    """The listed pages, each with the event that made it what it is."""
    last: dict[str, Accepted] = {}
    for one in accepted:
        page = f"id {one.event['id']}" if "id" in one.event else one.event["loc"]
        if page not in last or one.stamp >= last[page].stamp:
            last[page] = one
    return {one.event["loc"]: one for one in last.values() if _is_listed(one.event, now_ms)}


def _is_listed(event: Event, now_ms: int) -> bool:
    if _ms(event.get("publish_at", ALWAYS)) > now_ms or _ms(event.get("expires", NEVER)) <= now_ms:
        return False
    stays = event["type"] == "upsert" and not event.get("noindex")
    return stays and event.get("canonical", event.get("loc")) == event.get("loc")


def entries(accepted: Iterable[Accepted], now_ms: int) -> dict[tuple[str, str], Entry]:
    """What is listed, by section and address."""
    pages = newest(accepted, now_ms)
    found = {}
    for loc, one in pages.items():
        event = one.event
        links = _group(pages, event["group"]) if event.get("group") else _stated(event)
        if event.get("group") and loc not in links.values():
            links = {}
        images = tuple(image["loc"] for image in event.get("images", ()))
        found[_section(event), loc] = Entry(
            event.get("lastmod"), tuple(sorted(links.items())), images,
            tuple(
                video["title"] for video in event.get("videos", ())
                if _ms(video.get("expiration_date", NEVER)) > now_ms
            ),
            None,
        )  # fmt: skip
        news = event.get("news")
        if news and 0 <= now_ms - _ms(news["publication_date"]) < 48 * HOUR:
            entry = Entry(event.get("lastmod"), (), images, (), news["title"])
            found[_news_section(event), loc] = entry
    return found


def _group(pages: Mapping[str, Accepted], group: str) -> dict[str, str]:
    """code -> address: of two pages that claim one code the later event counts."""
    best: dict[str, tuple[tuple[int, int], str]] = {}
    for loc, one in pages.items():
        for code in one.event["lang"] if one.event.get("group") == group else ():
            best[code] = max(best.get(code, ((0, 0), "")), (one.stamp, loc))
    return {code: loc for code, (_, loc) in best.items()} if len(best) > 1 else {}


def _stated(event: Event) -> dict[str, str]:
    return {link["hreflang"]: link["href"] for link in event.get("alternates", ())}


def _section(event: Event) -> str:
    named = event.get("section")
    if named is None or named in LANGUAGES_OF_NEWS:
        return "posts" if event["loc"].startswith(f"{SITE}q/") else "pages"
    if named == "articles":
        return f"articles-{min(code for code in event['lang'] if code != 'x-default').lower()}"
    return str(named)


def _news_section(event: Event) -> str:
    if event.get("section") in LANGUAGES_OF_NEWS:
        return str(event["section"])
    language = event["news"]["publication"]["language"]
    return next((name for name, of in LANGUAGES_OF_NEWS.items() if of == language), "news")


def feed(accepted: Iterable[Accepted], now_ms: int) -> list[Fed]:
    """What the feeds list, the newest first."""
    found = []
    for loc, one in newest(accepted, now_ms).items():
        event, updated = one.event, one.stamp[0]
        if "T" in event.get("lastmod", ""):
            updated = _ms(event["lastmod"])
        title = event.get("title") or event.get("news", {}).get("title") or loc
        appears = _ms(event.get("publish_at", ALWAYS))
        found.append((max(min(updated, max(one.ms, appears)), appears), loc, title))
    return [Fed(loc, title, _w3c(ms)) for ms, loc, title in sorted(found, reverse=True)]


def _ms(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp()) * 1000


def _w3c(ms: int) -> str:
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read(files: Mapping[str, bytes]) -> dict[tuple[str, str], Entry]:
    """What shard files list, by section and address; a page is in one file of a section."""
    found: dict[tuple[str, str], Entry] = {}
    for name, content in files.items():
        section = re.sub(r"-\d+$", "", name)
        for url in etree.fromstring(content):
            key = section, url.findtext(f"{SITEMAP}loc")
            assert key not in found, f"{key} is listed twice"
            found[key] = Entry(
                url.findtext(f"{SITEMAP}lastmod"),
                tuple(sorted((a.get("hreflang"), a.get("href")) for a in url.iter(LINK))),
                tuple(each.text for each in url.iter(f"{IMAGE}loc")),
                tuple(each.text for each in url.iter(f"{VIDEO}title")),
                next((each.text for each in url.iter(f"{NEWS}title")), None),
            )
    return found
