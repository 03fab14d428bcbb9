"""Fetch of the robots.txt of a host (RFC 9309)."""

from __future__ import annotations

from collections.abc import Callable

from shared.errors import OutboundError
from shared.sitemap.robots import MAX_BYTES
from worker.http.client import HttpClient
from worker.http.exchange import Bounds, OutboundRequest, configured

_BOUNDS = Bounds(20.0, MAX_BYTES, redirects=5)


def robots_txt(origin: str, agent: str, go_on: Callable[[], None] = lambda: None) -> bytes:
    """Return the robots.txt of `origin` (scheme, host and port), MAX_BYTES at most; empty if there
    is none. `go_on` is called repeatedly, and aborts by raising.

    Raises OutboundError if it cannot be known: then nothing may be fetched (RFC 9309, 2.3.1.4).
    """
    url = f"{origin}/robots.txt"
    client = HttpClient(configured(url), _BOUNDS, agent, go_on=go_on)
    try:
        with client, client.open(OutboundRequest("GET", url, url)) as answer:
            status = answer.status
            if status == 200:
                return answer.body(MAX_BYTES - 1, cut=True)[:MAX_BYTES]
    except OutboundError as error:
        raise OutboundError(f"{url}: {error}") from None
    if 400 <= status < 500 and status != 429:
        return b""  # there is none: everything is allowed
    raise OutboundError(f"{url} answers {status}")
