"""Read-only views: status of a site, state and listing of a page, OpenAPI document, health and
readiness.
"""

from __future__ import annotations

from urllib.parse import parse_qs

import redis
from flask import Response, g, request

from shared.admin.page_search import PageSearch, plain
from shared.errors import Fault, InvalidError, StoreError, UrlError
from shared.store.client import answering
from shared.store.publishing.quarantine import stopped
from webhook import auth
from webhook.openapi.document import document
from webhook.problems import RETRY_AFTER_S, RefusedError, UnauthorizedError
from webhook.request_body import headers
from webhook.responses import answer
from webhook.tenants import Gate, Tenant, Tenants


class StatusViews:
    """Views that only read."""

    def __init__(self, tenants: Tenants, gate: Gate, client: redis.Redis) -> None:
        self._tenants, self._gate, self._client = tenants, gate, client
        self._openapi = document()

    def site(self, site: str) -> Response:
        """Return the status of a site: counts, waiting events, time of the last publish. Raises
        UnauthorizedError, StoreError.
        """
        tenant = self._reader(site)
        with self._gate.passing():
            return answer(tenant.inspector.status())

    def entries(self, site: str) -> Response:
        """Return the file that lists the page `loc` and since when, or why it is not listed. Raises
        UnauthorizedError, InvalidError for an unusable `loc`, StoreError.
        """
        tenant = self._reader(site)
        try:
            with self._gate.passing():
                return answer(tenant.inspector.entry(_asked("loc")))
        except UrlError as error:
            raise InvalidError(Fault("loc", f"PROTOCOL {error.rule}", error.detail)) from None

    def listed(self, site: str) -> Response:
        """Return whether the published files list the page `loc`, for `sitemap.html`: anyone may
        ask for what anyone can read in the files. Raises RefusedError `not-found` for a site that
        has no such page for visitors, InvalidError, StoreError.
        """
        tenant, _ = self._tenants.find(site)
        if tenant is None or not tenant.site.viewer:
            raise RefusedError("not-found", "no site of this name has a sitemap.html")
        g.facts["site"] = tenant.name
        if not (loc := _asked("loc")):
            raise InvalidError(Fault("loc", "PROTOCOL L1", "name a page: ?loc=URL"))
        search = PageSearch(self._client, tenant.name, tenant.site)
        with self._gate.passing():
            found = answer({**plain(search.listing(loc)), "pages": search.count()})
        found.headers["Cache-Control"] = "no-store"
        return found

    def openapi(self) -> Response:
        """Return the OpenAPI description of this interface."""
        return answer(self._openapi)

    def alive(self) -> Response:
        """Return 200: the process answers."""
        return answer({"status": "ok"})

    def ready(self) -> Response:
        """Return 200 if events can be accepted and their changes are published.

        With `?accepting` only the former: the check for a load balancer, since events that wait for
        the repair of a web root are not lost, and refused ones may be. Raises RefusedError
        `not-published`, StoreError.
        """
        with self._gate.passing():
            with answering():
                if not self._client.ping():
                    raise StoreError("Redis answers, but not PONG")
            if "accepting" in parse_qs(_query(), keep_blank_values=True):
                return answer({"status": "ok"})
            found = stopped(self._client, self._tenants.names)
        if found:
            # The client is not authenticated, and the reasons name paths and sites: they go to the
            # log only.
            detail = f"of {len(found)} of {len(self._tenants.names)} sites nothing is published; "
            detail += "sitemapd status says why and what to do; events are still taken"
            reasons = "; ".join(f"{site}: {cause.reason}" for site, cause in found.items())
            retry = {"Retry-After": str(RETRY_AFTER_S)}
            raise RefusedError("not-published", detail, reason=reasons, headers=retry)
        return answer({"status": "ok"})

    def _reader(self, site: str) -> Tenant:
        """Return the site if the request carries one of its tokens. Raises UnauthorizedError
        otherwise.
        """
        tenant, credentials = self._tenants.find(site)
        auth.check_token(headers(request.environ), credentials)
        if tenant is None:
            raise UnauthorizedError("site-unknown")
        g.facts["site"] = tenant.name
        return tenant


def _query() -> str:
    return request.query_string.decode("latin-1")  # keeps each byte as it is


def _asked(name: str) -> str:
    """Return the first query parameter `name`, empty if there is none. Raises InvalidError if not
    UTF-8.

    Flask's own parsing raises UnicodeDecodeError on raw bytes that are not UTF-8.
    """
    query = _query()
    given = parse_qs(query, encoding="latin-1").get(name, [""])[0]
    try:
        return given.encode("latin-1").decode()
    except UnicodeDecodeError:
        fault = Fault(name, "PROTOCOL L3", "write the URL in UTF-8 and escape its bytes")
        raise InvalidError(fault) from None
