"""Sitemap pings of search engines, all retired (PROTOCOL U1), and their replacements."""

from __future__ import annotations

_CONSOLE = (
    "Google's sitemap ping was retired in 2023: [notify.search_console] submits the sitemap, "
    "robots.txt names it"
)
_INDEXNOW = "{} takes no sitemap ping since {}: use [notify.indexnow]"
_BING = _INDEXNOW.format("Bing", "May 2022")
_GONE = "{} takes no pings any more and has no successor: leave it out"

_NAMED = {
    "ping": "the pings of search engines are gone: use the tables of the engines",
    "google": _CONSOLE,
    "google_ping": _CONSOLE,
    "bing_ping": _BING,
    "msn": _BING,
    "yahoo": "Yahoo is served by Bing: use [notify.indexnow]",
    "ask": _GONE.format("Ask"),
    "moreover": _GONE.format("Moreover"),
    "didikle": _GONE.format("Didikle"),
    "naver": 'Naver is told by IndexNow: endpoints = ["https://searchadvisor.naver.com/indexnow"]',
    "seznam": 'Seznam is told by IndexNow: endpoints = ["https://search.seznam.cz/indexnow"]',
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
