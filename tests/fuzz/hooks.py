"""What CMSes send, fuzzed: any headers and body give events that keep every rule, or reasons."""

from __future__ import annotations

import json
import re

from shared.config.sites.cms_connections import Connection
from shared.events.event import Event
from shared.events.event_fields import EventRules
from shared.sitemap import urls
from shared.sitemap.urls import Base
from webhook.auth import Credentials, SigningKey
from webhook.problems import RefusedError
from webhook.request_body import MAX_ITEMS
from webhook.sources.adapter import AdapterContext, Delivery, SenderSecrets
from webhook.sources.event_builder import MAX_REASONS, take
from webhook.sources.registry import REGISTRY

BASE = Base.parse("https://www.example.com/d/")
RULES = EventRules(BASE, frozenset({"pages", "posts"}))
NOW = 1_795_000_000
NAMES = sorted(REGISTRY)
KEYS = SenderSecrets(
    [b"a-secret-of-the-connection"],
    Credentials((SigningKey.of(b"k" * 32),), (b"a-token-of-the-site",)),
)
TOPICS = (
    "x-contentful-topic", "sanity-operation", "x-shopify-topic", "x-wc-webhook-topic",
    "x-github-event", "x-drupal-event", "x-drupal-webhooks-event", "ce-specversion", "ce-type",
)  # fmt: skip
PROOFS = (
    "authorization", "x-ghost-signature", "x-contentful-signature", "x-contentful-timestamp",
    "x-contentful-signed-headers", "sanity-webhook-signature", "x-webflow-timestamp",
    "x-webflow-signature", "x-shopify-hmac-sha256", "x-wc-webhook-signature", "webhook-signature",
    "x-hub-signature", "x-hub-signature-256", "webhook-id", "webhook-timestamp",
)  # fmt: skip
_PREVIEW = re.compile(r"[?&]p=|__trashed/")


def deliveries(data: bytes) -> None:
    """A source, what it says of its event, of its proof, and a body, with zero bytes between."""
    first, topic, proof, body = (data + b"\0\0\0").split(b"\0", 3)
    name = NAMES[sum(first) % len(NAMES)]
    said = topic.decode("latin-1")
    kind = {"content-type": "application/json"} if not said.startswith("+") else {
        "content-type": "application/cloudevents-batch+json"
    }  # fmt: skip
    headers = {**kind, **dict.fromkeys(TOPICS, said), "ce-id": "1", "ce-source": said}
    proofs = dict.fromkeys(PROOFS, proof.decode("latin-1"))
    hook = Delivery("POST", "/v1/sites/demo/hooks/x", headers, body.rstrip(b"\0"))
    try:
        REGISTRY[name].verify(hook._replace(headers=headers | proofs), KEYS, NOW)
    except RefusedError as error:
        assert error.code in {"unauthorized", "stale"}
    else:
        known = (b"a-secret-of-the-connection", b"a-token-of-the-site")
        assert any(secret in data for secret in known), "let in without a secret"
    _understood(name, hook)


def _understood(name: str, hook: Delivery) -> None:
    settings = {"permalinks": {"*": "/d/{slug}", "content/{slug}.md": "/d/{slug}"}}
    connection = Connection.model_validate(settings | {"locales": ["en", "de"]})
    outcomes = REGISTRY[name].translate(hook, AdapterContext(name, connection, RULES))
    try:
        taken = take(name, outcomes, RULES, None, NOW * 1000)
    except RefusedError as error:
        assert error.code in {"json", "too-many", "malformed"}
        return
    assert len(taken.events) <= MAX_ITEMS + len(taken.resyncs)
    assert len(taken.ignored) <= MAX_REASONS
    json.dumps(taken.ignored).encode()
    for event in taken.events:
        assert event.source == name
        assert Event.load(event.dump()) == event
        "".join((event.kind, event.locale, event.id or "")).encode()
        if event.loc is not None:
            assert urls.canonical(event.loc, BASE) == event.loc
        if event.type == "upsert" and name in {"wordpress", "wagtail", "cloudevents"}:
            assert not _PREVIEW.search(event.loc or "")


