"""What the webhook tells: counts of a site, where a page is, whether it is alive and ready."""

from __future__ import annotations

import time
from urllib.parse import parse_qs

import redis
from flask import Response, request

from shared.errors import Fault, InvalidError, StoreError, UrlError
from shared.store.client import answering
from shared.store.publishing.quarantine import stopped
from webhook import auth
from webhook.openapi.document import document
from webhook.problems import RETRY_AFTER_S, RefusedError, UnauthorizedError
from webhook.responses import answer, headers, note
from webhook.tenants import Gate, Tenant, Tenants


class StatusViews:
    """The addresses that only read."""

    def __init__(self, tenants: Tenants, gate: Gate, client: redis.Redis) -> None:
        self._tenants, self._gate, self._client = tenants, gate, client
        self._openapi = document()

    def site(self, site: str) -> Response:
        """How one site is doing: counts, what waits, what was published when."""
        tenant = self._reader(site)
        with self._gate.passing():
            return answer(tenant.inspector.status())

    def entries(self, site: str) -> Response:
        """Where the page `loc` is listed and since when, or why it is not."""
        tenant = self._reader(site)
        try:
            with self._gate.passing():
                return answer(tenant.inspector.entry(_asked("loc")))
        except UrlError as error:
            raise InvalidError(Fault("loc", f"PROTOCOL {error.rule}", error.detail)) from None

    def openapi(self) -> Response:
        """The description of this interface."""
        return answer(self._openapi)

    def alive(self) -> Response:
        """The process answers."""
        return answer({"status": "ok"})

    def ready(self) -> Response:
        """Events can be taken, and what they change is published.

        With `?accepting` only the former: what a load balancer asks, since events that wait for
        the cure of a web root are not lost, and a refused one may be.
        """
        with self._gate.passing():
            with answering():
                if not self._client.ping():
                    raise StoreError("Redis answers, but not PONG")
            if "accepting" in parse_qs(_query(), keep_blank_values=True):
                return answer({"status": "ok"})
            found = stopped(self._client, self._tenants.names)
        if found:
            # Whoever asks is unknown: what stands in the way names paths and sites.
            said = f"of {len(found)} of {len(self._tenants.names)} sites nothing is published; "
            said += "sitemapd status says why and what to do; events are still taken"
            reasons = "; ".join(f"{site}: {cause.reason}" for site, cause in found.items())
            retry = {"Retry-After": str(RETRY_AFTER_S)}
            raise RefusedError("not-published", said, reason=reasons, headers=retry)
        return answer({"status": "ok"})

    def _reader(self, site: str) -> Tenant:
        """The site, for who knows one of its tokens; UnauthorizedError for anybody else."""
        tenant, credentials = self._tenants.find(site, time.time())
        auth.check_token(headers(), credentials)
        if tenant is None:
            raise UnauthorizedError("site-unknown")
        note(site=tenant.name)
        return tenant


def _query() -> str:
    return request.query_string.decode("latin-1")  # keeps each byte as it is


def _asked(name: str) -> str:
    """The first member `name` of the query, empty if there is none; InvalidError if not UTF-8.

    Flask's own reading raises UnicodeDecodeError on raw bytes that are none.
    """
    query = _query()
    given = parse_qs(query, encoding="latin-1").get(name, [""])[0]
    try:
        return given.encode("latin-1").decode()
    except UnicodeDecodeError:
        fault = Fault(name, "PROTOCOL L3", "write the URL in UTF-8 and escape its bytes")
        raise InvalidError(fault) from None
