"""Take deliveries of CMSes: the checks of event_view, then translation by the CMS's adapter.

Answers 200 with a small JSON body: some senders accept nothing else as success. Never 3xx, which
turns a POST into a GET, and never 410, for which Ghost 5 deletes the webhook (WEBHOOKS 5.1).
"""

from __future__ import annotations

import json
import time
from functools import partial

import redis
from flask import Response, request

from shared.config.cms_connections import STANDARD, Connection
from shared.errors import StoreError
from shared.store.client import answering
from shared.store.inbox.inbox import AcceptResult
from shared.store.keys import RECENT
from shared.store.keys import Keys as StoreKeys
from webhook import request_body
from webhook.auth import STRANGER, Credentials
from webhook.problems import CLOSED_S, RETRY_AFTER_S, RefusedError, UnauthorizedError
from webhook.responses import answer, note
from webhook.sources import websub, woocommerce
from webhook.sources.adapter import Adapter, AdapterContext, Delivery, Proof, SenderSecrets
from webhook.sources.event_builder import BuiltEvents, take
from webhook.sources.registry import REGISTRY
from webhook.tenants import Gate, Tenant, Tenants
from webhook.views.event_view import digest_of
from webhook.views.websub_view import WebSubView
from webhook.wakeups import Wakeups


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
        inbox_limit: int,
    ) -> None:
        self._tenants, self._gate, self._waker, self._client = tenants, gate, waker, client
        self._hubs = hubs
        self._body_limit, self._inbox_limit = body_limit, inbox_limit

    def post(self, site: str, source: str) -> Response:
        """Accept one delivery of the CMS `source`. Raises RefusedError (UnauthorizedError for its
        authentication), InvalidError, StoreError.
        """
        adapter = REGISTRY.get(source)
        if adapter is None:
            raise RefusedError("not-found", f"there are: {', '.join(sorted(REGISTRY))}")
        given = request_body.headers(request.environ)
        note(source=adapter.NAME)
        request_body.media_type(given, adapter.MEDIA_TYPES)
        body = request_body.read(request.environ["wsgi.input"], given, self._body_limit)
        query = request.query_string.decode("latin-1")
        path = request.environ.get("SCRIPT_NAME", "") + request.path
        hook = Delivery(request.method, path, given, body, query)
        if adapter.NAME == woocommerce.NAME and woocommerce.is_ping(hook):
            return answer({"accepted": 0, "ignored": "a ping"})
        try:
            return self._take(site, adapter, hook)
        except UnauthorizedError as error:
            if adapter.NAME != websub.NAME:
                raise UnauthorizedError(error.reason, _unproven(adapter)) from None
            # The response tells neither a hub nor any other client that the signature is wrong
            # (WebSub, 8).
            note(code=error.code, reason=error.reason)
            return answer({"accepted": 0, "ignored": websub.UNPROVEN})

    def _take(self, site: str, adapter: Adapter, hook: Delivery) -> Response:
        now = time.time()
        tenant, credentials = self._tenants.find(site, now)
        note(site=tenant and tenant.name)
        connection = _connection(tenant, adapter.NAME)
        proved = adapter.verify(hook, _keys(connection, credentials), now)
        if tenant is None or connection is None:
            raise UnauthorizedError("site-unknown" if tenant is None else "source-not-connected")
        if adapter.NAME == websub.NAME and not self._hubs.wants(site, connection, hook.query):
            raise UnauthorizedError("not-subscribed")
        note(key=adapter.NAME, delivery=proved.delivery)
        config = AdapterContext(adapter.NAME, connection, tenant.rules)
        outcomes = adapter.translate(hook, config)
        taken = take(adapter.NAME, outcomes, tenant.rules, proved.moment, int(now * 1000))
        digest = digest_of(hook.body)
        note(events=len(taken.events), digest=digest)
        if taken.ignored or taken.resyncs:
            self._record(tenant, adapter.NAME, taken)
        if not taken.events:
            return answer({"accepted": 0, "ignored": _reason(taken)})
        with self._gate.passing():
            accepted = tenant.inbox.accept(
                taken.events,
                delivery=_delivery(adapter.NAME, proved, digest),
                digest=digest,
                most=self._inbox_limit,
                rate=tenant.site.rate,
            )
        response = _answer(accepted, taken)
        if accepted.slept:
            response.call_on_close(partial(self._waker.wake, tenant.name))
        return response

    def _record(self, tenant: Tenant, source: str, taken: BuiltEvents) -> None:
        """Record ignored parts for the administrator; if the store is down, only this record is
        lost.
        """
        reasons = list(dict.fromkeys(taken.ignored))
        said = {"source": source, "reasons": reasons, "accepted": len(taken.events)}
        if taken.resyncs:
            said["resync"] = list(dict.fromkeys(taken.resyncs))
        note(ignored=reasons, resync=len(taken.resyncs))
        try:
            with self._gate.passing(), answering():
                self._client.xadd(
                    StoreKeys(tenant.name).recent,
                    {"ignored": json.dumps(said, separators=(",", ":"))},
                    maxlen=RECENT,
                    approximate=True,
                )
        except StoreError as error:
            note(unrecorded=str(error))


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
        return SenderSecrets(STRANGER.keys, STRANGER)
    return SenderSecrets(connection.secrets() or STRANGER.keys, credentials)


def _delivery(source: str, proved: Proof, digest: str) -> str | None:
    """Return the id under which this delivery is remembered: of the vendor's id and the body, since
    not all vendors' ids are unique.

    None without a vendor's id: equal bodies may mean that a page changed back (WEBHOOKS 5.8). The
    full stop keeps these ids apart from those of the native interface.
    """
    if not proved.delivery:
        return None
    return f"{source}.{digest_of(proved.delivery.encode('utf-8', 'replace'))}.{digest}"


def _reason(taken: BuiltEvents) -> str:
    return "; ".join(dict.fromkeys(taken.ignored)) or "nothing in it is about a page"


def _answer(accepted: AcceptResult, taken: BuiltEvents) -> Response:
    said = {"ignored": _reason(taken)} if taken.ignored else {}
    if taken.resyncs:
        said["resync"] = "; ".join(dict.fromkeys(taken.resyncs))
    if accepted.status == "accepted":
        return answer({"accepted": len(accepted.ids), "ids": accepted.ids, **said})
    if accepted.status == "duplicate":
        note(code="duplicate")
        return answer({"accepted": 0, "duplicate": True, "ids": accepted.ids, **said})
    if accepted.status == "limited":
        detail = f"nothing was taken: send it again in {accepted.wait} s, more slowly"
        raise RefusedError("rate-limited", detail, headers={"Retry-After": str(accepted.wait)})
    if accepted.status == "closed":
        raise RefusedError("closed", headers={"Retry-After": str(CLOSED_S)})
    raise RefusedError("inbox-full", headers={"Retry-After": str(RETRY_AFTER_S)})
