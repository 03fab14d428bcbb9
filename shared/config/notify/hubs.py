"""Callback address and secret of each topic that a site subscribes to at a hub (WebSub). Pure.

Both are derived from the secret of the connection: nothing secret is stored, no two topics share
a value, and the callback cannot be guessed (https://www.w3.org/TR/websub/, 5.1 and 8).
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from urllib.parse import parse_qs

SUBSCRIBE, UNSUBSCRIBE, DENIED = "subscribe", "unsubscribe", "denied"

LEASE_S = 10 * 24 * 3600
"""Requested duration of a subscription, in seconds; the hub decides."""

METHODS = ("sha1", "sha256", "sha384", "sha512")
"""Signature methods of hubs (https://www.w3.org/TR/websub/, 7)."""

_PARAMETER = "feed"


def ident(secret: bytes, topic: str) -> str:
    """The end of the callback of `topic`: 32 hex digits that only a secret's owner can compute."""
    return hmac.digest(secret, b"callback " + topic.encode(), "sha256").hex()[:32]


def key(secret: bytes, name: str) -> bytes:
    """The hub.secret of the topic with the ident `name`: 64 bytes of the 200 that are allowed."""
    return (
        hmac.digest(secret, b"hub.secret " + name.encode("utf-8", "replace"), "sha256")
        .hex()
        .encode()
    )


def callback(origin: str, site: str, name: str) -> str:
    """The callback address of the topic with the ident `name`."""
    return f"{origin}/v1/sites/{site}/hooks/websub?{_PARAMETER}={name}"


def called(query: str) -> str:
    """The ident in the query of a callback address; empty unless there is exactly one."""
    try:
        found = parse_qs(query, max_num_fields=20).get(_PARAMETER, [])
    except ValueError:
        return ""
    return found[0] if len(found) == 1 else ""


def topic_of(name: str, secrets: Sequence[bytes], topics: Iterable[str]) -> str | None:
    """The one of `topics` with the ident `name` by any of the secrets, compared in constant time;
    None if there is none.
    """
    given = name.encode("utf-8", "replace")
    for topic in topics:
        if any(hmac.compare_digest(given, ident(secret, topic).encode()) for secret in secrets):
            return topic
    return None
