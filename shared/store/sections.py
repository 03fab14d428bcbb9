"""Section numbers, as stored in page records."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import redis

from shared.domain.page_record import MAX_SECTIONS
from shared.errors import ConfigError, Fault, StoreError
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.layouts.version import BACK, CURRENT, FORM, OWNERS, Layout


class Sections:
    """Section numbers of one site, cached: `by_name` and `by_number`, both empty before first use;
    `numbering` identifies those in Redis. With them it is known whether claims are stored under the
    `former_owners` of layout 2.
    """

    draft = False

    def __init__(self, client: redis.Redis, site: str, configured: Iterable[str]) -> None:
        self._client, self._site, self._keys = client, site, keys_of(site)
        self._configured = frozenset(configured)
        self.by_name: dict[str, int] = {}
        self.by_number: dict[int, str] = {}
        self.numbering = b""
        self.former_owners = False

    def numbers(self, named: Iterable[str] = ()) -> dict[str, int]:
        """Return the number of every section, given at first use and never changed.

        Configured and `named` sections without a number get one now. Raises ConfigError if there
        are too many, LayoutError if the state has another layout.
        """
        wanted = {*self._configured, *named}
        if not wanted <= self.by_name.keys():
            known = self._read()
            for name in sorted(wanted - known.keys()):
                known[name] = self._number(name, known)
            self._remember(known)
        return self.by_name

    def names(self, numbers: Iterable[int] = ()) -> dict[int, str]:
        """Return the sections by number, without giving new numbers.

        An unknown one of `numbers` was given by another process: the sections are read again.
        Raises StoreError if it is unknown even then, LayoutError if the state has another layout.
        """
        wanted = set(numbers)
        if not self._configured <= self.by_name.keys() or not wanted <= self.by_number.keys():
            self._remember(self._read())
        if strange := wanted - self.by_number.keys():
            raise StoreError(f"a page is recorded in section {min(strange)}, which does not exist")
        return self.by_number

    def forget(self) -> None:
        """Read all sections again at the next use: another process has added some."""
        self._remember({})

    def check(self, numbering: bytes, count: int) -> None:
        """Discard the cached sections if Redis holds another `numbering` or `count` of them:
        another process has added some, or the state was emptied or replaced.
        """
        if (numbering, count) != (self.numbering, len(self.by_name)):
            self.forget()

    def _remember(self, known: Mapping[str, int]) -> None:
        # New dicts: another thread may be reading the old ones.
        self.by_number = {number: name for name, number in known.items()}
        self.by_name = {**known}

    def _read(self) -> dict[str, int]:
        with answering():
            known: Any = self._client.hgetall(self._keys.sections)
            fields = (FORM, BACK, "numbering", OWNERS)
            found: Any = self._client.hmget(self._keys.counters, *fields)
        form, back, numbering, owners = found
        layout = Layout.read(form, back, known=bool(known))
        if not layout.current:
            raise layout.refusal(self._site)
        self.numbering, self.former_owners = numbering or b"", owners is not None
        return {name.decode(): int(number) for name, number in known.items()}

    def _number(self, name: str, known: Mapping[str, int]) -> int:  # noqa: ARG002
        """Give `name`, which is not `known`, a number."""
        with answering():
            self._client.hsetnx(self._keys.counters, FORM, str(CURRENT))
            self._client.hsetnx(self._keys.counters, "numbering", secrets.token_hex(8))
            number = int(self._client.hincrby(self._keys.counters, "sections", 1))
            if number > MAX_SECTIONS:
                detail = f"at most {MAX_SECTIONS} ever per site"
                raise ConfigError(Fault("sections", "limit", detail))
            self._client.hsetnx(self._keys.sections, name, str(number))
            stored: Any = self._client.hget(self._keys.sections, name)
            numbering: Any = self._client.hget(self._keys.counters, "numbering")
        self.numbering = numbering or b""
        return int(stored)


class Draft(Sections):
    """Section numbers for deciding only: new numbers are given in this process alone."""

    draft = True

    def check(self, numbering: bytes, count: int) -> None:
        """Keep the cached sections: the numbers given here are not in Redis."""

    def _number(self, name: str, known: Mapping[str, int]) -> int:  # noqa: ARG002
        return max(known.values(), default=0) + 1
