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
from typing import Any

from flask import Flask, Response, g, request
from werkzeug.exceptions import HTTPException

from shared import logs
from shared.admin.outcomes import counted
from shared.errors import InvalidError, StoreError
from webhook.log_throttle import LogThrottle
from webhook.problems import PROBLEMS, RETRY_AFTER_S, RefusedError, document

_LOG = logs.logger("webhook")

_OF_STATUS = {404: "not-found", 405: "method-not-allowed", 413: "too-large", 415: "media-type"}
"""Problem codes for the framework's own refusals; its redirects count as unknown addresses."""


def answer(value: object, status: int = 200) -> Response:
    """Return `value` as a JSON response."""
    text = json.dumps(value, separators=(",", ":"))
    return Response(text, status, content_type="application/json")


def note(**facts: object) -> None:
    """Add `facts` to the log line of this request."""
    g.facts.update(facts)


Refused = Callable[[str | None, Mapping[str, Any]], None]
"""Called for every refusal with the site in the address and the known facts."""


def install(app: Flask, refused: Refused | None = None) -> None:
    """Give every request of `app` an id and a log line, and every error a problem document."""
    app.before_request(_begin)
    app.after_request(partial(_end, refused, LogThrottle(_repeated)))
    app.register_error_handler(Exception, _refuse)


def _begin() -> None:
    g.began = time.perf_counter()
    g.request_id = secrets.token_hex(8)
    g.facts = {}
    g.faults = ()


def _repeated(kind: Hashable, more: int) -> None:
    status, code, site, source = kind if isinstance(kind, tuple) else (kind, "", "", "")
    _LOG.info(
        "equal answers not logged", status=status, code=code, site=site, source=source, more=more
    )


def _end(refused: Refused | None, repeats: LogThrottle, response: Response) -> Response:
    response.headers["X-Request-Id"] = g.request_id
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers.setdefault("Cache-Control", "no-store")
    ms = round((time.perf_counter() - g.began) * 1000, 2)
    status, facts = response.status_code, g.facts
    kind = (status, *(facts.get(name, "") for name in ("code", "site", "source")))
    if status < 400 or repeats.singly(kind):
        _LOG.info("answered", request_id=g.request_id, status=status, ms=ms, **facts)
    # Unsigned requests of a hub are ignored with status 200 (webhook/views/cms_hook_view.py).
    turned_away = response.status_code >= 400 or g.facts.get("code") == "unauthorized"
    if refused is not None and turned_away and request.method == "POST":
        known = {"request": g.request_id, "status": response.status_code, **g.facts}
        refused((request.view_args or {}).get("site"), known | {"faults": g.faults})
    return response


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
    note(code=code, reason=reason)
    g.faults = faults
    found = document(code, detail, g.request_id, faults)
    response = answer(found, PROBLEMS[code].status)
    response.content_type = "application/problem+json"
    response.headers.update(headers or {})
    if response.status_code == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="sitemapd"'
    return response
