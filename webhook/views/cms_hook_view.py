"""Take deliveries of CMSes: the checks of event_view, then translation by the CMS's adapter.

Answers 200 with a small JSON body: some senders accept nothing else as success. Never 3xx, which
turns a POST into a GET, and never 410, for which Ghost 5 deletes the webhook (WEBHOOKS 5.1).
"""

from __future__ import annotations

import json
import time
from functools import partial

import redis
from flask import Response, g, request

from shared.config.sites.cms_connections import STANDARD, Connection
from shared.errors import StoreError
from shared.store.client import answering
from shared.store.keys import RECENT
from shared.store.keys import Keys as StoreKeys
from webhook import request_body
from webhook.auth import STRANGER, Credentials
from webhook.problems import RefusedError, UnauthorizedError
from webhook.responses import accepted, answer
from webhook.sources import websub, woocommerce
from webhook.sources.adapter import Adapter, AdapterContext, Delivery, Proof, SenderSecrets
from webhook.sources.event_builder import BuiltEvents, take
from webhook.sources.registry import REGISTRY
from webhook.tenants import Gate, Tenant, Tenants
from webhook.views.websub_view import WebSubView
from webhook.wakeups import Wakeups

_RANDOM_SECRETS = [key.raw for key in STRANGER.keys]


class CmsHookView:
    """View of `POST /v1/sites/{site}/hooks/{source}`."""

    def __init__(
        self,
        tenants: Tenants,
        gate: Gate,
        waker: Wakeups,
        client: redis.Redis,
        hubs: WebSubView,
        *,
        body_limit: int,
    ) -> None:
        self._tenants, self._gate, self._waker, self._client = tenants, gate, waker, client
        self._hubs, self._body_limit = hubs, body_limit

    def post(self, site: str, source: str) -> Response:
        """Accept one delivery of the CMS `source`. Raises RefusedError (UnauthorizedError for its
        authentication), InvalidError, StoreError.
        """
        adapter = REGISTRY.get(source)
        if adapter is None:
            raise RefusedError("not-found", f"there are: {', '.join(sorted(REGISTRY))}")
        environ = request.environ
        headers = request_body.headers(environ)
        g.facts["source"] = adapter.NAME
        request_body.media_type(headers, adapter.MEDIA_TYPES)
        body = request_body.read(environ["wsgi.input"], headers, self._body_limit)
        query = request.query_string.decode("latin-1")
        path = environ.get("SCRIPT_NAME", "") + request.path
        hook = Delivery(request.method, path, headers, body, query)
        if adapter.NAME == woocommerce.NAME and woocommerce.is_ping(hook):
            return answer({"accepted": 0, "ignored": "a ping"})
        try:
            return self._take(site, adapter, hook)
        except UnauthorizedError as error:
            if adapter.NAME != websub.NAME:
                raise UnauthorizedError(error.reason, _unproven(adapter)) from None
            # The response tells neither a hub nor any other client that the signature is wrong
            # (WebSub, 8).
            g.facts.update(code=error.code, reason=error.reason)
            return answer({"accepted": 0, "ignored": websub.UNPROVEN})

    def _take(self, site: str, adapter: Adapter, hook: Delivery) -> Response:
        now = time.time()
        tenant, credentials = self._tenants.find(site)
        g.facts["site"] = tenant and tenant.name
        connection = _connection(tenant, adapter.NAME)
        proved = adapter.verify(hook, _keys(connection, credentials), now)
        if tenant is None or connection is None:
            raise UnauthorizedError("site-unknown" if tenant is None else "source-not-connected")
        if adapter.NAME == websub.NAME and not self._hubs.wants(site, connection, hook.query):
            raise UnauthorizedError("not-subscribed")
        g.facts.update(key=adapter.NAME, delivery=proved.delivery)
        config = AdapterContext(adapter.NAME, connection, tenant.rules)
        outcomes = adapter.translate(hook, config)
        taken = take(adapter.NAME, outcomes, tenant.rules, proved.moment, int(now * 1000))
        digest = request_body.digest(hook.body)
        g.facts.update(events=len(taken.events), digest=digest)
        if taken.ignored or taken.resyncs:
            self._record(tenant, adapter.NAME, taken)
        if not taken.events:
            return answer({"accepted": 0, "ignored": _reason(taken)})
        delivery = _delivery(adapter.NAME, proved, digest)
        result = tenant.accept(taken.events, delivery=delivery, digest=digest)
        response = accepted(result, _further(taken))
        if result.slept:
            response.call_on_close(partial(self._waker.wake, tenant.name))
        return response

    def _record(self, tenant: Tenant, source: str, taken: BuiltEvents) -> None:
        """Record ignored parts for the administrator; if the store is down, only this record is
        lost.
        """
        reasons = list(dict.fromkeys(taken.ignored))
        record = {"source": source, "reasons": reasons, "accepted": len(taken.events)}
        if taken.resyncs:
            record["resync"] = list(dict.fromkeys(taken.resyncs))
        g.facts.update(ignored=reasons, resync=len(taken.resyncs))
        try:
            with self._gate.passing(), answering():
                self._client.xadd(
                    StoreKeys(tenant.name).recent,
                    {"ignored": json.dumps(record, separators=(",", ":"))},
                    maxlen=RECENT,
                    approximate=True,
                )
        except StoreError as error:
            g.facts["unrecorded"] = str(error)


def _unproven(adapter: Adapter) -> str:
    guide = adapter.GUIDE
    return (
        f"{guide.unproven}, or the address that {guide.title} sends to"
        f" names another site: compare both with what `sitemapd connect {adapter.NAME}` prints"
    )


def _connection(tenant: Tenant | None, source: str) -> Connection | None:
    """Return the connection of `source` to the site; sources in STANDARD need no configuration."""
    if tenant is None:
        return None
    found = tenant.site.sources.get(source)
    return Connection.model_validate({}) if found is None and source in STANDARD else found


def _keys(connection: Connection | None, credentials: Credentials) -> SenderSecrets:
    """Return the secrets that the sender must prove; random ones for an unknown site or source."""
    if connection is None:
        return SenderSecrets(_RANDOM_SECRETS, STRANGER)
    return SenderSecrets(connection.secrets() or _RANDOM_SECRETS, credentials)


def _delivery(source: str, proved: Proof, digest: str) -> str | None:
    """Return the id under which this delivery is remembered: of the vendor's id and the body, since
    not all vendors' ids are unique.

    None without a vendor's id: equal bodies may mean that a page changed back (WEBHOOKS 5.8). The
    full stop keeps these ids apart from those of the native interface.
    """
    if not proved.delivery:
        return None
    return f"{source}.{request_body.digest(proved.delivery.encode('utf-8', 'replace'))}.{digest}"


def _reason(taken: BuiltEvents) -> str:
    return "; ".join(dict.fromkeys(taken.ignored)) or "nothing in it is about a page"


def _further(taken: BuiltEvents) -> dict[str, str]:
    """Return the members of the response for what is no event, and for resyncs."""
    further = {"ignored": _reason(taken)} if taken.ignored else {}
    if taken.resyncs:
        further["resync"] = "; ".join(dict.fromkeys(taken.resyncs))
    return further
