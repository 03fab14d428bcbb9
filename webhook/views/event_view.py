"""Accept events: validate, authenticate, parse, store, answer 202.

The order is: method, media type, length, signature, time, JSON, schema, URL rules, rate, inbox. A
refusal at any step leaves no state (RELIABILITY 2). No later module knows of requests.
"""

from __future__ import annotations

import hashlib
import time
from functools import partial

from flask import Response, request

from shared.errors import Fault
from shared.store.inbox.inbox import AcceptResult
from webhook import auth, request_body
from webhook.problems import CLOSED_S, RETRY_AFTER_S, RefusedError, UnauthorizedError
from webhook.responses import answer, note
from webhook.sources import cloudevents, native
from webhook.sources.adapter import Delivery
from webhook.tenants import Gate, Tenants
from webhook.wakeups import Wakeups


class EventView:
    """View of `POST /v1/sites/{site}/events`."""

    def __init__(
        self, tenants: Tenants, gate: Gate, waker: Wakeups, *, body_limit: int, inbox_limit: int
    ) -> None:
        self._tenants, self._gate, self._waker = tenants, gate, waker
        self._body_limit, self._inbox_limit = body_limit, inbox_limit

    def post(self, site: str) -> Response:
        """Accept the events of one request, all or none. Raises RefusedError (UnauthorizedError for
        its authentication), InvalidError, StoreError.
        """
        given = request_body.headers(request.environ)
        media_type = request_body.media_type(given, native.MEDIA_TYPES | cloudevents.CLOUD_TYPES)
        body = request_body.read(request.environ["wsgi.input"], given, self._body_limit)
        now = time.time()
        tenant, credentials = self._tenants.find(site, now)
        note(site=tenant and tenant.name)
        sender = auth.verify(given, body, credentials, now)
        if tenant is None:
            raise UnauthorizedError("site-unknown")
        note(by=sender.by, key=sender.key, delivery=sender.delivery)
        delivery = sender.delivery
        if cloudevents.carries(given):
            hook = Delivery("POST", request.path, given, body)
            events, warnings, own = native.clouds(hook, tenant.rules, int(now * 1000))
            # The full stop keeps these ids apart from delivery ids, which have none.
            delivery = delivery or (own and f"{cloudevents.NAME}.{digest_of(own.encode())}")
        else:
            events, warnings = native.events(body, media_type, tenant.rules)
        digest = digest_of(body)
        note(events=len(events), digest=digest)
        with self._gate.passing():
            accepted = tenant.inbox.accept(
                events,
                delivery=delivery,
                digest=digest,
                most=self._inbox_limit,
                rate=tenant.site.rate,
            )
        response = _answer(accepted, warnings)
        if accepted.slept:
            # Sent after the response: a wake-up thread that runs earlier delays it.
            response.call_on_close(partial(self._waker.wake, tenant.name))
        return response


def digest_of(content: bytes) -> str:
    """Return the digest under which a body is remembered."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _answer(accepted: AcceptResult, warnings: list[Fault]) -> Response:
    said = {"warnings": [fault._asdict() for fault in warnings]} if warnings else {}
    if accepted.status == "accepted":
        return answer({"accepted": len(accepted.ids), "ids": accepted.ids, **said}, 202)
    if accepted.status == "duplicate":
        note(code="duplicate")
        return answer({"accepted": 0, "duplicate": True, "ids": accepted.ids, **said})
    if accepted.status == "conflict":
        note(stands=accepted.digest)
        raise RefusedError("conflict", "the first body stands: give a new delivery a new id")
    if accepted.status == "limited":
        detail = f"nothing was taken: send it again in {accepted.wait} s, more slowly"
        raise RefusedError("rate-limited", detail, headers={"Retry-After": str(accepted.wait)})
    if accepted.status == "closed":
        raise RefusedError("closed", headers={"Retry-After": str(CLOSED_S)})
    raise RefusedError("inbox-full", headers={"Retry-After": str(RETRY_AFTER_S)})
