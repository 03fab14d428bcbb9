"""Verify the address of a claimed crawler: reverse lookup, then forward, must agree.

The operators document this method (shared/crawls/crawlers.py names their pages). A name alone
proves nothing: the owner of an address chooses its name.

The system resolves, not dnspython: two lookups of one address need no library, and the names that
the host of a crawler has here (/etc/hosts, nsswitch) count as the system says. All that dnspython
would add is a deadline, which a thread gives.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from queue import Empty, SimpleQueue
from threading import Thread
from typing import NamedTuple

from shared.crawls.crawlers import CrawlerEngine

GENUINE, FAKE, UNANSWERED, CLAIMED = "genuine", "fake", "unanswered", "claimed"
"""Verified; refuted; unknown, as DNS did not answer; no way to verify by DNS."""

LOOKUP_S = 5.0
BUDGET_S = 300.0


class Resolver(NamedTuple):
    """Two lookups: the names of an address, the addresses of a name; empty if there are none.

    Both raise OSError if the answer is not known.
    """

    names: Callable[[str], Sequence[str]]
    addresses: Callable[[str], Sequence[str]]


def _names(address: str) -> Sequence[str]:
    try:
        name, aliases, _ = socket.gethostbyaddr(address)
    except socket.herror as error:
        if error.errno in {1, 4}:  # HOST_NOT_FOUND, NO_DATA of netdb.h: an answer
            return ()
        raise
    return (name, *aliases)


def _addresses(name: str) -> Sequence[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno == socket.EAI_NONAME:
            return ()
        raise
    return [str(place[0]) for *_, place in found]


SYSTEM = Resolver(_names, _addresses)


class CrawlerVerifier:
    """Verifier with one lookup per address, of at most `lookup_s`, and `budget_s` for all."""

    def __init__(
        self, resolver: Resolver = SYSTEM, lookup_s: float = LOOKUP_S, budget_s: float = BUDGET_S
    ) -> None:
        self._resolver, self._lookup_s, self._left_s = resolver, lookup_s, budget_s
        self._known: dict[str, frozenset[str] | None] = {}

    def verdict(self, engine: CrawlerEngine, address: str) -> str:
        """Return GENUINE, FAKE, UNANSWERED or CLAIMED."""
        if not engine.domains:
            return CLAIMED
        if address not in self._known:
            self._known[address] = self._confirmed(address)
        names = self._known[address]
        if names is None:
            return UNANSWERED
        ours = any(f".{name}".endswith(f".{domain}") for name in names for domain in engine.domains)
        return GENUINE if ours else FAKE

    def _confirmed(self, address: str) -> frozenset[str] | None:
        """The names of `address` that lead back to it; None if that is not known."""
        try:
            meant = ip_address(address)
        except ValueError:
            return None  # a name from the web server's lookup, of an unknown method
        if self._left_s <= 0:
            return None
        began = time.monotonic()
        try:
            return _within(self._lookup_s, lambda: self._lead_back(str(meant)))
        finally:
            self._left_s -= time.monotonic() - began

    def _lead_back(self, address: str) -> frozenset[str] | None:
        try:
            names = {name.rstrip(".").lower() for name in self._resolver.names(address)}
            return frozenset(name for name in names if address in self._resolver.addresses(name))
        except (OSError, UnicodeError):  # UnicodeError: a name that is not valid
            return None


def _within(seconds: float, ask: Callable[[], frozenset[str] | None]) -> frozenset[str] | None:
    """The result of `ask`, None if it takes longer: the system's lookups have no deadline."""
    answer: SimpleQueue[frozenset[str] | None] = SimpleQueue()
    Thread(target=lambda: answer.put(ask()), daemon=True).start()
    try:
        return answer.get(timeout=seconds)
    except Empty:
        return None
