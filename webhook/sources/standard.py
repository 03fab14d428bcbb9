"""Events of sitemapd's own clients, in the native format, signed by Standard Webhooks. Pure.

A small client in the CMS knows which pages are public and at which URL; this module guesses
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from shared.cms.pages import PageChange
from shared.config.standard_secret import standard_key
from webhook import auth, request_body
from webhook.auth import Credentials, SigningKey
from webhook.sources.adapter import Delivery, IgnoredDelivery, Outcome, Proof, SenderSecrets

MEDIA_TYPES = request_body.NATIVE

_PREVIEW = re.compile(r"[?&](?:p|page_id|preview|preview_id)=|__trashed(?:/|-|$)")


def verify(hook: Delivery, keys: SenderSecrets, now: float) -> Proof:
    """Verify by the connection's own secrets, the site's secrets, or one of its tokens.

    The signed time is that of the attempt, so it is not used as a version. Raises
    UnauthorizedError, RefusedError `stale` or `malformed`.
    """
    of_connection = [key for secret in keys.secrets if (key := standard_key(secret)) is not None]
    accepted = Credentials([*map(SigningKey.of, of_connection), *keys.site.keys], keys.site.tokens)
    return Proof(auth.verify(hook.headers, hook.body, accepted, now).delivery)


def changes(hook: Delivery) -> Iterable[Outcome]:
    """Yield the events of a delivery; previews and trashed addresses become deletes by id. Raises
    RefusedError if the body is no strict JSON.
    """
    kind = hook.headers.get("content-type", "").partition(";")[0].strip().lower()
    for item in request_body.items(hook.body, kind):
        if isinstance(item, dict):
            yield guarded(PageChange(item))
        else:
            yield IgnoredDelivery("send an object with a type and a loc")


def guarded(change: PageChange) -> Outcome:
    """Return a change of a public page as it is, of a preview or trashed address a delete by id."""
    item, loc = change.item, change.item.get("loc")
    if item.get("type") != "upsert" or not isinstance(loc, str) or not _PREVIEW.search(loc):
        return change
    if item.get("id") is None:
        return IgnoredDelivery("a preview or trashed address, and no id")
    kept = {name: value for name, value in item.items() if name in {"id", "version"}}
    return change._replace(item={"type": "delete", **kept})
