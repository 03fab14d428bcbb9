"""A reader in a process of its own, which must never see a torn file, an index that names what is
not there, or bytes that go back in time.

`python -m tests.faults.watcher ROOT [URL]` reads the files, by way of a web server at URL if that
is given, until its input ends; then it prints what it saw as one line of JSON.
"""

from __future__ import annotations

import calendar
import gzip
import http.client
import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from lxml import etree

NS = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
MOST_FAULTS = 20


def seconds_of(lastmod: str) -> int:
    """Seconds since 1970 of a lastmod in UTC."""
    return calendar.timegm(time.strptime(lastmod, "%Y-%m-%dT%H:%M:%SZ"))


class Seen(NamedTuple):
    """One read of one file: its bytes and when it was last changed (s)."""

    content: bytes
    mtime: int


class Watcher:
    """Reads index files and shards over and over, in the order in which a crawler does."""

    def __init__(self, root: Path, url: str = "") -> None:
        self.reads: Counter[str] = Counter()
        self.faults: list[str] = []
        self._root, self._url = root, urlsplit(url)
        self._connection: http.client.HTTPConnection | None = None
        self._mtimes: dict[str, int] = {}
        self._shards: dict[str, bytes] = {}
        self._versions: dict[tuple[str, str], int] = {}

    def look(self) -> None:
        """One round over everything."""
        for name in ("sitemap.xml", "sitemap-2.xml"):
            index = self._listed(name)
            for loc, lastmod in index.items():
                self._shard(Path(urlsplit(loc).path).name, lastmod, name)
            if index:
                self.reads["rounds"] += 1

    def _listed(self, name: str) -> dict[str, int]:
        seen = self._read(name)
        if seen is None:
            return {}
        self.reads["index"] += 1
        root = self._parsed(name, seen)
        if root is None:
            return {}
        return {
            str(line.findtext(f"{NS}loc")): seconds_of(str(line.findtext(f"{NS}lastmod")))
            for line in root
        }

    def _shard(self, name: str, lastmod: int, index: str) -> None:
        seen = self._read(name)
        if seen is None:
            # It may have emptied since the index was read: then the index names it no more.
            again = {Path(urlsplit(loc).path).name for loc in self._listed(index)}
            if name in again and self._read(name) is None:
                self._fault(f"{index} names {name}, which is not there")
            return
        self.reads["shard"] += 1
        if seen.mtime < lastmod:
            self._fault(f"{index} is ahead: {name} of {lastmod}, found {seen.mtime}")
        root = self._parsed(name, seen)
        if root is None:
            return
        if self._shards.get(name) == seen.content:
            return  # the pages are of the versions that were seen in it last
        self._shards[name] = seen.content
        for url in root:
            page, told = str(url.findtext(f"{NS}loc")), url.findtext(f"{NS}lastmod")
            version = seconds_of(told) if told else 0
            if version < self._versions.get((name, page), 0):
                self._fault(f"{name}: {page} went back in time")
            self._versions[name, page] = version

    def _parsed(self, name: str, seen: Seen) -> etree._Element | None:
        if seen.mtime < self._mtimes.get(name, 0):
            self._fault(f"{name} went back in time: {seen.mtime} after {self._mtimes[name]}")
        self._mtimes[name] = seen.mtime
        try:
            return etree.fromstring(seen.content)
        except etree.XMLSyntaxError as error:
            self._fault(f"{name} is torn: {error}")
            return None

    def _read(self, name: str) -> Seen | None:
        return self._fetch(name) if self._url.netloc else self._open(name)

    def _open(self, name: str) -> Seen | None:
        for path in (self._root / name, self._root / f"{name}.gz"):
            with suppress(FileNotFoundError), path.open("rb") as file:
                content = file.read()
                zipped = path.suffix == ".gz"
                mtime = int(os.fstat(file.fileno()).st_mtime)
                return Seen(gzip.decompress(content) if zipped else content, mtime)
        return None

    def _fetch(self, name: str) -> Seen | None:
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(self._url.netloc, timeout=10)
            self._connection.request("GET", f"/{name}")
            reply = self._connection.getresponse()
            content = reply.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection = None
            self._fault(f"{name} could not be fetched: {error!r}")
            return None
        if reply.status == 404:
            return None
        if reply.status != 200:
            self._fault(f"{name} was answered {reply.status}")
            return None
        changed = parsedate_to_datetime(str(reply.getheader("last-modified")))
        return Seen(content, int(changed.timestamp()))

    def _fault(self, what: str) -> None:
        self.reads["faults"] += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(what)


class Watching:
    """A watcher at work, seen from the driver."""

    def __init__(self, root: Path, url: str = "") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.watcher", root, url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def end(self) -> tuple[dict[str, int], list[str]]:
        """What it read, by kind, and what it must not have seen."""
        said, _ = self._process.communicate(timeout=60)
        reads, faults = json.loads(said)
        return reads, faults


def main() -> None:
    """Watch until the input ends."""
    watcher = Watcher(Path(sys.argv[1]), sys.argv[2])
    begun = time.monotonic()
    pause = 0.0 if sys.argv[2] else 0.05  # of files alone: leave the machine to those who write
    while not select.select([sys.stdin], [], [], pause)[0]:
        watcher.look()
    watcher.reads["seconds"] = int(time.monotonic() - begun)
    json.dump([watcher.reads, watcher.faults], sys.stdout)


if __name__ == "__main__":
    main()
