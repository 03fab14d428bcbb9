"""What a sitemap says and what a web root publishes, read and judged without any code of ours.

Strict XML is read by expat, malformed XML by regular expressions, feeds by feedparser; the rules
are a second, small statement of PROTOCOL. Nothing here imports the application.
"""

from __future__ import annotations

import gzip
import re
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import feedparser

NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
FIELDS = ("loc", "lastmod", "changefreq", "priority")
SPACE = " \t\r\n"


class Page(NamedTuple):
    """One listed page; `priority` as a number, so that `1` and `1.0` are the same."""

    loc: str
    lastmod: str | None = None
    changefreq: str | None = None
    priority: Decimal | None = None


class Raw(NamedTuple):
    """One entry as its file states it; `number` is its place in the file, from 1."""

    number: int
    loc: str | None
    lastmod: str | None = None
    changefreq: str | None = None
    priority: str | None = None


Said = Counter[tuple[str, str]]
"""How often something is said of a place (`file#entry`), by rule."""


@dataclass
class Expected:
    """What must be published, and what an import must say of everything else."""

    pages: dict[str, Page] = field(default_factory=dict)
    stated: dict[str, list[tuple[str, Page]]] = field(default_factory=dict)
    refused: Said = field(default_factory=Counter)
    noted: Said = field(default_factory=Counter)


def text_of(path: Path) -> str:
    data = path.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return data.decode("utf-8-sig")


def raw_pages(path: Path, *, well_formed: bool) -> list[Raw]:
    """Every entry of a sitemap, text list or feed, in its order."""
    text = text_of(path)
    if path.suffix == ".txt":
        lines = ((n, line.strip(SPACE)) for n, line in enumerate(text.split("\n"), 1))
        return [Raw(n, line) for n, line in lines if line]
    if path.name.startswith("feed-"):
        return list(_feed(text))
    return list(_strict(text) if well_formed else _lenient(text))


def _strict(text: str) -> Iterator[Raw]:
    for number, element in enumerate(ET.fromstring(text.encode()), 1):
        space = element.tag.rpartition("}")[0]
        values = {name: element.findtext(f"{space}}}{name}") for name in FIELDS}
        yield Raw(number, **{name: text and text.strip(SPACE) for name, text in values.items()})


def _lenient(text: str) -> Iterator[Raw]:
    pieces = re.split(r"<url>", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))
    for number, piece in enumerate(pieces[1:], 1):
        values = {name: _between(piece, name) for name in FIELDS}
        yield Raw(number, **values)


def _between(piece: str, name: str) -> str | None:
    found = re.search(rf"<{name}>(.*?)</{name}>", piece, re.DOTALL)
    if found is None:
        return None
    text = found[1].strip(SPACE)
    for entity, character in (("lt", "<"), ("gt", ">"), ("quot", '"'), ("apos", "'"), ("amp", "&")):
        text = text.replace(f"&{entity};", character)
    return text


def _feed(text: str) -> Iterator[Raw]:
    for number, entry in enumerate(feedparser.parse(text.encode()).entries, 1):
        parsed = entry.get("updated_parsed" if "updated" in entry else "published_parsed")
        when = parsed and time.strftime("%Y-%m-%dT%H:%M:%SZ", parsed)
        yield Raw(number, entry.link, when)


def likely_origin(raws: list[Raw]) -> str:
    """Scheme, host and port that most of the addresses have."""
    parts = [urlsplit(raw.loc) for raw in raws if raw.loc and raw.loc.startswith("http")]
    origins = Counter(f"{part.scheme}://{part.netloc}" for part in parts)
    return origins.most_common(1)[0][0] if origins else "https://www.example.com"


def judge(name: str, raws: list[Raw], origin: str, now: datetime) -> Expected:
    """What an import of `raws` into the site at `origin` must lead to; of one page that is stated
    several times, all that does not contradict itself.
    """
    expected = Expected()
    for raw in raws:
        where = f"{name}#{raw.number}"
        loc, broken = address(raw.loc, origin)
        if broken or loc is None:
            expected.refused[where, broken] += 1
            continue
        lastmod = raw.lastmod and moment(raw.lastmod)
        changefreq = raw.changefreq and frequency(raw.changefreq)
        priority = weight(raw.priority) if raw.priority else None
        wrong = (raw.lastmod and not lastmod, raw.changefreq and not changefreq)
        late = lastmod and lastmod > now.strftime("%Y-%m-%dT%H:%M:%SZ")[: len(lastmod)]
        unweighed = raw.priority and priority is None
        faults = zip(("M1", "M8", "M8", "M5"), (*wrong, unweighed, late), strict=True)
        expected.noted.update((where, rule) for rule, fault in faults if fault)
        when = None if late else lastmod or None
        page = Page(loc, when, changefreq or None, priority)
        expected.stated.setdefault(loc, []).append((where, page))
    for loc, places in expected.stated.items():
        expected.pages[loc] = union(places, expected.noted)
    return expected


