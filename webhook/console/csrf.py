"""Is this request meant for the console, and does a POST come from one of its own pages?"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from shared.config.console import Console, is_loopback

HOME = "/admin/"


def origin(console: Console, host: str) -> str | None:
    """The origin under which the console is asked for at `host`, None if it is not there.

    The port in `host` is not compared: nginx sends none. It is what a page of another site cannot
    choose that counts, the name (DNS rebinding, RELIABILITY T29).
    """
    name = _name(host)
    if not console.origin:
        return f"http://{host}" if is_loopback(name) else None
    return next((known for known in console.origin if urlsplit(known).hostname == name), None)


def ours(headers: Mapping[str, str], known: str) -> bool:
    """Whether a POST with `headers` (names in lower case) was sent by a page of the origin `known`.

    Browsers send Origin with every POST; where something on the way took it out, Sec-Fetch-Site or
    Referer tell (OWASP, Cross-Site Request Forgery Prevention). Nothing at all is a no.
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
    """`address` if it is one of the console's pages, else its first: where a login leads to."""
    parts = urlsplit(address)
    plain = address.isascii() and address.isprintable() and "\\" not in address
    if plain and not parts.scheme and not parts.netloc and parts.path.startswith(HOME):
        return address
    return HOME
