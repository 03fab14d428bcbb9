"""Options of a crawl, written behind its address: `crawl:https://www.example.com/#rate=2`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from urllib.parse import urldefrag, urlsplit

from shared.errors import SourceError

_LIMITS = {"depth": (0.0, 100.0), "rate": (0.01, 50.0), "pages": (1.0, 1_000_000.0)}


@dataclass(frozen=True, slots=True)
class CrawlOptions:
    """The page `start` to begin at, and the bounds: links from it, requests a second, pages.

    `key` is `user:password` for a site that asks for them; empty: none.
    """

    start: str
    depth: int = 20
    rate: float = 2.0
    pages: int = 50_000
    key: str = field(default="", repr=False)

    @classmethod
    def of(cls, address: str, key: str) -> CrawlOptions:
        """Return the options that follow the address. Raises SourceError that names a wrong one."""
        start, chosen = urldefrag(address)
        try:
            parts = urlsplit(start)
            sound = parts.scheme in {"http", "https"} and bool(parts.hostname)
        except ValueError:
            sound = False
        if not sound or parts.username is not None:
            raise SourceError("a crawl needs an http or https URL; a password is the source_key")
        if key and ":" not in key:
            raise SourceError("the key of a crawl must be user:password")
        given = dict(_bound(text) for text in chosen.split(",") if text.strip())
        found = cls(start if parts.path else f"{start}/", key=key)
        return cls(
            found.start, int(given.get("depth", found.depth)), given.get("rate", found.rate),
            int(given.get("pages", found.pages)), key,
        )  # fmt: skip

    @property
    def name(self) -> str:
        """The name under which its state is kept; with other bounds it goes on all the same."""
        return hashlib.blake2b(self.start.encode(), digest_size=12).hexdigest()


def _bound(text: str) -> tuple[str, float]:
    name, _, value = (part.strip() for part in text.partition("="))
    if name not in _LIMITS:
        raise SourceError(f"a crawl has no option {name[:20]}; there are: {', '.join(_LIMITS)}")
    least, most = _LIMITS[name]
    try:
        number = float(value)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise SourceError(f"{name} of a crawl must be a number from {least:g} to {most:g}")
    return name, number
