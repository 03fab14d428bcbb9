"""Adapter for Storyblok: stories by their full slugs (WEBHOOKS 2)."""

from __future__ import annotations

from collections.abc import Iterable

from shared.cms import storyblok
from shared.cms.fields import ident, text
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
from webhook.sources.guides import Guide, documented
from webhook.sources.payload_fields import document

NAME = "storyblok"
MEDIA_TYPES = JSON

GUIDE = Guide(
    title="Storyblok",
    credential="you choose it: 16 characters or more (plans with webhook secrets)",
    place="the Secret of the webhook",
    steps="""\
1. Space > Settings > Webhooks > New webhook.
   Endpoint URL  {address}
   Secret        {secret}
   Triggers      Story published, unpublished, deleted, moved
2. Stories are listed at /{{full_slug}}; for other addresses in sitemapd.toml:
   permalinks = {{ story = "/en/{{full_slug}}" }}""",
    sends="the id and full slug of the story",
    caveats="a move says neither whether the story is public nor what moved with it: these need a"
    " reconcile; nothing is repeated; the start page has the slug `home`: add"
    ' permalinks."story:home" = "/"',
    evidence={"all": documented("https://www.storyblok.com/docs/concepts/webhooks")},
    chosen=True,
)


def verify(hook: Delivery, keys: SenderSecrets, _now: float) -> Proof:
    """Verify `webhook-signature`: hex of HMAC-SHA1 over the body, Storyblok's only scheme."""
    given = signatures.hexed(signatures.header(hook.headers, "webhook-signature"))
    signatures.signed(given, hook.body, keys.secrets, "sha1")
    return Proof()


def translate(hook: Delivery, config: AdapterContext) -> Iterable[Outcome]:
    """Yield a published or removed story; the text that names its editor is not read."""
    said = document(hook.body)
    action = text(said, "action").removeprefix("story.")
    number = ident(said, "story_id")
    if number is None:
        yield IgnoredDelivery(f"{action[:64] or 'no action'}: not about a story")
    elif action == "published":
        yield from config.page(storyblok.page(number, text(said, "full_slug")))
    elif action in {"unpublished", "deleted"}:
        yield config.gone(storyblok.STORY, number)
    elif action == "moved":
        yield ResyncAsked("", "a story moved: what of it is public is not said")
    else:
        yield IgnoredDelivery(f"{action[:64]}: nothing that makes a page public")
