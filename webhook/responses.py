"""Responses of the webhook: JSON, a request id, problems for errors, one log line per request.

The log line holds sender, action, reason and duration; never a body, a token, a secret or a
signature (RELIABILITY T30).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, NamedTuple

from flask import Flask, Request, Response, g, request
from flask.sessions import NullSession, SessionInterface
from werkzeug.exceptions import HTTPException
from werkzeug.routing import MapAdapter
from werkzeug.wsgi import ClosingIterator, get_host

from shared.admin.outcomes import counted
from shared.errors import InvalidError, StoreError
from shared.store.inbox.inbox import AcceptResult
from shared.telemetry import logs
from webhook.log_throttle import LogThrottle
from webhook.problems import CLOSED_S, PROBLEMS, RETRY_AFTER_S, RefusedError, document

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_LOG = logs.logger("webhook")
_encode = json.JSONEncoder(separators=(",", ":")).encode

_OF_STATUS = {404: "not-found", 405: "method-not-allowed", 413: "too-large", 415: "media-type"}
"""Problem codes for the framework's own refusals; its redirects count as unknown addresses."""


DELIVERIES = frozenset({"events", "hooks", "feeds"})
"""Endpoints of deliveries."""


class AnsweredDelivery(NamedTuple):
    """One delivery for the metrics: `site` and `key` are empty until they are verified."""

    site: str
    status: int
    code: str
    events: int
    key: str
    took_s: float


Refused = Callable[[str | None, Mapping[str, Any]], None]
"""Called for every refusal with the site in the address and the known facts."""

Measured = Callable[[AnsweredDelivery], None]
"""Called for every answered delivery; must not wait."""


class RequestFacts(dict[str, Any]):
    """The values of a request's log line, with its id and its start by `time.perf_counter`."""

    def __init__(self) -> None:
        self.began, self.request_id = time.perf_counter(), os.urandom(8).hex()


class _NoSessions(SessionInterface):
    _none = NullSession()

    def open_session(self, app: Flask, request: Request) -> NullSession:  # noqa: ARG002
        return self._none

    def is_null_session(self, obj: object) -> bool:
        return obj is self._none


class LeanFlask(Flask):
    """Flask without parts that no view here uses, a quarter of the time of an empty view
    (measured): coroutines as views, sessions in cookies, routing by host name.
    """

    session_interface = _NoSessions()

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return `func`, which is no coroutine."""
        return func

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Return what matches the path of `request`, read once by it. No rule redirects, so that
        the query is not needed.
        """
        if request is None or "HTTP_UPGRADE" in request.environ:
            return super().create_url_adapter(request)
        request.host = get_host(request.environ)
        return self.url_map.bind(
            request.host, request.root_path, "", request.scheme, request.method, request.path
        )


class _WholeResponse(Response):
    """A response whose body and length are known, with a status that has a body."""

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "HEAD":
            return super().__call__(environ, start_response)
        start_response(self.status, self.headers.to_wsgi_list())
        body = self.iter_encoded()
        return ClosingIterator(body, self.close) if self._on_close else body


def install(app: Flask, measured: Measured, refused: Refused | None = None) -> None:
    """Give every request of `app` an id and a log line, and every error a problem document.

    Views write what the log line shall tell to the dict `g.facts`.
    """
    app.before_request(_begin)
    app.after_request(partial(_end, measured, refused, LogThrottle(_repeated)))
    app.register_error_handler(Exception, _refuse)


def _begin() -> None:
    g.facts = RequestFacts()


def _end(
    measured: Measured, refused: Refused | None, repeats: LogThrottle, response: Response
) -> Response:
    facts: RequestFacts = g.facts
    took_s, request_id = time.perf_counter() - facts.began, facts.request_id
    status, headers, code = response.status_code, response.headers, facts.get("code", "")
    headers["X-Request-Id"] = request_id
    headers["X-Content-Type-Options"] = "nosniff"
    if "Cache-Control" not in headers:
        headers["Cache-Control"] = "no-store"
    if request.endpoint in DELIVERIES:
        site, events, key = facts.get("site") or "", facts.get("events", 0), facts.get("key", "")
        measured(AnsweredDelivery(site, status, code, events, key, took_s))
    kind = status, code, facts.get("site", ""), facts.get("source", "")
    if status < 400 or repeats.singly(kind):
        ms = round(took_s * 1000, 2)
        _LOG.info("answered", request_id=request_id, status=status, ms=ms, **facts)
    # Unsigned requests of a hub are ignored with status 200 (webhook/views/cms_hook_view.py).
    turned_away = status >= 400 or code == "unauthorized"
    if refused is not None and turned_away and request.method == "POST":
        known = {"request": request_id, "status": status, **facts, "faults": g.get("faults", ())}
        known["client"] = _client()
        refused((request.view_args or {}).get("site"), known)
    return response


