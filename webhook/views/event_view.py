"""Accept events: validate, authenticate, parse, store, answer 202.

The order is: method, media type, length, signature, time, JSON, schema, URL rules, rate, inbox. A
refusal at any step leaves no state (RELIABILITY 2). No later module knows of requests.
"""

from __future__ import annotations

import time
from functools import partial

from flask import Response, g, request

from shared.events.event import parse_all
from webhook import auth, request_body, responses
from webhook.problems import MAX_FAULTS, UnauthorizedError
from webhook.sources import cloudevents
from webhook.sources.adapter import Delivery
from webhook.tenants import Tenants
from webhook.wakeups import Wakeups

MEDIA_TYPES = request_body.NATIVE | cloudevents.CLOUD_TYPES


class EventView:
    """View of `POST /v1/sites/{site}/events`."""

    def __init__(self, tenants: Tenants, waker: Wakeups, *, body_limit: int) -> None:
        self._tenants, self._waker, self._body_limit = tenants, waker, body_limit

    def post(self, site: str) -> Response:
        """Accept the events of one request, all or none. Raises RefusedError (UnauthorizedError for
        its authentication), InvalidError, StoreError.
        """
        environ, facts = request.environ, g.facts
        headers = request_body.headers(environ)
        media_type = request_body.media_type(headers, MEDIA_TYPES)
        body = request_body.read(environ["wsgi.input"], headers, self._body_limit)

        now = time.time()
        tenant, credentials = self._tenants.find(site)
        facts["site"] = tenant and tenant.name
        sender = auth.verify(headers, body, credentials, now)
        if tenant is None:
            raise UnauthorizedError("site-unknown")
        facts.update(by=sender.by, key=sender.key, delivery=sender.delivery)

        digest, delivery = request_body.digest(body), sender.delivery
        if media_type in cloudevents.CLOUD_TYPES or request_body.CLOUD_HEADER in headers:
            hook = Delivery("POST", request.path, headers, body)
            events, warnings, ident = cloudevents.events(hook, tenant.rules, int(now * 1000))
            if delivery is None and ident is not None:
                # The full stop keeps these ids apart from delivery ids, which have none.
                delivery = f"{cloudevents.NAME}.{request_body.digest(ident.encode())}"
        else:
            items = request_body.items(body, media_type)
            events, warnings = parse_all(items, tenant.rules, MAX_FAULTS)
        facts.update(events=len(events), digest=digest)

        result = tenant.accept(events, delivery=delivery, digest=digest)
        further = {"warnings": [fault._asdict() for fault in warnings]} if warnings else {}
        response = responses.accepted(result, further, 202)
        if result.slept:
            # Sent after the response: a wake-up thread that runs earlier delays it.
            response.call_on_close(partial(self._waker.wake, tenant.name))
        return response
