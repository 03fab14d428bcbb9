"""Verify the intent of WebSub hubs, and that a distribution belongs to a subscription.

https://www.w3.org/TR/websub/, 5.2 and 5.3. A request to an unknown address, or for something that
was not requested, gets the same response, 404, for every cause (RELIABILITY T5).
"""

from __future__ import annotations

import re
import time
from typing import NamedTuple

import redis
from flask import Response, g, request
from werkzeug.datastructures import MultiDict

from shared.config.notify import hubs
from shared.config.sites.cms_connections import Connection
from shared.store.notify.subscriptions import Subscription, Subscriptions
from webhook.problems import RefusedError
from webhook.responses import answer
from webhook.sources.websub import NAME
from webhook.tenants import Gate, Tenants

LONGEST_CHALLENGE = 4_096

_SECONDS = re.compile(r"[0-9]{1,12}")


class _Verification(NamedTuple):
    """The parameters of a hub's verification request."""

    mode: str
    topic: str
    challenge: str
    lease_s: int
    reason: str


class WebSubView:
    """View of `GET /v1/sites/{site}/hooks/websub`, and the subscriptions behind it."""

    def __init__(self, tenants: Tenants, gate: Gate, client: redis.Redis) -> None:
        self._tenants, self._gate, self._client = tenants, gate, client

    def get(self, site: str) -> Response:
        """Answer a hub with its challenge if it asks for exactly what this site requested. Raises
        RefusedError `not-found` otherwise, StoreError.
        """
        if request.method != "GET":  # Flask routes HEAD to GET, and this changes state
            raise RefusedError("method-not-allowed", headers={"Allow": "GET, POST"})
        tenant, _ = self._tenants.find(site)
        g.facts.update(site=tenant and tenant.name, source=NAME)
        connection = None if tenant is None else tenant.site.sources.get(NAME)
        verification, confirmed = _verification(request.args), None
        if connection is not None and verification is not None:
            query = request.query_string.decode("latin-1")
            found = self._find(site, connection.secrets(), query)
            confirmed = self._confirm(site, found, verification) if found else None
        if confirmed is None or verification is None:
            raise RefusedError("not-found", "nobody asked a hub for this")
        g.facts.update(topic=confirmed.topic, hub_mode=verification.mode)
        if verification.mode == hubs.DENIED:
            return answer({"accepted": 0})
        return Response(verification.challenge, 200, content_type="text/plain; charset=utf-8")

    def wants(self, site: str, connection: Connection, query: str) -> bool:
        """Return True if a distribution to this address is about a feed with an active
        subscription.

        A feed that is configured but not stored counts as subscribed: the store may have been lost.
        Raises StoreError.
        """
        secrets = connection.secrets()
        found = self._find(site, secrets, query)
        if found is not None:
            return found.mode == hubs.SUBSCRIBE
        return hubs.topic_of(hubs.called(query), secrets, connection.topics) is not None

    def _find(self, site: str, secrets: list[bytes], query: str) -> Subscription | None:
        with self._gate.passing():
            known = {one.topic: one for one in Subscriptions(self._client, site).all()}
        topic = hubs.topic_of(hubs.called(query), secrets, known)
        return None if topic is None else known[topic]

    def _confirm(
        self, site: str, found: Subscription, verification: _Verification
    ) -> Subscription | None:
        now = int(time.time() * 1000)
        with self._gate.passing():
            return Subscriptions(self._client, site).change(
                found.topic,
                lambda one: one.heard(
                    verification.mode,
                    verification.topic,
                    verification.lease_s,
                    now,
                    verification.reason,
                ),
            )


def _verification(given: MultiDict[str, str]) -> _Verification | None:
    """Return the parameters; None if one of them is missing, repeated or malformed."""
    names = ("mode", "topic", "challenge", "lease_seconds", "reason")
    values = {name: given.getlist(f"hub.{name}") for name in names}
    if any(len(several) > 1 for several in values.values()):
        return None
    mode, topic, challenge, lease, reason = (
        values[name][0] if values[name] else "" for name in names
    )
    if mode != hubs.DENIED and not 0 < len(challenge) <= LONGEST_CHALLENGE:
        return None
    if mode == hubs.SUBSCRIBE and not _SECONDS.fullmatch(lease):
        return None
    seconds = int(lease) if _SECONDS.fullmatch(lease) else 0
    return _Verification(mode, topic, challenge, seconds, _shown(reason))


def _shown(reason: str) -> str:
    """Return the hub's reason in printable characters, at most 200."""
    return "".join(c if c.isprintable() else " " for c in reason[:200])
