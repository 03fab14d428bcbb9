"""Sitemap pings of search engines, all retired (PROTOCOL U1), and their replacements."""

from __future__ import annotations

_CONSOLE = "Google retired its sitemap ping in 2023: use [notify.search_console] or robots.txt"
_INDEXNOW = "{} has accepted no sitemap pings since {}: use [notify.indexnow]"
_BING = _INDEXNOW.format("Bing", "May 2022")
_GONE = "{} accepts no pings any more, and nothing replaces them: remove it"

_NAMED = {
    "ping": "search engines retired their pings: configure a table for each engine",
    "google": _CONSOLE,
    "google_ping": _CONSOLE,
    "bing_ping": _BING,
    "msn": _BING,
    "yahoo": "Yahoo uses the index of Bing: use [notify.indexnow]",
    "ask": _GONE.format("Ask"),
    "moreover": _GONE.format("Moreover"),
    "didikle": _GONE.format("Didikle"),
    "naver": 'Naver supports IndexNow: set endpoints = ["https://searchadvisor.naver.com/indexnow"]',
    "seznam": 'Seznam supports IndexNow: set endpoints = ["https://search.seznam.cz/indexnow"]',
}
_DOMAINS = {
    "yahoo.com": "yahoo", "yahooapis.com": "yahoo", "ask.com": "ask", "moreover.com": "moreover",
    "didikle.com": "didikle", "msn.com": "msn", "live.com": "msn",
}  # fmt: skip


def named(name: str) -> str:
    """The replacement for the ping of this name; empty if it is none."""
    return _NAMED.get(name.lower(), "")


def retired(host: str, path: str) -> str:
    """The replacement for the ping at this address; empty if it is none."""
    labels, path = host.lower().rstrip(".").split("."), path.lower()
    domain = ".".join(labels[-2:])
    if domain in _DOMAINS:
        return _NAMED[_DOMAINS[domain]]
    if "google" in labels and "/ping" in path:
        return _CONSOLE
    if domain == "bing.com" and "/ping" in path:
        return _BING
    return ""
