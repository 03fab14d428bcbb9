"""The numbers that stand for sections in the records of pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import redis

from shared.errors import ConfigError, Fault, StoreError
from shared.locator import MAX_SECTIONS
from shared.store.contract import Keys
from shared.store.redis import answering

FORM = 3
"""Of the state: 1 had sections of 8 bits and shards of 24, 2 the keys of a section beside those of
everything else (`{site}:<section>:shards`).
"""


class Sections:
    """The numbers of one site's sections."""

    def __init__(self, client: redis.Redis, site: str, configured: Iterable[str]) -> None:
        self._client, self._keys = client, Keys(site)
        self._configured = frozenset(configured)
        self._numbers: dict[str, int] = {}

    def numbers(self, named: Iterable[str] = ()) -> dict[str, int]:
        """The number of each section that ever was, given at first use and never changed.

        Those that are configured or `named` get one now. ConfigError if there are too many,
        StoreError if the state is that of another version.
        """
        wanted = {*self._configured, *named}
        if not wanted <= self._numbers.keys():
            self._read()
            for name in sorted(wanted - self._numbers.keys()):
                self._number(name)
        return self._numbers

    def names(self) -> dict[int, str]:
        """The sections by their numbers; none is given one."""
        if not self._configured <= self._numbers.keys():
            self._read()
        return {number: name for name, number in self._numbers.items()}

    def forget(self) -> None:
        """Read all anew at the next use: another process has added some."""
        self._numbers = {}

    def _read(self) -> None:
        with answering():
            known: Any = self._client.hgetall(self._keys.sections)
            form: Any = self._client.hget(self._keys.counters, "form")
        if form != str(FORM).encode() and (known or form is not None):
            found = "1" if form is None else form.decode(errors="replace")
            raise StoreError(
                f"this state is of another version of sitemapd (form {found}, this one reads form "
                f"{FORM}): run that version until `sitemapd status` counts no waiting events, keep "
                "the published files, empty Redis, and `sitemapd import` them"
            )
        self._numbers = {name.decode(): int(number) for name, number in known.items()}

    def _number(self, name: str) -> None:
        """Give `name` its number."""
        with answering():
            self._client.hsetnx(self._keys.counters, "form", str(FORM))
            number = int(self._client.hincrby(self._keys.counters, "sections", 1))
            if number > MAX_SECTIONS:
                detail = f"at most {MAX_SECTIONS} ever per site"
                raise ConfigError(Fault("sections", "limit", detail))
            self._client.hsetnx(self._keys.sections, name, str(number))
            stored: Any = self._client.hget(self._keys.sections, name)
        self._numbers[name] = int(stored)


class Draft(Sections):
    """The numbers as they would be: those that nobody has given yet are given here alone."""

    def _number(self, name: str) -> None:
        self._numbers[name] = max(self._numbers.values(), default=0) + 1
