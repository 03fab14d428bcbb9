"""What must hold once everything is quiet: RELIABILITY 3, (a) to (g), and groups and expiry."""

from __future__ import annotations

import functools
import gzip
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from lxml import etree

from tests.faults.deployment import ROBOTS, Deployment
from tests.faults.ledger import Ledger, Sent
from tests.faults.watcher import NS, seconds_of

SCHEMAS = Path(__file__).resolve().parents[1] / "schema"
MOST_URLS, MOST_BYTES = 50_000, 52_428_800
BEGIN, END = b"# BEGIN sitemapd", b"# END sitemapd"
LINK = "{http://www.w3.org/1999/xhtml}link"
VIDEO = "{http://www.google.com/schemas/sitemap-video/1.1}video"
LATE_S, EARLY_S = 15, 3
"""How long after its time news or a video may still be listed, how long before it may be gone."""


@functools.cache
def _rules(schema: str) -> etree.RelaxNG:
    return etree.RelaxNG(etree.parse(SCHEMAS / f"{schema}.rng"))


class Page(NamedTuple):
    """What a file says of one page: `links` is the set it lists, of (hreflang, href)."""

    lastmod: str | None
    links: frozenset[tuple[str, str]]
    videos: int


class Files:
    """The files of a web root as a crawler finds them: from index to shard to page."""

    def __init__(self, root: Path) -> None:
        self.pages: dict[str, Page] = {}
        self.news: dict[str, str | None] = {}
        self.wrong: list[str] = []
        self._root = root
        self._named: set[str] = set()
        for path in sorted(root.glob("sitemap*.xml")):
            self._named.add(path.name)
            self._index(path)

    def _index(self, path: Path) -> None:
        for line in self._parsed(path, "sitemapindex"):
            loc, lastmod = str(line.findtext(f"{NS}loc")), str(line.findtext(f"{NS}lastmod"))
            name = Path(urlsplit(loc).path).name
            shard = self._root / name
            if not shard.exists():
                shard = shard.with_name(name + ".gz")  # the form `encoded`
            if not shard.exists():
                self.wrong.append(f"(b) {path.name} names {name}, which is not there")
                continue
            if shard.name in self._named:
                self.wrong.append(f"(b) {name} is listed twice")
            self._named.add(shard.name)
            changed = int(shard.stat().st_mtime)
            if seconds_of(lastmod) != changed:
                self.wrong.append(f"(e) {name}: index says {lastmod}, the file is of {changed}")
            self._shard(shard)

    def _shard(self, path: Path) -> None:
        root = self._parsed(path, "urlset")
        if len(root) > MOST_URLS:
            self.wrong.append(f"(a) {path.name} lists {len(root)} URLs")
        for url in root:
            page, lastmod = str(url.findtext(f"{NS}loc")), url.findtext(f"{NS}lastmod")
            if page in (self.news if path.name.startswith("news-") else self.pages):
                self.wrong.append(f"(d) {page} is listed twice")
            if path.name.startswith("news-"):
                self.news[page] = lastmod
                continue
            links = frozenset((link.get("hreflang"), link.get("href")) for link in url.iter(LINK))
            self.pages[page] = Page(lastmod, links, len(url.findall(VIDEO)))

    def _parsed(self, path: Path, schema: str) -> etree._Element:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        if len(content) > MOST_BYTES:
            self.wrong.append(f"(a) {path.name} has {len(content)} bytes")
        try:
            root = etree.fromstring(content)
        except etree.XMLSyntaxError as error:
            self.wrong.append(f"(a) {path.name}: {error}")
            return etree.Element("none")
        rules = _rules(schema)
        if not rules.validate(root):
            self.wrong.append(f"(a) {path.name}: {rules.error_log.last_error}")
        return root

    def stray(self) -> Iterator[str]:
        """Files that nothing names and that are not known to belong here."""
        known = self._named | {"robots.txt", "sitemap.css", "sitemap.html", ".sitemapd"}
        for path in self._root.iterdir():
            if path.name not in known:
                yield f"(b) {path.name} is named by nothing"

    @property
    def lastmods(self) -> dict[str, str | None]:
        """The lastmod of each page."""
        return {loc: page.lastmod for loc, page in self.pages.items()}


def lost(system: Deployment, ledger: Ledger) -> list[str]:
    """What the files say otherwise than the ledger (c)."""
    return ledger.lost(Files(system.root).lastmods)


def disagreeing(system: Deployment, ledger: Ledger) -> list[str]:
    """Pages whose translation group, news or videos are not those of the event they show."""
    files = Files(system.root)
    told = ledger.told(files.lastmods)
    now, found = time.time(), []
    sets = _sets(told)
    for loc, sent in told.items():
        listed, due = files.pages[loc].links, sets.get(sent.group, frozenset())
        due = due if any(href == loc for _, href in due) else frozenset()
        if listed != due:
            amiss = sorted(listed ^ due)
            found.append(f"(h) {loc} of {sent.group!r}: {len(amiss)} links differ, as {amiss[:2]}")
        if _late(sent.video_until, now, shown=files.pages[loc].videos > 0):
            found.append(f"(i) {loc}: its video is over at {sent.video_until}, now is {now:.0f}")
        if _late(sent.news_until, now, shown=loc in files.news):
            found.append(f"(i) {loc}: it is news until {sent.news_until}, now is {now:.0f}")
    found += [f"(i) {loc} is news and no page" for loc in files.news.keys() - files.pages.keys()]
    return sorted(found)


def _sets(told: Mapping[str, Sent]) -> dict[str, frozenset[tuple[str, str]]]:
    """What every member of each group lists; of two pages for one code the later event counts."""
    best: dict[str, dict[str, Sent]] = defaultdict(dict)
    for sent in told.values():
        if sent.group:
            rival = best[sent.group].get(sent.lang)
            if rival is None or rival.version < sent.version:
                best[sent.group][sent.lang] = sent
    return {
        group: frozenset((code, sent.loc) for code, sent in codes.items())
        for group, codes in best.items()
        if len(codes) > 1
    }


def _late(until: int, now: float, *, shown: bool) -> bool:
    """Whether what ends at `until` (0: never was) is shown too long, or not long enough."""
    return (now > until + LATE_S) if shown else (now < until - EARLY_S)


def wrong(system: Deployment, ledger: Ledger) -> list[str]:
    """Everything that does not hold of a quiet system."""
    files = Files(system.root)
    found = [*files.wrong, *files.stray(), *(f"(c) {each}" for each in ledger.lost(files.lastmods))]
    verified = system.command("verify")
    if verified.returncode:
        found.append(f"(f) verify: {verified.stdout[-500:]}{verified.stderr[-500:]}")
    robots = (system.root / "robots.txt").read_bytes()
    before, begun, rest = robots.partition(BEGIN)
    after = rest.partition(END)[2] if begun else b""
    if before.rstrip(b"\r\n") != ROBOTS or after.strip():
        found.append(f"(g) robots.txt changed outside the markers: {robots!r}")
    if not begun:
        found.append("(g) robots.txt names no sitemap")
    return found
