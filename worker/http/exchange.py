"""An outgoing HTTP request, its answer, its allowed hosts and its bounds; nothing is sent here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import urlsplit

LONGEST_WAIT_S = 24 * 3600
"""Longest wait in seconds that a server may ask for."""


class Bounds(NamedTuple):
    """Bounds of one exchange.

    All of it takes `seconds` at most, name resolution and redirects included; no step takes longer
    than `silence`, in seconds. The body has `size` bytes at most, decoded or as sent, whichever the
    caller reads.
    """

    seconds: float
    size: int
    silence: float = 10.0
    redirects: int = 0


NOTIFY = Bounds(5.0, 64 * 1024)
"""Search engines and hubs (RELIABILITY T22)."""

READ_BACK = Bounds(10.0, 1024 * 1024)
"""A list of an engine: a hundred pages with their titles."""

SERVED = Bounds(10.0, 52_428_800)
"""A published file: as large as PROTOCOL F7 allows; a redirect is a fault (RELIABILITY T31)."""

# A fifth more than PROTOCOL F7 allows, so that a slightly oversize file is imported with a note.
SOURCE = Bounds(120.0, 60 * 1024 * 1024, redirects=3)
"""One document of a source: 60 MiB at 4 Mbit/s."""

INTAKE = Bounds(10.0, 8 * 1024 * 1024)
"""The webhook of sitemapd itself, asked by its own command line."""


class OutboundRequest(NamedTuple):
    """A request; `shown` is the address without secrets, for display and logs.

    With `partly` a too long answer is cut; by default it is an error.
    """

    method: str
    url: str
    shown: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    partly: bool = False


class OutboundAnswer(NamedTuple):
    """An answer: header names in lower case, repeated ones joined by commas; the body decoded."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class AllowedHosts(NamedTuple):
    """Allowed destinations: `hosts`; `http` without TLS; `private` networks.

    With `anywhere` these hosts may have any address.
    """

    hosts: frozenset[str]
    private: bool = False
    http: bool = False
    anywhere: bool = False


Outbound = Callable[[OutboundRequest, AllowedHosts], OutboundAnswer]
"""Sends a request; raises OutboundError, and BarredError if it may not be sent."""


def configured(url: str) -> AllowedHosts:
    """Return the host of an address that the administrator named, wherever it is.

    It may be this machine or a private network: who writes the configuration can reach them anyway.
    A leading `www.` makes no difference (PROTOCOL N2). Raises ValueError if `url` is no URL.
    """
    host = (urlsplit(url).hostname or "").removeprefix("www.")
    return AllowedHosts(frozenset({host, f"www.{host}"} if host else ()), anywhere=True)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds of `Retry-After`, at most a day; None if it is missing or invalid."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:9])
    else:
        try:
            at = parsedate_to_datetime(text)
            at = at.replace(tzinfo=at.tzinfo or UTC)
            seconds = (at - (now or datetime.now(UTC))).total_seconds()
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 0.0), LONGEST_WAIT_S)


def excerpt(said: object) -> str:
    """Return the beginning of an engine's text, on one line, for display; empty if it is not
    text.
    """
    if not isinstance(said, bytes | str):
        return ""
    text = said[:1000].decode("utf-8", "replace") if isinstance(said, bytes) else said[:1000]
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:200]
