"""Filter for Celery's queues: pass the messages that sitemapd sends, and drop all others.

Any client that can write to Redis can put arbitrary bytes there. Malformed messages would end a
kombu worker (RELIABILITY T25), and Celery logs a traceback for an unknown message. Here each costs
at most one log line, and is counted.
"""

from __future__ import annotations

import json
from collections import Counter
from queue import Empty
from typing import Any

from celery import Celery
from celery.utils.dispatch import Signal
from celery.worker.consumer import Consumer as CeleryConsumer
from kombu import transport
from kombu.transport import redis
from redis import exceptions

from shared.telemetry.logs import logger

MOST_BYTES = 16_384
"""Maximum size of a message body in bytes, far above that of any sitemapd message."""

dropped = Signal(name="dropped")
"""Signal sent for each dropped message, with the `reason`."""

_OWN = {
    f"kombu.transport.redis:{name}": f"worker.broker:{name}"
    for name in ("Transport", "SentinelTransport")
}
_JSON = "application/json"

_POPPED_NOTHING: tuple[type[Exception], ...] = (
    Empty, *redis.Transport.connection_errors, *redis.Transport.channel_errors,
)  # fmt: skip

_log = logger("broker")
_counts: Counter[str] = Counter()


def drop(reason: str) -> None:
    """Count and log a message that is not one of sitemapd's; `reason` holds none of its bytes."""
    _counts[reason] += 1
    times = _counts[reason]
    if not times & (times - 1):
        _log.warning("message dropped", reason=reason, times=times)
    dropped.send(sender=None, reason=reason)


class _SafePop:
    """Mixin of a channel that survives bytes which are not JSON."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]  # of the channel
        except _POPPED_NOTHING:
            raise
        except Exception as error:  # noqa: BLE001  # any error of the popped bytes
            drop(f"no message: {type(error).__name__}")
            return True


class _SafeDelivery:
    """Mixin of a transport that survives JSON that is not a message."""

    def _deliver(self, message: Any, queue: str | None) -> None:
        try:
            super()._deliver(message, queue)  # type: ignore[misc]  # of the transport
        except (OSError, exceptions.ConnectionError, exceptions.TimeoutError):
            raise
        except Exception as error:  # noqa: BLE001  # kombu takes a KeyError for a lost connection
            drop(f"no message: {type(error).__name__}")


class Channel(_SafePop, redis.Channel):
    """kombu's channel of one Redis."""


class Transport(_SafeDelivery, redis.Transport):
    """kombu's transport of one Redis."""

    Channel = Channel


class SentinelChannel(_SafePop, redis.SentinelChannel):
    """kombu's channel of a master that sentinels name."""


class SentinelTransport(_SafeDelivery, redis.SentinelTransport):
    """kombu's transport of a master that sentinels name."""

    Channel = SentinelChannel


class Consumer(CeleryConsumer):
    """Celery's consumer, restricted to the messages of sitemapd."""

    strategies: dict[str, Any]
    connection_errors: tuple[type[Exception], ...]

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Any:
        """Return the handler of one message."""
        handle = super().create_task_handler(*args, **kwargs)

        def do(message: Any) -> None:
            if reason := strangeness(message, self.strategies):
                message.ack_log_error(None, self.connection_errors)
                drop(reason)
            else:
                handle(message)

        return do


def strangeness(message: Any, tasks: Any) -> str:
    """Return the reason why `message` is not a valid call of one of `tasks`; empty if it is."""
    headers, body = message.headers, message.body
    task = headers.get("task") if isinstance(headers, dict) else None
    if not isinstance(task, str) or task not in tasks:
        return "no task of ours"
    if message.content_type != _JSON:
        return "not JSON"
    if not isinstance(body, str | bytes) or len(body) > MOST_BYTES:
        return "too large"
    if headers.get("eta") or not isinstance(headers.get("expires"), str | None):
        return "not now"
    try:
        args, kwargs, embedded = json.loads(body)
    except (ValueError, TypeError, RecursionError):
        return "no arguments"
    plain = isinstance(args, list) and len(args) <= 1 and all(isinstance(a, str) for a in args)
    if not plain or kwargs or not isinstance(embedded, dict) or any(embedded.values()):
        return "no arguments of ours"
    return ""


def waiting(app: Celery, queue: str) -> int:
    """Return the number of messages in `queue`. To declare it again changes nothing, and every kind
    of broker answers with that number.
    """
    with app.connection_or_acquire() as connection:
        declared = connection.default_channel.queue_declare(
            queue=queue, durable=True, auto_delete=False
        )
        return int(declared.message_count)


def install(app: Celery) -> None:
    """Install this consumer in the worker of `app`, and these transports in the process."""
    for name, of in transport.TRANSPORT_ALIASES.items():
        transport.TRANSPORT_ALIASES[name] = _OWN.get(of, of)
    app.conf.worker_consumer = Consumer
