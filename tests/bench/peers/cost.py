"""Costs of one piece of work, and the form of its input and output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from isal import igzip

from tests.bench.bed import Bare

PER_FILE = 10_000


class Page(NamedTuple):
    """One page as every peer is given it."""

    loc: str
    lastmod: str


class Cost(NamedTuple):
    """Seconds, CPU seconds of all processes, and bytes written."""

    seconds: float
    cpu: float
    written: float


Files = Iterable[tuple[str, bytes]]
"""The sitemap files, gzipped, and last their index: names and bytes, made as they are asked for."""


def rebuilt(make: Callable[[list[Page]], Files], pages: list[Page], root: Path) -> Cost:
    """Write what `make` makes of `pages` durably into a new directory; the cost."""
    bare = Bare(root)
    cpu = time.process_time()
    seconds = bare.write(make(pages))
    return Cost(seconds, time.process_time() - cpu, checked(bare.root, len(pages)))


def checked(root: Path, count: int) -> int:
    """Return the bytes of all files in `root`, which must list `count` pages, and remove them."""
    written = listed = 0
    for path in root.iterdir():
        content = path.read_bytes()
        written += len(content)
        if content.startswith(b"\x1f\x8b"):
            listed += igzip.decompress(content).count(b"<url>")
        path.unlink()
    assert listed == count, f"{listed} pages listed of {count}"
    return written
