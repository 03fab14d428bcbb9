"""An HTTP request, its answer, and where it may go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class OutboundRequest(NamedTuple):
    """What is sent; `shown` is the address without secrets, for people and logs.

    `partly`: of an answer that is too long the beginning is wanted, by default it is an error.
    """

    method: str
    url: str
    shown: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    partly: bool = False


class OutboundAnswer(NamedTuple):
    """What came back: names of headers in lower case, several of one name joined by commas, at most
    64 KiB of body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class AllowedHosts(NamedTuple):
    """Where requests may go: `hosts`; `http` without TLS; `private` to networks of one's own."""

    hosts: frozenset[str]
    private: bool = False
    http: bool = False


Outbound = Callable[[OutboundRequest, AllowedHosts], OutboundAnswer]
"""Sends a request; raises OutboundError, of which BarredError if it is not allowed to leave."""


def excerpt(said: object) -> str:
    """The beginning of what an engine said, on one line, for people; empty if it is no text."""
    if not isinstance(said, bytes | str):
        return ""
    text = said[:1000].decode("utf-8", "replace") if isinstance(said, bytes) else said[:1000]
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:200]
