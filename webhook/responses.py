"""Responses of the webhook: JSON, a request id, problems for errors, one log line per request.

The log line holds sender, action, reason and duration; never a body, a token, a secret or a
signature (RELIABILITY T30).
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, NamedTuple

from flask import Flask, Response, g, request
from werkzeug.exceptions import HTTPException

from shared.admin.outcomes import counted
from shared.errors import InvalidError, StoreError
from shared.store.inbox.inbox import AcceptResult
from shared.telemetry import logs
from webhook.log_throttle import LogThrottle
from webhook.problems import CLOSED_S, PROBLEMS, RETRY_AFTER_S, RefusedError, document

_LOG = logs.logger("webhook")

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


def install(app: Flask, measured: Measured, refused: Refused | None = None) -> None:
    """Give every request of `app` an id and a log line, and every error a problem document.

    Views write what the log line shall tell to the dict `g.facts`.
    """
    app.before_request(_begin)
    app.after_request(partial(_end, measured, refused, LogThrottle(_repeated)))
    app.register_error_handler(Exception, _refuse)


def _begin() -> None:
    g.began = time.perf_counter()
    g.request_id = secrets.token_hex(8)
    g.facts = {}


def _end(
    measured: Measured, refused: Refused | None, repeats: LogThrottle, response: Response
) -> Response:
    took_s, request_id, facts = time.perf_counter() - g.began, g.request_id, g.facts
    status, headers, code = response.status_code, response.headers, facts.get("code", "")
    headers["X-Request-Id"] = request_id
    headers["X-Content-Type-Options"] = "nosniff"
    headers.setdefault("Cache-Control", "no-store")
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
        refused((request.view_args or {}).get("site"), known)
    return response


def _repeated(kind: Hashable, more: int) -> None:
    status, code, site, source = kind if isinstance(kind, tuple) else (kind, "", "", "")
    _LOG.info(
        "equal answers not logged", status=status, code=code, site=site, source=source, more=more
    )


def answer(value: object, status: int = 200) -> Response:
    """Return `value` as a JSON response."""
    text = json.dumps(value, separators=(",", ":"))
    return Response(text, status, content_type="application/json")


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
    _LOG.error("internal error", request_id=g.request_id, exc_info=error)
    return _problem("internal", "", type(error).__name__)


def _problem(
    code: str, detail: str, reason: str, *, headers: dict[str, str] | None = None, faults: Any = ()
) -> Response:
    g.facts.update(code=code, reason=reason)
    g.faults = faults
    found = document(code, detail, g.request_id, faults)
    response = answer(found, PROBLEMS[code].status)
    response.content_type = "application/problem+json"
    response.headers.update(headers or {})
    if response.status_code == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="sitemapd"'
    return response
