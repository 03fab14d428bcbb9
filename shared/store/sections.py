"""The numbers that stand for sections in the records of pages."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

import redis

from shared.domain.page_record import MAX_SECTIONS
from shared.errors import ConfigError, Fault, StoreError
from shared.store.client import answering
from shared.store.keys import Keys

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
        self._numbering = b""

    def numbers(self, named: Iterable[str] = ()) -> dict[str, int]:
        """The number of each section that ever was, given at first use and never changed.

        Those that are configured or `named` get one now. ConfigError if there are too many,
        StoreError if the state is that of another version.
        """
        wanted, known = {*self._configured, *named}, self._numbers
        if not wanted <= known.keys():
            known = self._read()
            for name in sorted(wanted - known.keys()):
                known[name] = self._number(name)
        return known

    def names(self, numbers: Iterable[int] = ()) -> dict[int, str]:
        """The sections by their numbers; none is given one.

        One of `numbers` that is not known was given by another process since: all are read anew.
        StoreError if there is no such section even then.
        """
        wanted, known = set(numbers), self._numbers
        if not self._configured <= known.keys() or not wanted <= {*known.values()}:
            known = self._read()
        named = {number: name for name, number in known.items()}
        if strange := wanted - named.keys():
            raise StoreError(f"a page is recorded in section {min(strange)}, which does not exist")
        return named

    def forget(self) -> None:
        """Read all anew at the next use: another process has added some."""
        self._numbers = {}  # a new one: another thread may be reading the old one

    def check(self, numbering: bytes, count: int) -> None:
        """Forget all if Redis holds another `numbering`, or another number of sections: another
        process has added some, or the state was emptied or replaced under this one.
        """
        if (numbering, count) != (self._numbering, len(self._numbers)):
            self.forget()

    def _read(self) -> dict[str, int]:
        with answering():
            known: Any = self._client.hgetall(self._keys.sections)
            stamps: Any = self._client.hmget(self._keys.counters, "form", "numbering")
        form, self._numbering = stamps[0], stamps[1] or b""
        if form != str(FORM).encode() and (known or form is not None):
            found = "1" if form is None else form.decode(errors="replace")
            raise StoreError(
                f"this state is of another version of sitemapd (form {found}, this one reads form "
                f"{FORM}): run that version until `sitemapd status` counts no waiting events, keep "
                "the published files, empty Redis, and `sitemapd import` them"
            )
        self._numbers = {name.decode(): int(number) for name, number in known.items()}
        return self._numbers

    def _number(self, name: str) -> int:
        """Give `name` its number."""
        with answering():
            self._client.hsetnx(self._keys.counters, "form", str(FORM))
            self._client.hsetnx(self._keys.counters, "numbering", secrets.token_hex(8))
            number = int(self._client.hincrby(self._keys.counters, "sections", 1))
            if number > MAX_SECTIONS:
                detail = f"at most {MAX_SECTIONS} ever per site"
                raise ConfigError(Fault("sections", "limit", detail))
            self._client.hsetnx(self._keys.sections, name, str(number))
            stored: Any = self._client.hget(self._keys.sections, name)
            numbering: Any = self._client.hget(self._keys.counters, "numbering")
        self._numbering = numbering or b""
        return int(stored)


class Draft(Sections):
    """The numbers as they would be: those that nobody has given yet are given here alone."""

    def check(self, numbering: bytes, count: int) -> None:
        """Keep what is known: the numbers given here are in no Redis."""

    def _number(self, name: str) -> int:  # noqa: ARG002
        return max(self._numbers.values(), default=0) + 1