def _client() -> str:
    """Return the address of who sent this request, for a note; empty if it is not known.

    A proxy on this machine names it last in X-Forwarded-For (deploy/nginx). Nothing is decided by
    it (RELIABILITY T29).
    """
    peer = _address(request.remote_addr or "")
    if peer is None or peer.is_loopback:
        named = _address(request.headers.get("X-Forwarded-For", "").rpartition(",")[2])
        peer = named or peer
    return str(peer or "")


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text.strip())
    except ValueError:
        return None


def _repeated(kind: Hashable, more: int) -> None:
    status, code, site, source = kind if isinstance(kind, tuple) else (kind, "", "", "")
    _LOG.info(
        "equal answers not logged", status=status, code=code, site=site, source=source, more=more
    )


def answer(value: object, status: int = 200) -> Response:
    """Return `value` as a JSON response."""
    return _WholeResponse(_encode(value), status, content_type="application/json")


def accepted(result: AcceptResult, further: Mapping[str, object], status: int = 200) -> Response:
    """Return the response to a delivery that the inbox gave this `result`, with `further` members;
    `status` if its events were accepted. Raises RefusedError if it was not taken.
    """
    if result.status == "accepted":
        return answer({"accepted": len(result.ids), "ids": result.ids, **further}, status)
    if result.status == "duplicate":
        g.facts["code"] = "duplicate"
        return answer({"accepted": 0, "duplicate": True, "ids": result.ids, **further})
    if result.status == "conflict":
        g.facts["stands"] = result.digest
        raise RefusedError("conflict", "the first body stands: give a new delivery a new id")
    if result.status == "limited":
        detail = f"nothing was taken: send it again in {result.wait} s, more slowly"
        raise RefusedError("rate-limited", detail, headers={"Retry-After": str(result.wait)})
    if result.status == "closed":
        raise RefusedError("closed", headers={"Retry-After": str(CLOSED_S)})
    raise RefusedError("inbox-full", headers={"Retry-After": str(RETRY_AFTER_S)})


def _refuse(error: Exception) -> Response:
    """Return the problem for an exception; one that is not ours is logged with its trace."""
    if isinstance(error, RefusedError):
        return _problem(error.code, str(error), error.reason, headers=error.headers)
    if isinstance(error, InvalidError):
        reason = ", ".join(sorted({fault.rule for fault in error.faults}))
        detail = f"{counted(len(error.faults), 'fault')}; nothing was accepted"
        return _problem("invalid", detail, reason, faults=error.faults)
    if isinstance(error, StoreError):
        detail = f"nothing is lost if you send it again in {RETRY_AFTER_S} s"
        headers = {"Retry-After": str(RETRY_AFTER_S)}
        return _problem("store-down", detail, f"{type(error).__name__}: {error}", headers=headers)
    status = error.code or 500 if isinstance(error, HTTPException) else 500
    if isinstance(error, HTTPException) and status < 500:
        code = _OF_STATUS.get(status, "not-found" if status < 400 else "malformed")
        allow = {name: value for name, value in error.get_headers() if name == "Allow"}
        return _problem(code, "", f"http {status}", headers=allow)
    _LOG.error("internal error", request_id=g.facts.request_id, exc_info=error)
    return _problem("internal", "", type(error).__name__)


def _problem(
    code: str, detail: str, reason: str, *, headers: dict[str, str] | None = None, faults: Any = ()
) -> Response:
    g.facts.update(code=code, reason=reason)
    g.faults = faults
    found = document(code, detail, g.facts.request_id, faults)
    response = answer(found, PROBLEMS[code].status)
    response.content_type = "application/problem+json"
    response.headers.update(headers or {})
    if response.status_code == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="sitemapd"'
    return response