def union(places: list[tuple[str, Page]], noted: Said) -> Page:
    """One page of what is stated of it in several places: the newest date, and certain hints."""
    found = []
    for name in ("changefreq", "priority"):
        values = {value for _, page in places if (value := getattr(page, name)) is not None}
        noted[places[0][0], "M8"] += len(values) > 1
        found.append(values.pop() if len(values) == 1 else None)
    dates = [page.lastmod for _, page in places if page.lastmod]
    return Page(places[0][1].loc, max(dates, default=None), *found)


def address(text: str | None, origin: str | None = None) -> tuple[str | None, str]:
    """The address as it must be listed, or the rule it breaks (PROTOCOL L1-L5, F4, F13).

    Without an `origin` that of any site.
    """
    if not text:
        return None, "F13"
    if re.search(r"[\x00-\x1f\x7f-\x9f\\]", text):
        return None, "L3"
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None, "L1"
    if parts.username is not None:
        return None, "L4"
    if re.search(r"%(?![0-9a-fA-F]{2})", parts.path + parts.query):
        return None, "L3"
    if re.search(r"/(\.|%2e){1,2}(/|$)", parts.path, re.IGNORECASE):
        return None, "L3"
    host = parts.hostname.encode("idna").decode()
    default = {"http": 80, "https": 443}[parts.scheme]
    port = "" if parts.port in (None, default) else f":{parts.port}"
    here = f"{parts.scheme}://{host}{port}"
    if here != (origin or here):
        return None, "L5"
    rest = (parts.path or "/") + ("?" + parts.query if "?" in text.split("#")[0] else "")
    escaped = quote(rest, safe="%/?:@!$&'()*+,;=-._~")
    loc = here + re.sub(r"%..", lambda found: found[0].upper(), escaped)
    return (loc, "") if len(loc) < 2048 else (None, "L2")


def moment(text: str) -> str | None:
    """A date as it is, a time in UTC to the second, None for what is neither (PROTOCOL M1)."""
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            return date.fromisoformat(text).isoformat()
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)", text):
            return None
        when = datetime.fromisoformat(re.sub(r"\.\d+", "", text))
        return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return None


def frequency(text: str) -> str | None:
    known = ("always", "hourly", "daily", "weekly", "monthly", "yearly", "never")
    return text if text in known else None


def weight(text: str) -> Decimal | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if 0 <= value <= 1 else None


class Published:
    """A web root as a crawler finds it: robots.txt, then indexes, then the files they list."""

    def __init__(self, root: Path, origin: str) -> None:
        self.origin = origin
        self._root, self._base = root, origin + "/"
        robots = (root / "robots.txt").read_text() if (root / "robots.txt").exists() else ""
        self.indexes = re.findall(r"(?mi)^sitemap:[ \t]*(\S+)\r?$", robots)
        self.shards = [loc for index in self.indexes for loc in self._listed(index)]
        listed = {shard: list(self._pages(shard)) for shard in self.shards}
        news = {shard for shard in self.shards if b"<news:news>" in self.content(shard)}
        self.pages = {shard: of for shard, of in listed.items() if shard not in news}
        self.news = {shard: of for shard, of in listed.items() if shard in news}
        """The files that list, as news, pages that another file lists as pages."""

    def content(self, url: str) -> bytes:
        """The uncompressed bytes behind `url`; a web server finds `.xml` as `.xml.gz` too."""
        assert url.startswith(self._base)
        name = url.removeprefix(self._base)
        path = next(p for end in ("", ".gz") if (p := self._root / (name + end)).exists())
        data = path.read_bytes()
        assert (data[:2] == b"\x1f\x8b") == (path.suffix == ".gz")
        return gzip.decompress(data) if path.suffix == ".gz" else data

    def all(self) -> dict[str, Page]:
        """Every page by its loc; a page listed twice is a failure (PROTOCOL L10)."""
        pages = [page for listed in self.pages.values() for page in listed]
        found = {page.loc: page for page in pages}
        assert len(pages) == len(found)
        return found

    def _listed(self, index: str) -> Iterator[str]:
        root = ET.fromstring(self.content(index))
        assert root.tag == f"{{{NS}}}sitemapindex"
        for child in root:
            assert moment(child.findtext(f"{{{NS}}}lastmod", "")) is not None
            yield child.findtext(f"{{{NS}}}loc", "")

    def _pages(self, shard: str) -> Iterator[Page]:
        root = ET.fromstring(self.content(shard))
        assert root.tag == f"{{{NS}}}urlset"
        for child in root:
            values = [child.findtext(f"{{{NS}}}{name}") for name in FIELDS]
            tags = [grandchild.tag for grandchild in child]
            core = [f"{{{NS}}}{n}" for n, v in zip(FIELDS, values, strict=True) if v is not None]
            assert tags[: len(core)] == core
            assert not any(tag.startswith(f"{{{NS}}}") for tag in tags[len(core) :])
            loc, lastmod, changefreq, priority = values
            assert loc
            yield Page(loc, lastmod, changefreq, None if priority is None else Decimal(priority))