def _seed(name: str, topic: str, body: object) -> bytes:
    content = json.dumps(body).encode()
    return bytes([NAMES.index(name)]) + b"\0" + topic.encode() + b"\0Bearer x\0" + content


def _feed(text: str) -> bytes:
    return bytes([NAMES.index("websub")]) + b"\0\0sha256=00\0" + text.encode()


_LOC = BASE.url("a")
_TOMBSTONES = "http://purl.org/atompub/tombstones/1.0"
SEEDS = (
    _seed("wordpress", "", [{"type": "upsert", "id": 4, "loc": _LOC + "?p=4"}, {"type": "delete"}]),
    _seed("cloudevents", "+", [{"specversion": "1.0", "id": "1", "source": "s", "type": "x.created",
                                "subject": "7", "time": "2026-01-01T00:00:00Z",
                                "data": {"loc": _LOC}}]),
    _seed("cloudevents", "1.0", {"loc": _LOC, "type": "upsert"}),
    _seed("ghost", "", {"post": {"current": {"id": "p", "status": "published", "url": _LOC,
                                             "feature_image": _LOC, "canonical_url": "x"}}}),
    _seed("strapi", "", {"event": "entry.publish", "model": "a",
                         "entry": {"documentId": "d", "slug": "s", "locale": "\ud800"}}),
    _seed("contentful", "ContentManagement.Entry.publish",
          {"sys": {"id": "e", "contentType": {"sys": {"id": "p"}}},
           "fields": {"slug": {"en": "a", "de": ["b"]}}}),
    _seed("sanity", "update", {"_id": "d", "_type": "p", "slug": "a", "noindex": True}),
    _seed("storyblok", "", {"action": "published", "story_id": 7, "full_slug": "a/b"}),
    _seed("datocms", "", {"entity_type": "item", "event_type": "publish", "entity": {
        "id": "1", "attributes": {"slug": {"en": "a", "": None}}}}),
    _seed("webflow", "", {"triggerType": "collection_item_published",
                          "payload": {"items": [{"id": "1", "fieldData": {"slug": "s"}}]}}),
    _seed("directus", "", {"trigger": {"event": "a.items.update", "collection": "a",
                                       "keys": ["1", 2]}, "items": [{"id": 2, "slug": "s"}]}),
    _seed("payload", "", {"operation": "change", "collection": "a", "doc": {"id": 1, "slug": "s"}}),
    _seed("drupal", "entity:node:update", {"entity": {"uuid": [{"value": "u"}], "status": [
        {"value": True}], "type": [{"target_id": "a"}], "path": [{"alias": "/a"}]}}),
    _seed("shopify", "products/update", {"id": 1, "handle": "h", "published_at": "x",
                                         "images": [{"src": _LOC}]}),
    _seed("woocommerce", "product.updated", {"id": 1, "status": "publish", "permalink": _LOC}),
    _seed("github", "push", {"ref": "refs/heads/main", "repository": {"default_branch": "main"},
                             "commits": [{"added": ["content/a.md"], "removed": ["x"]}]}),
    _seed("prismic", "", {"secret": "x", "type": "api-update"}),
    _feed(f'<feed xmlns="http://www.w3.org/2005/Atom" xmlns:at="{_TOMBSTONES}"><link rel="hub" '
          'href="https://h/"/><at:deleted-entry ref="t" when="2026-01-01T00:00:00Z"/>'
          f'<entry><id>t</id><title>a</title><link href="{_LOC}"/><updated>2026-01-01T00:00:00Z'
          "</updated></entry></feed>"),
    _feed(f'<?xml version="1.0" encoding="latin-1"?><rss><channel><item><link>{_LOC}</link>'
          "<guid>7</guid><pubDate>Sat, 21 Nov 2026 10:00:00 GMT</pubDate></item></channel></rss>"),
)  # fmt: skip
