"""Adapter for WebSub: a hub sends the changed entries of a subscribed feed (WEBHOOKS 4).

https://www.w3.org/TR/websub/, 7 and 8. The address called determines the feed and its signing key
(shared/config/notify/hubs.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from shared.cms.pages import PageChange
from shared.config.notify import hubs
from shared.errors import DateError, UnusableSourceError, UrlError
from shared.sitemap import feed_parser, urls, w3c_dates
from shared.sitemap.feed_parser import ParsedItem
from webhook.problems import UnauthorizedError
from webhook.sources import signatures
from webhook.sources.adapter import (
    AdapterContext,
    Delivery,
    IgnoredDelivery,
    Outcome,
    Proof,
    ResyncAsked,
    SenderSecrets,
)
from webhook.sources.guides import RUN_ALWAYS, Guide, documented

NAME = "websub"
MEDIA_TYPES = frozenset(
    {"application/atom+xml", "application/rss+xml", "application/xml", "text/xml"}
)

GUIDE = Guide(
    title="WebSub",
    credential="you choose it: 16 characters or more; each feed gets one made of it",
    place="the secret of the subscription",
    steps="""\
1. In sitemapd.toml name the feeds, which must name a hub (or add `hub`). A hub that is not known is
   only asked if its host is in the site's table `notify`: hosts = ["hub.example.com"]
2. Restart webhook and worker. The worker subscribes within seconds, and renews in time; now:
   sitemapd websub subscribe
3. sitemapd websub list
The hub calls {address}; another origin: callback = "https://...\"""",
    sends="the new and the changed entries of a feed, as Atom or RSS",
    caveats="a feed tells of no deletes, unless by Atom's at:deleted-entry: these need a reconcile;"
    " an edit that the feed does not show is not told; UTF-8; whole texts may need a larger"
    " body_limit",
    evidence={
        "subscription, deliveries": RUN_ALWAYS,
        "what hubs do": documented("https://www.w3.org/TR/websub/"),
    },
    config='topics = ["https://www.example.com/feed.atom"]',
    chosen=True,
)

UNPROVEN = "not signed by a hub that was asked"


def verify(hook: Delivery, keys: SenderSecrets, _now: float) -> Proof:
    """Verify `X-Hub-Signature: method=hex` over the body, with the hub.secret of the address
    called. Raises UnauthorizedError.
    """
    how, _, digest = signatures.header(hook.headers, "x-hub-signature").partition("=")
    if how not in hubs.METHODS:
        raise UnauthorizedError("signature-malformed")
    name = hubs.called(hook.query)
    known = [hubs.key(secret, name) for secret in keys.secrets]
    signatures.signed(signatures.hexed(digest), hook.body, known, how)
    return Proof()


def translate(hook: Delivery, config: AdapterContext) -> Iterable[Outcome]:
    """Yield the present entries; a feed that cannot be parsed asks for a resync."""
    known = config.connection
    topic = hubs.topic_of(hubs.called(hook.query), known.secrets(), known.topics) or ""
    try:
        items = feed_parser.read(hook.body).items
    except UnusableSourceError as error:
        yield ResyncAsked("", f"a feed that cannot be read: {error}")
        return
    unsure = _shared_idents(items)
    for item in items:
        ident = "" if item.ident in unsure else item.ident
        yield _gone(topic, item) if item.gone else _page(topic, item, ident, config)
    if not items:
        yield IgnoredDelivery("a feed without entries")


def _page(topic: str, item: ParsedItem, ident: str, config: AdapterContext) -> Outcome:
    if not item.link:
        return IgnoredDelivery("an entry without a link")
    try:
        urls.canonical(item.link, config.rules.base)
    except UrlError as error:
        return IgnoredDelivery(f"loc: {error}")
    said = {
        "type": "upsert", "loc": item.link, "id": ident, "title": item.title,
        "lastmod": item.updated or item.published, "published": item.published,
        "section": config.connection.sections.get(topic, ""),
    }  # fmt: skip
    given = {name: value for name, value in said.items() if value}
    return PageChange(given, topic, moment=_moment(item.updated))


def _gone(topic: str, item: ParsedItem) -> Outcome:
    """Return the delete for a tombstone (RFC 6721): the id of the deleted entry, and when."""
    if not item.ident:
        return IgnoredDelivery("a deleted entry without its id")
    return PageChange({"type": "delete", "id": item.ident}, topic, moment=_moment(item.updated))


def _shared_idents(items: list[ParsedItem]) -> set[str]:
    """Return ids that one delivery gives to several pages: these would all seem to have moved."""
    links: dict[str, str] = {}
    return {
        item.ident
        for item in items
        if not item.gone and links.setdefault(item.ident, item.link) != item.link
    }


def _moment(updated: str) -> int | None:
    try:
        return w3c_dates.epoch_ms(updated) if len(updated) > len("2026-11-21") else None
    except DateError:
        return None
