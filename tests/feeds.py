"""What readers make of the feeds: the rules of Atom 1.0 and RSS 2.0, and what they list."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple

from lxml import etree

ATOM = "{http://www.w3.org/2005/Atom}"
SCHEMA = etree.RelaxNG(etree.parse(Path(__file__).parent / "schema" / "atom.rng"))
RFC_822 = re.compile(
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r" \d{4} \d\d:\d\d:\d\d GMT"
)


class Read(NamedTuple):
    """One page in a feed; `updated` as Atom writes it."""

    loc: str
    title: str
    updated: str


def atom(content: bytes) -> list[Read]:
    """The pages of a valid Atom feed."""
    feed = _root(content)
    assert SCHEMA.validate(feed), SCHEMA.error_log
    found = [
        Read(e.findtext(f"{ATOM}id"), e.findtext(f"{ATOM}title"), e.findtext(f"{ATOM}updated"))
        for e in feed.findall(f"{ATOM}entry")
    ]
    links = [e.find(f"{ATOM}link").get("href") for e in feed.findall(f"{ATOM}entry")]
    assert links == [each.loc for each in found]
    assert len(set(links)) == len(links), "two entries with one id (RFC 4287, 4.1.1)"
    assert feed.findtext(f"{ATOM}updated") == max(each.updated for each in found)
    return found


def rss(content: bytes) -> list[Read]:
    """The pages of a valid RSS 2.0 feed.

    The rules are those of the RSS 2.0 specification and the profile of the RSS Advisory Board: one
    channel in `<rss version="2.0">`; title, link and description each once in it, and once at most
    whatever else there is but items and elements of a namespace; an item has a title or a
    description; each guid is that of one item, a permalink is a URL; times are those of RFC 822
    with years of four digits; a feed says its own address in an atom:link.
    """
    root = _root(content)
    (channel,) = root
    assert (root.tag, root.get("version"), channel.tag) == ("rss", "2.0", "channel")
    plain = [e.tag for e in channel if not e.tag.startswith("{") and e.tag != "item"]
    assert len(set(plain)) == len(plain)
    assert {"title", "link", "description"} <= set(plain)
    assert set(plain) <= {"title", "link", "description", "generator", "lastBuildDate"}
    assert all(channel.findtext(name) for name in plain)
    (this,) = (e for e in channel.findall(f"{ATOM}link") if e.get("rel") == "self")
    assert this.get("type") == "application/rss+xml"
    assert this.get("href").startswith(channel.findtext("link"))
    found = [_item(item) for item in channel.findall("item")]
    assert len({each.loc for each in found}) == len(found)
    assert _moment(channel.findtext("lastBuildDate")) == max(each.updated for each in found)
    return found


def epoch_s(updated: str) -> int:
    """Seconds since 1970 of a time as Atom writes it."""
    return int(datetime.fromisoformat(updated).timestamp())


def rfc3339(seconds: int) -> str:
    """The other way round."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _item(item: Any) -> Read:
    assert [e.tag for e in item] == ["title", "link", "guid", "pubDate"]
    assert item.find("guid").get("isPermaLink") == "true"
    assert item.findtext("guid") == item.findtext("link")
    assert re.fullmatch(r"https?://[!-~]+", item.findtext("link"))
    return Read(item.findtext("link"), item.findtext("title"), _moment(item.findtext("pubDate")))


def _moment(text: str) -> str:
    assert RFC_822.fullmatch(text)
    return parsedate_to_datetime(text).strftime("%4Y-%m-%dT%H:%M:%SZ")


def hub(content: bytes) -> str | None:
    """The WebSub hub that a feed names."""
    found = [e for e in _root(content).iter(f"{ATOM}link") if e.get("rel") == "hub"]
    assert len(found) < 2
    return found[0].get("href") if found else None


def _root(content: bytes) -> Any:
    return etree.fromstring(content, etree.XMLParser(resolve_entities=False))
