"""Deliveries as vendors make them: a body and headers, signed the vendor's way."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any

from shared.config.notify import hubs
from shared.config.sites.cms_connections import Connection
from shared.events.event import Event
from shared.events.event_fields import EventRules
from shared.sitemap.urls import Base
from webhook.auth import Credentials, SigningKey
from webhook.sources.adapter import AdapterContext, Delivery, SenderSecrets
from webhook.sources.event_builder import BuiltEvents, take
from webhook.sources.registry import REGISTRY

NOW = 1_795_256_430.0
SITE = "https://www.example.com"
PATH = "/v1/sites/demo/hooks/"
KEY = b"k" * 32
WHSEC = "whsec_" + base64.b64encode(KEY).decode()
SECRET = "a-secret-of-the-connection"
PASSWORD = "sitemapd:a-secret-of-the-connection"
TOKEN = "a-token-of-the-site"
STANDARD = ("wordpress", "wagtail", "payload", "cloudevents")

Headers = dict[str, str]


def config(name: str, base: str = SITE, **settings: Any) -> AdapterContext:
    """A connection to `name` of a site with the sections pages and posts."""
    rules = EventRules(Base.parse(base), frozenset({"pages", "posts"}))
    return AdapterContext(name, Connection.model_validate(settings), rules)


def keys(name: str, *secrets: str) -> SenderSecrets:
    """What verifies `name`: the secrets given, else the usual one."""
    usual = PASSWORD if name == "datocms" else SECRET
    known = [] if name in STANDARD and not secrets else list(secrets or (usual,))
    return SenderSecrets(
        [one.encode() for one in known], Credentials((SigningKey.of(KEY),), (TOKEN.encode(),))
    )


def _hex(how: str, secret: str, *parts: bytes) -> str:
    return hmac.digest(secret.encode(), b"".join(parts), how).hex()


def _base64(secret: str, *parts: bytes) -> str:
    return base64.b64encode(hmac.digest(secret.encode(), b"".join(parts), "sha256")).decode()


def _ghost(body: bytes, at: float, secret: str) -> Headers:
    t = str(int(at * 1000))
    digest = _hex("sha256", secret, body, t.encode())
    return {"x-ghost-signature": f"sha256={digest}, t={t}"}


def _contentful(body: bytes, at: float, secret: str) -> Headers:
    t = str(int(at * 1000))
    names = "x-contentful-signed-headers,x-contentful-timestamp"
    said = f"x-contentful-signed-headers:{names};x-contentful-timestamp:{t}"
    head = f"POST\n{PATH}contentful\n{said}\n".encode()
    return {
        "x-contentful-signature": _hex("sha256", secret, head, body),
        "x-contentful-signed-headers": names,
        "x-contentful-timestamp": t,
    }


def _sanity(body: bytes, at: float, secret: str) -> Headers:
    t = str(int(at * 1000))
    digest = hmac.digest(secret.encode(), f"{t}.".encode() + body, "sha256")
    v1 = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    return {"sanity-webhook-signature": f"t={t},v1={v1}"}


def _webflow(body: bytes, at: float, secret: str) -> Headers:
    t = str(int(at * 1000))
    return {
        "x-webflow-timestamp": t,
        "x-webflow-signature": _hex("sha256", secret, f"{t}:".encode(), body),
    }


def _standard(body: bytes, at: float, _secret: str, key: bytes = KEY) -> Headers:
    t = str(int(at))
    digest = hmac.digest(key, f"msg_1.{t}.".encode() + body, "sha256")
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": t,
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }


SIGN: Mapping[str, Callable[[bytes, float, str], Headers]] = {
    "ghost": _ghost,
    "contentful": _contentful,
    "sanity": _sanity,
    "webflow": _webflow,
    "shopify": lambda body, _, secret: {"x-shopify-hmac-sha256": _base64(secret, body)},
    "woocommerce": lambda body, _, secret: {"x-wc-webhook-signature": _base64(secret, body)},
    "storyblok": lambda body, _, secret: {"webhook-signature": _hex("sha1", secret, body)},
    "github": lambda body, _, secret: {
        "x-hub-signature-256": "sha256=" + _hex("sha256", secret, body)
    },
    "drupal": lambda body, _, secret: {"x-hub-signature": "sha1=" + _hex("sha1", secret, body)},
    "websub": lambda body, _, secret: {
        "x-hub-signature": "sha512=" + _hex("sha512", hubs.key(secret.encode(), "").decode(), body)
    },
    "strapi": lambda _body, _at, secret: {"authorization": f"Bearer {secret}"},
    "directus": lambda _body, _at, secret: {"authorization": f"Bearer {secret}"},
    "datocms": lambda _body, _at, secret: {
        "authorization": "Basic " + base64.b64encode(secret.encode()).decode()
    },
    "prismic": lambda _body, _at, _secret: {},
    **dict.fromkeys(STANDARD, _standard),
}
"""How each vendor proves a delivery; Prismic does it within the body."""

TIMED = ("ghost", "contentful", "sanity", "webflow", *STANDARD)
"""Whose signatures tell their age."""


def signed(
    name: str, body: object, headers: Mapping[str, str] = {}, *, at: float = NOW, secret: str = ""
) -> Delivery:
    """One delivery of `name`: `body` as bytes, or as the value whose JSON it is."""
    known = secret or (PASSWORD if name == "datocms" else SECRET)
    if name == "prismic" and isinstance(body, dict):
        body = {"secret": known, **body}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"content-type": "application/json", **SIGN[name](raw, at, known), **headers}
    return Delivery("POST", PATH + name, given, raw)


def delivered(hook: Delivery, where: AdapterContext, now: float = NOW) -> BuiltEvents:
    """What becomes of a delivery: verified, understood, and made into events."""
    adapter = REGISTRY[where.name]
    proved = adapter.verify(hook, keys(where.name), now)
    outcomes = adapter.translate(hook, where)
    return take(where.name, outcomes, where.rules, proved.moment, int(now * 1000))


def said(events: list[Event]) -> list[tuple[str, str | None]]:
    """The short form of events: what, and about which page."""
    return [(event.type, event.loc or event.id) for event in events]
