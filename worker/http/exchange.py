"""An outgoing HTTP request, its answer, and its allowed hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class OutboundRequest(NamedTuple):
    """A request; `shown` is the address without secrets, for display and logs.

    With `partly` a too long answer is cut; by default it is an error.
    """

    method: str
    url: str
    shown: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    partly: bool = False


class OutboundAnswer(NamedTuple):
    """An answer: header names in lower case, repeated ones joined by commas, at most 64 KiB of
    body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class AllowedHosts(NamedTuple):
    """Allowed destinations: `hosts`; `http` without TLS; `private` networks."""

    hosts: frozenset[str]
    private: bool = False
    http: bool = False


Outbound = Callable[[OutboundRequest, AllowedHosts], OutboundAnswer]
"""Sends a request; raises OutboundError, and BarredError if it may not be sent."""


def excerpt(said: object) -> str:
    """Return the beginning of an engine's text, on one line, for display; empty if it is not
    text.
    """
    if not isinstance(said, bytes | str):
        return ""
    text = said[:1000].decode("utf-8", "replace") if isinstance(said, bytes) else said[:1000]
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:200]
