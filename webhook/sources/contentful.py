"""Adapter for Contentful: one entry in all its languages, or a tombstone without any."""

from __future__ import annotations

from collections.abc import Iterable

from shared.cms import contentful
from shared.cms.fields import ident
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
    SenderSecrets,
)
from webhook.sources.guides import Guide, checked, documented
from webhook.sources.payload_fields import document

NAME = "contentful"
MEDIA_TYPES = JSON | {"application/vnd.contentful.management.v1+json"}

GUIDE = Guide(
    title="Contentful",
    credential="64 characters that request verification shows, once enabled",
    place="the secret of Settings > Webhooks > Request verification",
    steps="""\
1. Settings > Webhooks > Settings > Request verification: enable it, copy the secret into
   sitemapd.toml.
2. Add webhook: POST  {address}
   Events: Entry publish, unpublish, archive, delete. No transformation of the body.
3. In sitemapd.toml, every language and an address for each type that is a page:
   locales = ["en-US", "de"]
   permalinks."blogPost:en-US" = "/blog/{{slug}}"
   permalinks.blogPost = '/{{locale}}/blog/{{slug}}'""",
    sends="the fields of the entry in every language, without its address",
    caveats="the path is signed: a proxy must pass it on as it is; what is linked from an entry,"
    " such as the slug of its category, is not in it",
    evidence={
        "signature, events": checked("@contentful/node-apps-toolkit 3.16.1"),
        "clicks, headers, what is signed": documented(
            "https://www.contentful.com/developers/docs/extensibility/webhooks/request-verification/",
            "https://www.contentful.com/developers/docs/extensibility/webhooks/headers/",
        ),
    },
    config='locales = ["en-US"]\npermalinks = { blogPost = "/blog/{slug}" }',
)

_GONE = frozenset({"unpublish", "delete", "archive"})


def verify(hook: Delivery, keys: SenderSecrets, now: float) -> Proof:
    """Verify the hex of HMAC-SHA256 over method, path, the headers it names, and body, each on a
    line, at `now` (s since 1970). Raises UnauthorizedError, or RefusedError `stale`.
    """
    given = signatures.hexed(signatures.header(hook.headers, "x-contentful-signature"))
    names = signatures.header(hook.headers, "x-contentful-signed-headers").lower().split(",", 64)
    moment = signatures.moment(signatures.header(hook.headers, "x-contentful-timestamp"))
    if "x-contentful-timestamp" not in names:
        raise UnauthorizedError("timestamp-unsigned")
    said = ";".join(f"{name}:{hook.headers.get(name, '').strip()}" for name in names)
    path = f"{hook.path}?{hook.query}" if hook.query else hook.path
    head = f"{hook.method}\n{path}\n{said}\n".encode("latin-1", "replace")
    signatures.signed(given, head + hook.body, keys.secrets, "sha256")
    auth.check_age(moment / 1000, now)
    return Proof(hook.headers.get("x-contentful-idempotency-key"), moment)


def translate(hook: Delivery, config: AdapterContext) -> Iterable[Outcome]:
    """Yield each configured language of a published entry; delete all of a removed one."""
    topic = hook.headers.get("x-contentful-topic", "")
    scope, _, action = topic.removeprefix("ContentManagement.").partition(".")
    if scope != "Entry" or action not in _GONE | {"publish"}:
        yield IgnoredDelivery(f"{topic[:64] or 'no topic'}: not about the publication of an entry")
        return
    said = document(hook.body)
    number = ident(said, "sys.id")
    if number is None:
        yield IgnoredDelivery("an entry without an id")
        return
    for version in contentful.versions(said, number, config.connection):
        if action in _GONE or version.page is None:
            yield config.gone(version.kind, number, version.owner)
        else:
            yield from config.page(version.page)
