"""Take over the lease of a dead publisher: this consumer before a restart, or a stuck one."""

from __future__ import annotations

import time

from shared.store.counting.counter_buffer import CounterBuffer
from shared.store.keys import LEASE_MS
from shared.store.publishing.publish_batch import PublishLease
from shared.telemetry.logs import logger

_log = logger("publisher")


class LeaseTakeover:
    """Watches who holds the lease of one site while this process waits for it."""

    def __init__(self, lease: PublishLease, name: str, consumer: str, tally: CounterBuffer) -> None:
        self._lease, self._name, self._consumer, self._tally = lease, name, consumer, tally
        self._holder, self._since = "", 0.0

    def held_by(self, holder: str) -> None:
        """Release the lease of the token `holder` if its publisher is dead. Raises StoreError.

        Measured on the local monotonic clock: expiry in Redis follows the wall clock (F12).
        """
        if self._holder != holder:
            self._holder, self._since = holder, time.monotonic()
        own = holder.startswith(f"{self._consumer}:")
        if own or time.monotonic() - self._since > LEASE_MS / 1000:
            self._tally.add(self._name, "lease_taken")
            _log.warning("lease taken over", site=self._name, holder=holder)
            self._lease.release(holder)
