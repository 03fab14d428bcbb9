"""What must hold once everything is quiet: RELIABILITY 3, (a) to (g)."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from lxml import etree

from tests.faults.deployment import ROBOTS, Deployment
from tests.faults.ledger import Ledger
from tests.faults.watcher import NS, seconds_of

SCHEMAS = Path(__file__).resolve().parents[1] / "schema"
MOST_URLS, MOST_BYTES = 50_000, 52_428_800
BEGIN, END = b"# BEGIN sitemapd", b"# END sitemapd"


class Files:
    """The files of a web root as a crawler finds them: from index to shard to page."""

    def __init__(self, root: Path) -> None:
        self.pages: dict[str, str | None] = {}
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
            page = str(url.findtext(f"{NS}loc"))
            if page in self.pages:
                self.wrong.append(f"(d) {page} is listed twice")
            self.pages[page] = url.findtext(f"{NS}lastmod")

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
        rules = etree.RelaxNG(etree.parse(SCHEMAS / f"{schema}.rng"))
        if not rules.validate(root):
            self.wrong.append(f"(a) {path.name}: {rules.error_log.last_error}")
        return root

    def stray(self) -> Iterator[str]:
        """Files that nothing names and that are not known to belong here."""
        known = self._named | {"robots.txt", "sitemap.css", "sitemap.html", ".sitemapd"}
        for path in self._root.iterdir():
            if path.name not in known:
                yield f"(b) {path.name} is named by nothing"


def lost(system: Deployment, ledger: Ledger) -> list[str]:
    """What the files say otherwise than the ledger (c)."""
    return ledger.lost(Files(system.root).pages)


def wrong(system: Deployment, ledger: Ledger) -> list[str]:
    """Everything that does not hold of a quiet system."""
    files = Files(system.root)
    found = [*files.wrong, *files.stray(), *(f"(c) {each}" for each in ledger.lost(files.pages))]
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
