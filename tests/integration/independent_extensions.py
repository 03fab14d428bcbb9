"""Images, videos, news and languages of a sitemap, read without any code of ours.

Read by expat from the source and from what is published alike, and brought into one form by the
rules of PROTOCOL: then both have to be equal, leaf by leaf.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.integration import independent
from tests.integration.independent import NS, Published, Said

IMAGE = "http://www.google.com/schemas/sitemap-image/1.1"
VIDEO = "http://www.google.com/schemas/sitemap-video/1.1"
NEWS = "http://www.google.com/schemas/sitemap-news/0.9"
LINK = "{http://www.w3.org/1999/xhtml}link"
OLD = {
    IMAGE: ("I2", {"caption", "geo_location", "title", "license"}),
    VIDEO: ("V9", {"category", "gallery_loc", "price", "tvshow", "allow_embed", "autoplay"}),
    NEWS: ("W9", {"access", "genres", "keywords", "stock_tickers"}),
}

Item = tuple[tuple[str, str], ...]
"""Each leaf of an image, a video or an article: its path and its text, sorted."""


class Extras(NamedTuple):
    """What extends one page; links by code."""

    links: tuple[tuple[str, str], ...] = ()
    images: tuple[Item, ...] = ()
    videos: tuple[Item, ...] = ()
    news: tuple[Item, ...] = ()


@dataclass
class Stated:
    """What a source says beside its pages.

    `noted` is what must be reported of the file, `broken` of its entries, if they are taken.
    """

    pages: dict[int, Extras] = field(default_factory=dict)
    noted: Said = field(default_factory=Counter)
    broken: Said = field(default_factory=Counter)

    @property
    def dates(self) -> dict[int, str]:
        """The publication of each article, by the number of its entry."""
        articles = {number: dict(of.news[0]) for number, of in self.pages.items() if of.news}
        return {number: article["/publication_date"] for number, article in articles.items()}


def stated(path: Path) -> Stated:
    """What a well-formed sitemap states of each entry, by its number from 1."""
    root = ET.fromstring(independent.text_of(path).encode())
    own = root.tag.rpartition("}")[0] + "}"
    found, old = Stated(), dict[tuple[str, str], list[int]]()
    for number, url in enumerate(root, 1):
        others = [child for child in url if not child.tag.startswith(own)]
        sound = [child for child in others if _space(child) in OLD or child.tag == LINK]
        if len(others) > len(sound):
            found.noted[path.name, "C0"] += len(others) - len(sound)
        for child in sound:
            rule, names = OLD.get(_space(child), ("", set()))
            for name in _names(child):
                if name in names:
                    old.setdefault((rule, name), []).append(number)
        broken = [child for child in sound if child.tag == f"{{{IMAGE}}}image" and _unsafe(child)]
        for child in broken:
            found.broken[f"{path.name}#{number}", _unsafe(child)] += 1
        found.pages[number] = _extras([child for child in sound if child not in broken])
    for (rule, _), places in old.items():
        found.noted[path.name, rule] += len(places)
    return found


def union(several: list[Extras]) -> Extras:
    """Every link, image and video of several entries for one page, once, in the first's order."""
    if len(several) == 1:
        return several[0]
    news = [of.news for of in several if of.news]
    found = {
        name: tuple(dict.fromkeys(item for of in several for item in getattr(of, name)))
        for name in ("links", "images", "videos")
    }
    codes = Counter(code for code, _ in found["links"])
    links = tuple(sorted(link for link in found["links"] if codes[link[0]] == 1))
    return Extras(links, found["images"], found["videos"], news[0] if news else ())


def published(site: Published) -> tuple[dict[str, Extras], dict[str, Extras]]:
    """What is listed beside the pages, and in the files for news, by loc."""
    return _listed(site, site.pages), _listed(site, site.news)


def _listed(site: Published, shards: dict[str, object]) -> dict[str, Extras]:
    found = {}
    for shard in shards:
        for url in ET.fromstring(site.content(shard)):
            others = [child for child in url if _space(child) != NS]
            assert not any(name in OLD[_space(child)][1] for child in others if child.tag != LINK
                           for name in _names(child))  # fmt: skip
            found[url.findtext(f"{{{NS}}}loc", "")] = _extras(others)
    return found


def _extras(elements: list[ET.Element]) -> Extras:
    links = [(_code(e.get("hreflang", "")), _absolute(e.get("href", ""))) for e in elements
             if e.tag == LINK]  # fmt: skip
    items = [
        tuple(tuple(sorted(_leaves(e, ""))) for e in elements if _space(e) == space)
        for space in (IMAGE, VIDEO, NEWS)
    ]
    return Extras(tuple(sorted(links)), *items)


def _leaves(element: ET.Element, path: str) -> Iterator[tuple[str, str]]:
    old = OLD[_space(element)][1]
    for name, value in element.attrib.items():
        if name not in old:
            yield f"{path}@{name}", value
    if not len(element):
        yield path, _text(element)
    for child in element:
        name = child.tag.rpartition("}")[2]
        if name not in old:
            yield from _leaves(child, f"{path}/{name}")


def _text(element: ET.Element) -> str:
    name, text = element.tag.rpartition("}")[2], " ".join((element.text or "").split())
    if name.endswith("loc"):
        return _absolute(text)
    if name.endswith("date"):
        return independent.moment(text) or ""
    return text


def _absolute(text: str) -> str:
    found, broken = independent.address(text)
    assert found, (text, broken)
    return found


def _unsafe(image: ET.Element) -> str:
    """The rule that the address of an image breaks."""
    text = (image.findtext(f"{{{IMAGE}}}loc") or "").strip()
    return independent.address(text)[1]


def _code(text: str) -> str:
    if text.lower() == "x-default":
        return "x-default"
    language, *rest = re.split("-", text)
    return "-".join([language.lower(), *(r.title() if len(r) == 4 else r.upper() for r in rest)])


def _names(element: ET.Element) -> list[str]:
    below = [each for each in element.iter() if each is not element]
    return [e.tag.rpartition("}")[2] for e in below] + [n for e in below for n in e.attrib]


def _space(element: ET.Element) -> str:
    return element.tag.rpartition("}")[0].removeprefix("{")
