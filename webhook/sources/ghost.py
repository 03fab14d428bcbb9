"""Adapter for Ghost 5 and 6 (WEBHOOKS 1.5), by the state of a post: Ghost 5 names no event.

Ghost makes one attempt within 2 s; Ghost 5 deletes a webhook that is answered 410.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from shared.cms.fields import Fields, date, ident, images, mapping, text
from shared.cms.pages import SentPage
from webhook import auth
from webhook.problems import UnauthorizedError
from webhook.sources import signatures
from webhook.sources.adapter import (
    JSON,
    AdapterContext,
    Delivery,
    IgnoredDelivery,
    Outcome,
    Proof,
    ResyncAsked,
    SenderSecrets,
)
from webhook.sources.guides import RUN, Guide, documented
from webhook.sources.payload_fields import document

NAME = "ghost"
MEDIA_TYPES = JSON

GUIDE = Guide(
    title="Ghost",
    credential="you choose it: 16 characters or more, the same in all of its webhooks",
    place="the Secret of the webhook",
    steps="""\
1. Ghost Admin > Settings > Integrations > Add custom integration, name it sitemapd.
2. Add webhook, for each of the events: post and page published, unpublished, published updated,
   deleted; and site changed.
   Target URL  {address}
   Secret      {secret}""",
    sends="the post or page with its public address",
    caveats="bulk actions send `site changed` only: these need a reconcile; a body holds every"
    " revision: give Ghost body_limit = 10485760; Ghost 6 refuses private addresses, but for its"
    " own host and port; tags are listed only with a permalink of their own",
    evidence={
        "events, signature, deliveries, of Ghost 5 and 6": RUN,
        "refused addresses": documented(
            "https://github.com/TryGhost/Ghost/blob/main/ghost/core/core/server/lib/request-external.js"
        ),
    },
    chosen=True,
)

_TAKEN_AWAY = (".unpublished", ".deleted")


def verify(hook: Delivery, keys: SenderSecrets, now: float) -> Proof:
    """Verify `X-Ghost-Signature: sha256=hex, t=ms`, over the body and the time without a separator.
    Raises UnauthorizedError, or RefusedError `stale`.
    """
    said = signatures.pairs(signatures.header(hook.headers, "x-ghost-signature"))
    if "t" not in said:
        # Before 5.87 the time was not signed, so a delivery could be replayed at any time.
        raise UnauthorizedError("timestamp-malformed")
    moment = signatures.moment(said["t"])
    digest = signatures.hexed(said.get("sha256", ""))
    signatures.signed(digest, hook.body + said["t"].encode(), keys.secrets, "sha256")
    auth.check_age(moment / 1000, now)
    return Proof(None, moment)


def translate(hook: Delivery, config: AdapterContext) -> Iterable[Outcome]:
    """Yield the change of a post, page or tag; `site.changed` names none: yield a resync."""
    said = document(hook.body)
    event = text(said, "event")
    for kind in ("post", "page", "tag"):
        if kind in said:
            now, before = mapping(said[kind]).get("current"), mapping(said[kind]).get("previous")
            yield from _changed(kind, event, mapping(now), mapping(before), config)
            return
    if not said or event == "site.changed":
        yield ResyncAsked(
            "", "Ghost says that the site changed, not what: a bulk action does only that"
        )
    else:
        yield IgnoredDelivery("not about a post, a page or a tag")


def _changed(
    kind: str, event: str, now: Fields, before: Fields, config: AdapterContext
) -> Iterable[Outcome]:
    number = ident(now, "id") or ident(before, "id")
    if number is None:
        yield IgnoredDelivery(f"a {kind} without an id")
    elif kind == "tag":
        yield from _tag(number, event, now, config)
    elif not now or event.endswith(_TAKEN_AWAY) or not _is_public(now):
        was = {**now, **before} if text(before, "status") == "published" else None
        yield config.gone(kind, number, fields=was)
    else:
        members = {
            "lastmod": date(now, "updated_at"),
            "published": date(now, "published_at"),
            "title": text(now, "title"),
            "canonical": text(now, "canonical_url"),
            "images": images([text(now, "feature_image")]),
        }
        yield from config.page(SentPage(kind, number, now, loc=text(now, "url"), members=members))


def _is_public(now: Fields) -> bool:
    """Return True if the post is published at a public URL: drafts and scheduled posts have a
    preview address, posts sent only by mail another.
    """
    path = _path(text(now, "url"))
    hidden = path.startswith(("/p/", "/email/")) or path == "/404/"
    return text(now, "status") == "published" and bool(path) and not hidden


def _path(url: str) -> str:
    """Return the path of a URL, empty if it is none."""
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def _tag(number: str | int, event: str, now: Fields, config: AdapterContext) -> Iterable[Outcome]:
    """Yield a tag, only with a permalink: Ghost 5 sends a stale address, and neither version
    reports that a tag became empty.
    """
    if not now or event.endswith(_TAKEN_AWAY):
        yield config.gone("tag", number)
    elif config.connection.template("tag") is None:
        yield IgnoredDelivery('tags are listed only with a permalink: tag = "/tag/{slug}/"')
    elif text(now, "visibility") == "internal":
        yield config.gone("tag", number)
    else:
        members = {"lastmod": date(now, "updated_at"), "canonical": text(now, "canonical_url")}
        yield from config.page(SentPage("tag", number, now, members=members))
