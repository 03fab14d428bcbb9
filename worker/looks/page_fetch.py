"""Fetch of one page as a polite crawler does: one request, no redirect followed, 2 MiB at most."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urljoin

from shared.domain.looks.answers import PageAnswer
from shared.errors import OutboundError, UrlError
from shared.sitemap import urls
from worker.http.client import HttpClient
from worker.http.exchange import Bounds, OutboundRequest, configured, retry_after
from worker.looks import fingerprint, page_reader

AGENT = "sitemapd"
"""The name for robots.txt."""
USER_AGENT = "Mozilla/5.0 (compatible; sitemapd-look)"
MOST_BYTES = 2 * 1024 * 1024
LOOK = Bounds(20.0, MOST_BYTES)
"""A page; crawlers give up later, but a page this slow is worth a warning."""

_HEADERS = {
    "Accept": "text/html,application/xhtml+xml,application/pdf;q=0.9,*/*;q=0.8",
    "Accept-Encoding": "gzip",
}
_LONGEST = 300


def fetch(loc: str, go_on: Callable[[], None] = lambda: None) -> PageAnswer:
    """Return the answer of the page `loc`, a URL below an address that the administrator
    configured. `go_on` is called repeatedly, and aborts by raising.
    """
    request = OutboundRequest("GET", loc, loc, _HEADERS)
    client = HttpClient(configured(loc), LOOK, USER_AGENT, go_on=go_on)
    try:
        with client, client.open(request) as answer:
            # Of an error nobody reads the page.
            body = answer.body(cut=True)[:MOST_BYTES] if answer.status == 200 else b""
            return _answer(loc, answer.status, answer.headers, body)
    except OutboundError as error:
        return PageAnswer(0, fault=str(error))


def _answer(loc: str, status: int, headers: Mapping[str, str], body: bytes) -> PageAnswer:
    where = _shown(loc, headers.get("location", "")) if 300 <= status < 400 else ""
    if status != 200:
        return PageAnswer(status, redirect_to=where, wait_s=retry_after(headers))
    words = page_reader.read(loc, headers, body)
    tree = words.tree
    seen = fingerprint.of_bytes(body) if tree is None else fingerprint.of_html(tree, body)
    return PageAnswer(
        status, "", where, words.noindex, words.canonical[:_LONGEST], words.language,
        page_reader.type_of(headers), seen,
    )  # fmt: skip


def _shown(loc: str, location: str) -> str:
    try:
        return urls.absolute(urljoin(loc, location))[:_LONGEST]
    except (UrlError, ValueError):
        return ""
