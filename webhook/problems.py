"""Refusals of the webhook: RFC 9457 problems from one closed list, without a framework.

A problem says what to do and carries a request id; never a trace, a body or a secret (RELIABILITY
2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shared.errors import Fault, SitemapdError

TYPE = "urn:sitemapd:problem:"
RETRY_AFTER_S = 5
CLOSED_S = 60
"""Retry-After, in seconds, for a site that an administrator has closed."""
MAX_FAULTS = 100
"""Faults listed in one response; a sender with more than that repeats the same one."""


class Problem(NamedTuple):
    """One kind of refusal: its HTTP status and its title."""

    status: int
    title: str


PROBLEMS = {
    "malformed": Problem(400, "The request is malformed"),
    "json": Problem(400, "The body is not strict JSON"),
    "unauthorized": Problem(401, "The request is not authenticated"),
    "stale": Problem(401, "The signature is too old or too new"),
    "not-found": Problem(404, "No resource at this address"),
    "method-not-allowed": Problem(405, "Method not allowed at this address"),
    "timeout": Problem(408, "The body did not arrive in time"),
    "conflict": Problem(409, "The delivery id was already used for another body"),
    "exists": Problem(409, "What is to be added is there already"),
    "last-site": Problem(409, "The last site cannot be removed: add the next one first"),
    "length-required": Problem(411, "Content-Length is required"),
    "too-large": Problem(413, "The body is too large"),
    "too-many": Problem(413, "The body holds too many events"),
    "media-type": Problem(415, "The media type of the body is not supported"),
    "content-encoding": Problem(415, "The body must not be compressed"),
    "invalid": Problem(422, "The request contains invalid fields"),
    "rate-limited": Problem(429, "The event rate of this site is exceeded"),
    "internal": Problem(500, "Internal error"),
    "interrupted": Problem(503, "The body is incomplete"),
    "store-down": Problem(503, "Events cannot be stored at present"),
    "not-published": Problem(503, "Events are accepted, but publishing is stopped for some site"),
    "not-changed": Problem(503, "The configuration file cannot be written: see the log"),
    "inbox-full": Problem(503, "Too many events are waiting"),
    "closed": Problem(503, "An administrator has closed the intake of this site"),
}
"""Every code a sender can receive. `internal` is listed, but always indicates a bug in sitemapd."""


OF_OPERATORS = frozenset({"exists", "last-site", "not-changed"})
"""Codes of the operator's API, which no delivery receives."""
OF_DELIVERIES = tuple(code for code in PROBLEMS if code not in OF_OPERATORS | {"internal"})


class RefusedError(SitemapdError):
    """The request is refused; `code` is one of PROBLEMS.

    `reason` is for the log and may tell more than the sender may know; `headers` are added to the
    response.
    """

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        reason: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail or PROBLEMS[code].title)
        self.code = code
        self.reason = reason or code
        self.headers = dict(headers or {})


class UnauthorizedError(RefusedError):
    """The sender is not authenticated; the response is the same for every cause (RELIABILITY T1,
    T5).
    """

    DETAIL = (
        "sign the request (Standard Webhooks) with a secret of this site, or send one of "
        "its tokens as Bearer; credentials of another site and unknown site names get "
        "this answer, too"
    )

    def __init__(self, reason: str, detail: str = DETAIL) -> None:
        """`detail` depends only on the request's address, never on the cause."""
        super().__init__("unauthorized", detail, reason=reason)


def document(
    code: str, detail: str, request_id: str, faults: Iterable[Fault] = ()
) -> dict[str, object]:
    """Return the problem as an RFC 9457 document."""
    status, title = PROBLEMS[code]
    found: dict[str, object] = {
        "type": TYPE + code,
        "title": title,
        "status": status,
        "detail": detail or title,
        "code": code,
        "request_id": request_id,
    }
    errors = [
        {"item": fault.item, "field": fault.field, "rule": fault.rule, "detail": fault.detail}
        for fault in faults
    ]
    if errors:
        found["errors"] = errors[:MAX_FAULTS]
    return found
