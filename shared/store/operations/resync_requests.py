"""Resync requests of a site, and the lock under which one process at a time reconciles it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import redis

from shared.errors import ReconcileError, StoreError
from shared.events.resync_scope import Scope
from shared.store.client import Scripts, answering
from shared.store.keys import keys_of
from shared.store.leases import Lease

LOCK_MS = 60_000
ALARM_S = 3600
RECONCILED = "reconciled"


class ReconcileLock:
    """Exclusive right to reconcile one site, extended by a thread until `release`."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._done = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="reconcile-lock", daemon=True)
        self._keeper.start()

    def check(self) -> None:
        """Raise ReconcileError if the lock was lost, StoreError if Redis cannot be asked."""
        if not self._lease.extend():
            raise ReconcileError("another reconcile of this site has started; try again")

    def _keep(self) -> None:
        """Extend the lock in a thread: one document of a slow source may outlast it."""
        while not self._done.wait(LOCK_MS / 4000):
            try:
                self.check()
            except StoreError:
                continue  # retried before the lock expires; `check` precedes everything sent
            except ReconcileError:
                return

    def release(self) -> None:
        """Stop the thread and release the lock."""
        self._done.set()
        self._keeper.join()
        self._lease.release()


class ResyncRequests:
    """Resync requests of one site, and its lock."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, keys_of(site)
        self._scripts = Scripts(client)

    def open(self) -> dict[Scope, int]:
        """Return the scopes of open requests, each with the time of the last one (ms since 1970).

        Members that are not scopes are left out: see `forget_strange`.
        """
        return scopes_of(self._asked())

    def forget_strange(self) -> list[str]:
        """Delete the members that are not scopes, and return them."""
        strange = [member for member, _ in self._asked() if _scope(member) is None]
        if strange:
            with answering():
                self._client.zrem(self._keys.resync, *strange)
        return [member.decode(errors="backslashreplace") for member in strange]

    def _asked(self) -> list[tuple[bytes, float]]:
        with answering():
            found: Any = self._client.zrange(self._keys.resync, 0, -1, withscores=True)
        return list(found)

    def answered(self, asked: Mapping[Scope, int]) -> int:
        """Close the requests `asked`, except repeated ones; return the number closed."""
        pairs = [part for scope, when in asked.items() for part in (str(scope), when)]
        return (
            int(self._scripts("operations/close_resyncs", [self._keys.resync], *pairs))
            if pairs
            else 0
        )

    def begin_ms(self) -> int:
        """Return the version of repairs that begin now (ms), by the clock that stamps events.

        It is the previous millisecond: an event of the current one is later than the repair.
        """
        with answering():
            seconds, micros = self._client.time()
        return int(seconds) * 1000 + int(micros) // 1000 - 1

    def last_ms(self) -> int:
        """Return when the last complete reconcile of the site began (ms since 1970; 0: none)."""
        with answering():
            stored: Any = self._client.hget(self._keys.counters, RECONCILED)
        return int(stored or 0)

    def completed(self, began_ms: int) -> None:
        """Record that the reconcile of the whole site begun at `began_ms` is complete."""
        with answering():
            self._client.hset(self._keys.counters, RECONCILED, str(began_ms))

    def first_this_hour(self) -> bool:
        """Return True if no process has raised the resync alarm of this site within the hour."""
        with answering():
            return bool(self._client.set(self._keys.resync_alarm, "1", nx=True, ex=ALARM_S))

    @contextmanager
    def lock(self, owner: str) -> Iterator[ReconcileLock]:
        """Hold the lock of this site for the block. Raises ReconcileBusyError if it is held."""
        lease = Lease(self._client, self._keys.reconcile, owner, LOCK_MS)
        if not lease.take():
            raise ReconcileBusyError(lease.holder() or "somebody")
        lock = ReconcileLock(lease)
        try:
            yield lock
        finally:
            lock.release()


def scopes_of(asked: Iterable[tuple[bytes, float | bytes]]) -> dict[Scope, int]:
    """Return what `ResyncRequests.open` does, from members and scores of the stored zset."""
    return {scope: int(when) for member, when in asked if (scope := _scope(member)) is not None}


def _scope(member: bytes) -> Scope | None:
    try:
        scope = Scope.of(member.decode())
    except UnicodeDecodeError:
        return None
    return scope if str(scope).encode() == member else None


class ReconcileBusyError(ReconcileError):
    """Another process reconciles this site."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"{holder} is reconciling this site already")
