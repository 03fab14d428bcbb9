"""Reader of a crawl: starts its process, and reads its pages while it writes them.

The state of a crawl that was cut off is kept for a day in a directory of this user alone, where the
next one from the same address goes on. A crawl sees what is linked: that a page is not found proves
nothing, so its pages are never taken for all, and nothing is deleted.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shared.errors import SourceError
from worker.sources.crawl.crawl_options import CrawlOptions
from worker.sources.records import PARTIAL, STATED, Item, Note, RecordRefusal, SourceRecord
from worker.sources.source_options import SourceOptions
from worker.sources.xml.entry_records import check_loc

KEPT_S = 24 * 3600
"""Seconds for which the state of a crawl that was cut off is worth something."""

LOOK_S = 0.2
ENDS_S = 60.0
"""Seconds that its process has to store what it was about to ask for."""

_MISSING = "a crawl needs the extra crawl: pip install 'sitemapd[crawl]'"
_PAGES, _ENDED = "pages.ndjson", "ended.json"  # those of spider.py, which needs Scrapy


def read(address: str, access: SourceOptions) -> Iterator[Item]:
    """Yield the pages of the site at `address` that are linked from its first one.

    Raises SourceError without Scrapy, and if no page was found.
    """
    options = CrawlOptions.of(address, access.key)
    if find_spec("scrapy") is None:
        raise SourceError(_MISSING)
    folder = _folder(options.name)
    found = 0
    with _running(options, folder) as process:
        for line in _lines(folder / _PAGES, process, access.wait):
            item = _item(line)
            found += isinstance(item, SourceRecord)
            yield item
    reason = _ended(folder)
    if reason is None:
        raise SourceError(f"the crawl of {options.start} ended with code {process.returncode}")
    shutil.rmtree(folder)
    if not found:
        raise SourceError(
            f"the crawl of {options.start} found no page: is it the address itself, without a"
            " redirect, and does robots.txt allow it?"
        )
    yield Note(options.start, PARTIAL, "a crawl finds what is linked, within its bounds")


def _folder(name: str) -> Path:
    """Return the directory of a crawl, empty unless one that was cut off can go on in it.

    What is in it is read by pickle: it must be of this user, and open to nobody else.
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    try:
        place = _own(Path(home) / "sitemapd")
    except OSError:  # a service may have no home
        place = _own(Path(tempfile.gettempdir()) / f"sitemapd-{os.getuid()}")
    folder = place / f"crawl-{name}"
    if folder.exists() and (
        _ended(folder) is None or time.time() - (folder / _ENDED).stat().st_mtime > KEPT_S
    ):
        shutil.rmtree(folder)
    _own(folder)
    (folder / _ENDED).unlink(missing_ok=True)
    return folder


def _own(place: Path) -> Path:
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = place.lstat()
    if found.st_uid != os.getuid() or place.is_symlink():
        raise SourceError(f"{place} belongs to somebody else: remove it, or set XDG_CACHE_HOME")
    place.chmod(0o700)
    return place


def _ended(folder: Path) -> str | None:
    """Return why the crawl in a directory ended, None if it was killed."""
    try:
        return str(json.loads((folder / _ENDED).read_text(encoding="utf-8"))["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def _running(options: CrawlOptions, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start the process; what is left of it at the end is asked to stop, so that it goes on later.

    The key goes by standard input: arguments can be read by other users of the machine.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-m", "worker.sources.crawl.spider"], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, cwd=folder,
        start_new_session=True,
    )  # fmt: skip
    try:
        said: dict[str, Any] = {"options": asdict(options), "folder": str(folder)}
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(json.dumps(said).encode())
        yield process
    finally:
        process.terminate()
        try:
            process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _lines(
    path: Path, process: subprocess.Popen[bytes], wait: Callable[[float], None]
) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file that the process writes, until it has ended."""
    path.touch()
    with path.open("rb") as file:
        rest = b""
        while True:
            over = process.poll() is not None
            data = file.read()
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield json.loads(line)
            if not data and over:
                return
            if not data:
                wait(LOOK_S)


def _item(said: dict[str, Any]) -> Item:
    loc = str(said["loc"])
    if "why" in said:
        return RecordRefusal(loc, said["rule"], said["why"], loc)
    lastmod = said.get("lastmod")
    silent = STATED - {"lastmod"} if lastmod else STATED
    return check_loc(loc, loc) or SourceRecord(loc, loc, lastmod, silent=silent)
