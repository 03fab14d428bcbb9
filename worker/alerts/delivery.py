"""Delivery by one channel: the oldest message first, retried ever more rarely, then given up."""

from __future__ import annotations

from collections.abc import Callable

from shared.errors import CredentialError, OutboundError
from shared.store.operations.alert_store import (
    AlertBoard,
    AlertStore,
    ChannelHealth,
    WaitingMessage,
)
from shared.telemetry.logs import logger
from worker.alerts.channels import Sender

FIRST_MS = 30_000
LONGEST_MS = 1_800_000
GIVE_UP_MS = 6 * 3_600_000
"""Age (ms) from which a message is given up with the next failed attempt."""

_log = logger("alerts")


class ChannelDelivery:
    """Delivery by the channel `name`."""

    def __init__(
        self, store: AlertStore, name: str, sender: Sender, clock: Callable[[], int],
        jitter: Callable[[], float],
    ) -> None:  # fmt: skip
        """`clock` gives milliseconds since 1970, `jitter` numbers in 0..1."""
        self._store, self.name, self._sender = store, name, sender
        self._clock, self._jitter = clock, jitter

    def deliver(self, board: AlertBoard) -> bool:
        """Send the oldest waiting message of `board`, which is kept up to date; return True if
        another waits.

        Raises OutboundError while the channel fails, also between two attempts and after a message
        was given up: until one arrives. Raises StoreError.
        """
        health = board.channels.get(self.name, ChannelHealth())
        waiting = [each for each in board.messages.values() if self.name in each.channels]
        if waiting and self._clock() >= health.not_before_ms:
            return self._attempt(board, waiting, health)
        if health.failures:
            given_up = f"; {health.given_up} given up" if health.given_up else ""
            raise OutboundError(f"{health.reason} ({len(waiting)} waiting{given_up})")
        return False

    def _attempt(
        self, board: AlertBoard, waiting: list[WaitingMessage], health: ChannelHealth
    ) -> bool:
        message = waiting[0].message
        try:
            said = self._sender.send(message)
        except (OutboundError, CredentialError) as error:
            self._failed(board, waiting, health, str(error))
            raise
        arrived = ChannelHealth(arrived_ms=self._clock(), given_up=health.given_up)
        self._store_outcome(board, waiting[0], arrived)
        _log.info("alert sent", channel=self.name, message=message.ident, answer=said)
        return len(waiting) > 1

    def _failed(
        self, board: AlertBoard, waiting: list[WaitingMessage], health: ChannelHealth, reason: str
    ) -> None:
        """Store the failure; what is too old is given up."""
        now = self._clock()
        pause = min(FIRST_MS * 2 ** min(health.failures, 20), LONGEST_MS)
        until = now + int(pause * (1 + self._jitter() / 4))
        old = [each for each in waiting if now - each.message.at_ms >= GIVE_UP_MS]
        health = health._replace(
            failures=health.failures + 1, not_before_ms=until, reason=reason,
            given_up=health.given_up + len(old),
        )  # fmt: skip
        for each in old:
            self._store_outcome(board, each, health)
            _log.error("alert not sent", channel=self.name, message=each.message.ident,
                reason=reason)  # fmt: skip
        if not old:
            self._store.attempted(waiting[0], self.name, health)
            board.channels[self.name] = health

    def _store_outcome(
        self, board: AlertBoard, waiting: WaitingMessage, health: ChannelHealth
    ) -> None:
        """Store `health`, and that the channel has done with the message."""
        left = tuple(each for each in waiting.channels if each != self.name)
        after = waiting._replace(channels=left)
        self._store.attempted(after, self.name, health)
        board.messages[waiting.message.ident] = after
        board.channels[self.name] = health
