"""Repairs of the state: written whole, and only if all that they were decided on is still so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgpack
import redis

from shared.store.client import Scripts, answering
from shared.store.keys import Keys

Value = bytes | str


@dataclass(slots=True)
class Amendment:
    """One repair: what it relies on, and what it writes (empty: what is to go)."""

    compared: list[tuple[str, Value, Value]] = field(default_factory=list)
    fields: list[tuple[str, Value, Value]] = field(default_factory=list)
    scores: list[tuple[str, Value, int | str]] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether nothing would be written."""
        return not self.fields and not self.scores

    def change(self, key: str, name: Value, before: Value, after: Value) -> None:
        """Write `after` where `before` is still found."""
        self.compared.append((key, name, before))
        self.fields.append((key, name, after))


class Amendments:
    """Writes repairs of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, Keys(site)
        self._scripts = Scripts(client)

    def write(self, amendment: Amendment, lease: str = "") -> bool:
        """Write all or nothing; whether it was written. `lease`: the token that must hold it."""
        message: dict[str, Any] = {
            "token": lease, "compared": amendment.compared, "fields": amendment.fields,
            "scores": amendment.scores,
        }  # fmt: skip
        packed = msgpack.packb(message, use_bin_type=False)
        return bool(self._scripts("pages/amend", [self._keys.lease], packed))

    def add_to_count(self, name: str, more: int) -> None:
        """Correct a counter by a difference, which stays right whatever is counted meanwhile."""
        with answering():
            self._client.hincrby(self._keys.counters, name, more)

    def new_ordinal(self) -> int:
        """A position among all shards of the site that nobody has."""
        with answering():
            return int(self._client.hincrby(self._keys.counters, "shards", 1)) - 1
