"""Nodes of a Redis Cluster: the node that serves a slot, as the cluster says."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import redis
from redis.crc import key_slot
from redis.exceptions import ConnectionError as DownError
from redis.exceptions import MovedError, RedisError

from shared.config.redis_address import Host
from shared.store.keys import EVERYWHERE

_AGAIN_S = 0.2
"""Seconds between two looks at the map: until a replica is promoted, each error asks for one."""


def slot_of(command: tuple[Any, ...]) -> int:
    """Return the slot of a command: that of its first argument with a hash tag, as every key of
    ours begins with one; of a command without keys, that of the keys of no site.
    """
    for part in command[1:]:
        if type(part) is str:
            if part[:1] == "{":
                return key_slot(part.encode())
        elif type(part) is bytes and part[:1] == b"{":
            return key_slot(part)
    return HOME


HOME = key_slot(EVERYWHERE.encode())


def ask(client: redis.Redis, *command: Any, **options: Any) -> Any:
    """Run one command."""
    return client.execute_command(*command, **options)  # type: ignore[no-untyped-call]


class ClusterMap:
    """The masters of a cluster by slot, read when first asked for and after an error."""

    def __init__(self, seeds: tuple[Host, ...], connect: Callable[[Host], redis.Redis]) -> None:
        self._seeds, self._connect = seeds, connect
        self._lock = threading.RLock()
        self._nodes: dict[Host, redis.Redis] = {}
        self._slots: list[Host] = []
        self._doubted, self._read_at = True, 0.0

    def node(self, slot: int) -> redis.Redis:
        """Return the client of the node that serves `slot`. Raises redis.RedisError."""
        if self._doubted:
            self._read()
        return self.at(self._slots[slot])

    def masters(self) -> list[redis.Redis]:
        """Return the clients of all nodes that serve slots. Raises redis.RedisError."""
        if self._doubted:
            self._read()
        return [self.at(host) for host in sorted(set(self._slots))]

    def at(self, host: Host) -> redis.Redis:
        """Return the client of the node at this address."""
        known = self._nodes.get(host)
        if known is None:
            with self._lock:
                known = self._nodes.get(host) or self._connect(host)
                self._nodes[host] = known
        return known

    def doubt(self) -> None:
        """Have the map read again: a node did not answer."""
        self._doubted = True

    def moved(self, error: MovedError) -> redis.Redis:
        """Return the client of the node that serves the slot now; others may have moved."""
        host = (error.host, error.port)
        with self._lock:
            if self._slots:
                self._slots[error.slot_id] = host
            self._doubted = True
        return self.at(host)

    def close(self) -> None:
        """Close the connections to all nodes."""
        for client in list(self._nodes.values()):
            client.close()

    def _read(self) -> None:
        """Read the map from the first node that answers, each time another one first: a node that
        is cut off from the others has an old map.
        """
        with self._lock:
            if not self._doubted or (self._slots and time.monotonic() < self._read_at + _AGAIN_S):
                return
            hosts = list(dict.fromkeys([*self._slots, *self._seeds]))
            random.shuffle(hosts)
            failed: RedisError = DownError("no node is named")
            for host in hosts:
                try:
                    found = ask(self.at(host), "CLUSTER SLOTS")
                    self._take(found, host)
                except RedisError as error:
                    failed = error
                    continue
                self._doubted, self._read_at = False, time.monotonic()
                return
            if not self._slots:
                raise failed

    def _take(self, found: Any, asked: Host) -> None:
        slots: list[Host | None] = [None] * 16_384
        for (first, last), nodes in _ranges(found):
            name, port = nodes[0][:2]
            host = (name.decode() if isinstance(name, bytes) else name or asked[0], int(port))
            slots[first : last + 1] = [(host[0] or asked[0], host[1])] * (last + 1 - first)
        known = [host for host in slots if host is not None]
        if len(known) < len(slots):
            raise DownError("the cluster does not serve all slots")
        self._slots = known


def _ranges(found: Any) -> Any:
    """Return the ranges of slots with their nodes, as the server or redis-py give them."""
    if isinstance(found, dict):
        return [(bounds, [each["primary"]]) for bounds, each in found.items()]
    return [((each[0], each[1]), each[2:]) for each in found]
