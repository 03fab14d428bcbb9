"""Conversion of a stored event to native JSON and to a curl command. Pure."""

from __future__ import annotations

import json
import shlex
from typing import Any

from shared.events.event import NATIVE, Event

VARIABLE = "SITEMAPD_TOKEN"
_OURS = ("v", "source", "kind", "locale")


def native(event: Event) -> dict[str, Any]:
    """Return the native JSON object of `event`; parsing it gives the same event, without the fields
    of `lost`.
    """
    stored: dict[str, Any] = json.loads(event.dump())
    members = {name: value for name, value in stored.items() if name not in _OURS}
    if event.alternates:
        pairs = event.alternates
        members["alternates"] = [{"hreflang": code, "href": href} for code, href in pairs]
    return members


def lost(event: Event) -> dict[str, str]:
    """Return the fields without a native counterpart: the CMS an id belongs to."""
    values = {"source": event.source, "kind": event.kind, "locale": event.locale}
    return {name: value for name, value in values.items() if value not in {"", NATIVE}}


def curl(event: Event, site: str, address: str) -> str:
    """Return shell lines that send `event` to the service at `address`.

    They hold no secret: the token of the site is read from the variable VARIABLE.
    """
    target = shlex.quote(f"{address.rstrip('/')}/v1/sites/{site}/events")
    body = shlex.quote(json.dumps(native(event), separators=(",", ":")))
    lines = []
    if found := lost(event):
        said = ", ".join(f"{name} {json.dumps(value)}" for name, value in found.items())
        lines.append(f"# it came with {said}, which the HTTP API does not accept:")
        lines.append(
            "# the new event gets an id of its own. To send the original again: sitemapd "
            "event replay"
        )
    lines.append(
        f"curl -sS {target} -H 'content-type: application/json' "
        f'-H "authorization: Bearer ${VARIABLE}" --data-binary {body}'
    )
    return "\n".join(lines)
