"""Queues of a site for administrators: depth, pause, resume, drain, purge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import redis

from shared.admin.outcomes import ActionOutcome, command, counted
from shared.errors import Fault, InvalidError
from shared.store.client import answering
from shared.store.counting.counters import Counters
from shared.store.keys import keys_of
from shared.store.operations.queues import (
    EVENTS,
    INTAKE,
    NOTIFY,
    PAUSABLE,
    PUBLISH,
    Pause,
    QueueDepth,
    QueuedEvent,
    Queues,
)
from shared.task_names import NOTIFY_QUEUE, QUEUE, RECONCILE_QUEUE

RATE_MINUTES, SHOWN_MINUTES = 5, 30
Save = Callable[[Iterable[bytes]], object]
"""Saves these events and returns once they are durable."""


class QueueRow(NamedTuple):
    """One queue of one site.

    `waiting` events, files, or pages to notify; `in_flight` of them are with a worker; the oldest
    waits for `oldest_ms`. `rate` is the number per minute that left it in the last RATE_MINUTES
    whole minutes (INTAKE: arrived; PUBLISH: publishes; NOTIFY: None, unknown), `minutes` the
    numbers of each of the last SHOWN_MINUTES. `paused` by whom and since when, None if it is not.
    """

    site: str
    queue: str
    waiting: int
    in_flight: int
    oldest_ms: int | None
    rate: float | None
    paused: Pause | None
    minutes: Sequence[int]

    @property
    def means(self) -> str:
        """Effect of pausing it."""
        return PAUSABLE[self.queue]


class QueueActions:
    """Actions on the queues of one site."""

    def __init__(self, client: redis.Redis, site: str, engines: Sequence[str] = ()) -> None:
        """Open the queues; `engines` are the names of the engines that are notified of changes."""
        self._client, self._site, self._keys = client, site, keys_of(site)
        self._queues, self._stats = Queues(client, site), Counters(client, site)
        self._engines = engines

    def rows(self) -> list[QueueRow]:
        """Return all queues, in the order an event passes through them."""
        waiting, paused = self._queues.waiting(), self._queues.paused()
        *minutes, _now = self._stats.minutes(SHOWN_MINUTES + 1)
        notices, telling, first = self._notices()
        now_ms = waiting.now_ms

        def row(
            queue: str, waits: int, in_flight: int, since_ms: int | None, *counts: str
        ) -> QueueRow:
            age_ms = None if since_ms is None else max(0, now_ms - since_ms)
            went = [sum(minute.counts.get(name, 0) for name in counts) for minute in minutes]
            rate = round(sum(went[-RATE_MINUTES:]) / RATE_MINUTES, 2) if counts else None
            return QueueRow(
                self._site, queue, waits, in_flight, age_ms, rate, paused.get(queue), went
            )

        return [
            row(INTAKE, 0, 0, None, "accepted"),
            row(
                EVENTS, waiting.events, waiting.in_flight, waiting.oldest_ms,
                "changed", "unchanged", "failed",
            ),
            row(PUBLISH, waiting.files, 0, waiting.files_since_ms, "publishes"),
            row(NOTIFY, notices + telling, telling, first),
        ]  # fmt: skip

    def _notices(self) -> tuple[int, int, int | None]:
        """Return the number of queued notifications, of those being sent, and when the oldest
        queued one is due (ms since 1970); a page counts once per engine.
        """
        if not self._engines:
            return 0, 0, None
        with answering():
            pipe = self._client.pipeline(transaction=False)
            for engine in self._engines:
                queue = self._keys.notify(engine)
                pipe.zcard(queue)
                pipe.zcard(self._keys.sending(engine))
                pipe.zrange(queue, 0, 0, withscores=True)
            replies = pipe.execute()
        scores = [int(first[0][1]) for first in replies[2::3] if first]
        return sum(replies[::3]), sum(replies[1::3]), min(scores, default=None)

    def pause(self, queue: str, by: str) -> ActionOutcome:
        """Pause `queue` until it is resumed, across restarts.

        Raises InvalidError if there is no such queue.
        """
        new = self._queues.pause(queue, by)
        said = f"paused: {PAUSABLE[queue]}" if new else "was paused already"
        line = command("queue", "pause", queue, site=self._site)
        return ActionOutcome("queue pause", self._site, queue, said, line, int(new))

    def resume(self, queue: str) -> ActionOutcome:
        """Resume `queue`. Raises InvalidError if there is no such queue."""
        resumed = self._queues.resume(queue)
        said = "resumed" if resumed else "was not paused"
        line = command("queue", "resume", queue, site=self._site)
        return ActionOutcome("queue resume", self._site, queue, said, line, int(resumed))

    def drain(self, by: str) -> ActionOutcome:
        """Close intake so that all waiting work completes; `waiting` returns the progress.

        Raises InvalidError if events or publishing are paused: the work would never complete.
        """
        stopped = [queue for queue in (EVENTS, PUBLISH) if queue in self._queues.paused()]
        if stopped:
            lines = "; ".join(command("queue", "resume", q, site=self._site) for q in stopped)
            detail = f"is paused, so a drain would never end; run first: {lines}"
            raise InvalidError(Fault(", ".join(stopped), "queue", detail))
        self._queues.pause(INTAKE, by)
        reopen = command("queue", "resume", INTAKE, site=self._site)
        said = f"intake closed; it stays so until: {reopen}"
        return ActionOutcome(
            "queue drain", self._site, INTAKE, said, command("queue", "drain", site=self._site)
        )

    def waiting(self) -> QueueDepth:
        """Return the depth of the queues."""
        return self._queues.waiting()

    def paused(self) -> dict[str, Pause]:
        """Return the paused queues, by whom and since when."""
        return self._queues.paused()

    def purge(self, save: Save | None = None) -> ActionOutcome:
        """Remove all waiting events. They are passed to `save`, and also kept for a week.

        Events that a worker is deciding may still take effect. Errors of `save` are raised; the
        events are still kept then: `purges` names them.
        """
        name, total = self._queues.purge()
        if save is not None:
            save(self._queues.kept(name) if name else ())
        said = f"{counted(total, 'event')} removed"
        said += f", kept for a week as {name}" if total else ""
        line = command("queue", "purge", site=self._site)
        return ActionOutcome("queue purge", self._site, name, said, line, total)

    def oldest(self, most: int, after: str = "") -> list[QueuedEvent]:
        """Return the `most` longest waiting events, oldest first, after the id `after`."""
        return self._queues.oldest(most, after)

    def purges(self) -> dict[str, int]:
        """Return the purges that are still kept: name (ms since 1970) -> number of events."""
        return self._queues.purges()

    def kept(self, name: str) -> Iterator[bytes]:
        """Return the events of a purge as lines of JSON. Raises InvalidError if it is not kept."""
        known = self.purges()
        if name not in known:
            detail = f"not kept; kept are: {', '.join(known) or 'none'}"
            raise InvalidError(Fault(name, "purge", detail))
        return self._queues.kept(name)


def messages(client: redis.Redis) -> dict[str, int]:
    """Return the number of wake-ups in each Celery queue, of all sites: mostly none."""
    queues = (QUEUE, RECONCILE_QUEUE, NOTIFY_QUEUE)
    with answering():
        pipe = client.pipeline(transaction=False)
        for queue in queues:
            pipe.llen(queue)
        return dict(zip(queues, pipe.execute(), strict=True))


def members(payload: bytes) -> dict[str, Any]:
    """Return the members of a stored event, for display; none if it cannot be read."""
    try:
        found = json.loads(payload)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
