"""State of the alerts: alerts, messages that wait for their channels, one lease.

The worker that holds the lease looks at the conditions and sends; what it changes is written in one
transaction that fails once the lease is lost. So a beginning and its message are stored together,
and no restart or second worker tells of it again. A worker killed between sending a message and
storing that repeats it, under the same id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import redis
from redis.client import Pipeline

from shared.alerts.lifecycle import HOUR_MS, Alert, AlertKey
from shared.alerts.messages import AlertMessage
from shared.errors import StoreError
from shared.store.client import answering
from shared.store.keys import EVERYWHERE
from shared.store.leases import Lease

_ALERTS = EVERYWHERE + "alerts"
_MESSAGES = EVERYWHERE + "alerts:messages"
_SENT = EVERYWHERE + "alerts:sent"
_CHANNELS = EVERYWHERE + "alerts:channels"
_LEASE = EVERYWHERE + "alerting"

_T = TypeVar("_T")


class AlertLeaseLostError(StoreError):
    """Another worker watches the conditions: nothing was written."""


class WaitingMessage(NamedTuple):
    """A message, and the channels that have not taken it."""

    message: AlertMessage
    channels: tuple[str, ...]


class ChannelHealth(NamedTuple):
    """Health of a channel: attempts that failed in a row, the time before which there is no next
    (ms since 1970), the reason, when a message last arrived (ms), and how many were given up.
    """

    failures: int = 0
    not_before_ms: int = 0
    reason: str = ""
    arrived_ms: int = 0
    given_up: int = 0


class AlertBoard(NamedTuple):
    """Everything that is stored of alerts; `sent_ms` are the times of the last hour's messages."""

    alerts: dict[AlertKey, Alert]
    messages: dict[str, WaitingMessage]
    sent_ms: list[int]
    channels: dict[str, ChannelHealth]


class AlertStore:
    """Alerts of all sites on one Redis."""

    def __init__(self, client: redis.Redis, owner: str) -> None:
        self._client, self._owner = client, owner
        self._lease = Lease(client, _LEASE, owner)

    def hold(self) -> bool:
        """Take or extend the lease; False if another worker holds it. Raises StoreError.

        A worker takes over from itself before its restart: its name is its own.
        """
        lease = self._lease
        return lease.extend() or lease.take(over=lease.holder() == self._owner)

    def release(self) -> None:
        """Give the lease back, if held. Raises StoreError."""
        self._lease.release()

    def board(self) -> AlertBoard:
        """Return what is stored, without damaged records; one round trip. Raises StoreError."""
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.hgetall(_ALERTS)
            pipe.hgetall(_MESSAGES)
            pipe.zrange(_SENT, 0, -1, withscores=True)
            pipe.hgetall(_CHANNELS)
            alerts, messages, sent, channels = pipe.execute()
        waiting = _read(messages, _waiting)
        ordered = sorted(waiting.items(), key=lambda item: item[1].message.at_ms)
        return AlertBoard(
            {_key(name): alert for name, alert in _read(alerts, _alert).items()},
            dict(ordered), [int(at) for _, at in sent], _read(channels, _health),
        )  # fmt: skip

    def write(
        self, before: Mapping[AlertKey, Alert], after: Mapping[AlertKey, Alert],
        message: AlertMessage | None, channels: Iterable[str],
    ) -> None:  # fmt: skip
        """Store the alerts that changed, and `message` for `channels`. Raises AlertLeaseLostError,
        StoreError.
        """
        changed = {_field(key): json.dumps(each) for key, each in after.items()
                   if before.get(key) != each}  # fmt: skip
        gone = [_field(key) for key in before.keys() - after.keys()]
        waiting = [message, [*channels]]

        def put(pipe: Pipeline) -> None:
            if changed:
                pipe.hset(_ALERTS, mapping=changed)  # type: ignore[arg-type]
            if gone:
                pipe.hdel(_ALERTS, *gone)
            if message is not None:
                pipe.zremrangebyscore(_SENT, "-inf", message.at_ms - HOUR_MS)
                pipe.zadd(_SENT, {message.ident: message.at_ms})
                pipe.pexpire(_SENT, HOUR_MS)
                pipe.hset(_MESSAGES, message.ident, json.dumps(waiting))

        if changed or gone or message is not None:
            self._write(put)

    def attempted(self, left: WaitingMessage, channel: str, health: ChannelHealth) -> None:
        """Store the outcome of one attempt: the message with the channels that still lack it, and
        the health of the channel. Raises AlertLeaseLostError, StoreError.
        """
        ident = left.message.ident

        def put(pipe: Pipeline) -> None:
            if left.channels:
                pipe.hset(_MESSAGES, ident, json.dumps(left))
            else:
                pipe.hdel(_MESSAGES, ident)
            pipe.hset(_CHANNELS, channel, json.dumps(health))

        self._write(put)

    def forget(self, idents: Sequence[str]) -> None:
        """Delete these messages, whose channels are not configured any more. Raises StoreError."""
        if idents:
            self._write(lambda pipe: pipe.hdel(_MESSAGES, *idents))

    def tested(self, channel: str, now_ms: int) -> None:
        """Record that a test message has arrived by `channel`: it is healthy again."""
        with answering():
            stored: Any = self._client.hget(_CHANNELS, channel)
            known = _health(stored) if stored else ChannelHealth()
            health = ChannelHealth(arrived_ms=now_ms, given_up=known.given_up)
            self._client.hset(_CHANNELS, channel, json.dumps(health))

    def _write(self, put: Callable[[Pipeline], object]) -> None:
        """Run the commands of `put` in one transaction. Raises AlertLeaseLostError."""
        if not self._lease.write(put):
            raise AlertLeaseLostError("another worker watches the conditions of alerts")


def _field(key: AlertKey) -> str:
    return f"{key.condition} {key.site}"


def _key(name: str) -> AlertKey:
    condition, _, site = name.partition(" ")
    return AlertKey(condition, site)


def _read(stored: Mapping[bytes, bytes], kind: Callable[[bytes], _T]) -> dict[str, _T]:
    """Return the records by name, without those of another version or not written by sitemapd."""
    found = {}
    for name, text in stored.items():
        try:
            found[name.decode()] = kind(text)
        except (ValueError, TypeError, KeyError, IndexError):
            continue
    return found


def _alert(stored: bytes) -> Alert:
    return Alert(*json.loads(stored))


def _health(stored: bytes) -> ChannelHealth:
    return ChannelHealth(*json.loads(stored))


def _waiting(stored: bytes) -> WaitingMessage:
    message, channels = json.loads(stored)
    ident, name, at_ms, began, ended, left = message
    return WaitingMessage(
        AlertMessage(ident, name, at_ms, tuple(began), tuple(ended), left), tuple(channels)
    )
