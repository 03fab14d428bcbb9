"""Repairs of the state, all or nothing, written only if their basis is unchanged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgpack
import redis

from shared.store.client import Scripts, answering
from shared.store.keys import keys_of

Value = bytes | str
SHARED = "shared"
"""Field of `counters`: the sites that were told of all translation groups, by name."""


@dataclass(slots=True)
class Amendment:
    """One repair: the values it was decided on, and those it writes (empty: to be deleted)."""

    compared: list[tuple[str, Value, Value]] = field(default_factory=list)
    fields: list[tuple[str, Value, Value]] = field(default_factory=list)
    scores: list[tuple[str, Value, int | str]] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """True if it writes nothing."""
        return not self.fields and not self.scores

    def change(self, key: str, name: Value, before: Value, after: Value) -> None:
        """Write `after` if the field still holds `before`."""
        self.compared.append((key, name, before))
        self.fields.append((key, name, after))


class Amendments:
    """Writer of repairs of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, keys_of(site)
        self._scripts = Scripts(client)

    def write(self, amendment: Amendment, lease: str = "") -> bool:
        """Write all or nothing; True if written. `lease`: the token that must hold the lease."""
        message: dict[str, Any] = {
            "token": lease, "compared": amendment.compared, "fields": amendment.fields,
            "scores": amendment.scores,
        }  # fmt: skip
        packed = msgpack.packb(message, use_bin_type=False)
        return bool(self._scripts("pages/amend", [self._keys.lease, self._keys.counters], packed))

    def add_to_count(self, name: str, more: int) -> None:
        """Correct a counter by a difference, which stays right under concurrent counting."""
        with answering():
            self._client.hincrby(self._keys.counters, name, more)

    def tell_groups_again(self) -> None:
        """Have the partners of the site told of all its translation groups."""
        with answering():
            self._client.hdel(self._keys.counters, SHARED)

    def new_ordinal(self) -> int:
        """Return a new ordinal, unique among all shards of the site."""
        with answering():
            return int(self._client.hincrby(self._keys.counters, "shards", 1)) - 1
