"""Members of an event about the answer of its page: status and redirect (PROTOCOL L8).

A page that is gone or has moved for good must not be listed. Any other answer but 200 may pass:
the page stays as the event says, and the sender is warned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shared.errors import UrlError
from shared.events.event_fields import EventFields
from shared.sitemap import urls

GONE = frozenset({404, 410})
MOVED = frozenset({301, 308})
REDIRECTS = frozenset({*MOVED, 302, 303, 307})
LEAST, MOST = 100, 599

_RULE = "PROTOCOL L8"


def _status(members: EventFields) -> int | None:
    value = members.item["status"]
    if value is None:
        return None
    if type(value) is not int or not LEAST <= value <= MOST:
        members.fault("status", "status", f"must be an HTTP status, {LEAST} to {MOST}")
        return None
    if value not in GONE | MOVED and value != 200:
        detail = f"{value} may pass: the page stays listed; send 404, 410, 301 or 308 if it is gone"
        members.warn("status", _RULE, detail)
    return value


def _redirect_to(members: EventFields) -> str | None:
    text = members.text("redirect_to")
    if text is None:
        return None
    try:
        target = urls.absolute(text)
    except UrlError as error:
        members.fault("redirect_to", f"PROTOCOL {error.rule}", error.detail)
        return None
    status = members.item.get("status")
    if type(status) is int and status not in REDIRECTS:
        members.fault("redirect_to", "status", f"{status} is no redirect: leave one of both out")
    elif target == members.loc:
        members.fault("redirect_to", _RULE, "is the page itself: send where it leads in the end")
    return target


CHECKS: Mapping[str, Callable[[EventFields], object]] = {
    "status": _status, "redirect_to": _redirect_to,
}  # fmt: skip


def is_sound(status: object) -> bool:
    """True if `status` is one that was accepted."""
    return status is None or (type(status) is int and LEAST <= status <= MOST)


def gone(status: int | None, redirect_to: str | None) -> str:
    """Return why a page with this answer must not be listed; empty if it may.

    A redirect without a status is one for good.
    """
    if status in GONE:
        return f"it answers {status}"
    if redirect_to and (status is None or status in MOVED):
        return f"moved for good to {redirect_to}"
    return f"it answers {status}, moved for good" if status in MOVED else ""
