"""Request forgery checks: is a Host one of the console, does a POST come from one of its pages."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from shared.config.console import Console, is_loopback

HOME = "/admin/"


def origin(console: Console, host: str) -> str | None:
    """Return the origin of the console for the Host header `host`, None if it is not the console's.

    The port in `host` is not compared: nginx sends none. The name is what a page of another site
    cannot choose (DNS rebinding, RELIABILITY T29).
    """
    name = _name(host)
    if not console.origin:
        return f"http://{host}" if is_loopback(name) else None
    return next((known for known in console.origin if urlsplit(known).hostname == name), None)


def ours(headers: Mapping[str, str], known: str) -> bool:
    """Return True if a POST with `headers` (names in lower case) came from a page of the origin
    `known`.

    Browsers send Origin with every POST; if a proxy removed it, Sec-Fetch-Site or Referer decides
    (OWASP, Cross-Site Request Forgery Prevention). Without any of them the result is False.
    """
    if (given := headers.get("origin")) is not None:
        return given == known
    if (site := headers.get("sec-fetch-site")) is not None:
        return site == "same-origin"
    referer = urlsplit(headers.get("referer", ""))
    return f"{referer.scheme}://{referer.netloc}" == known


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def inside(address: str) -> str:
    """Return `address`, the target after a login, if it is a page of the console, else HOME."""
    parts = urlsplit(address)
    plain = address.isascii() and address.isprintable() and "\\" not in address
    if plain and not parts.scheme and not parts.netloc and parts.path.startswith(HOME):
        return address
    return HOME
