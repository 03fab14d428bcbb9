"""Queues: what waits in each, pause and resume, drain, purge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import redis

from shared.admin.outcomes import ActionOutcome, command, counted
from shared.errors import Fault, InvalidError
from shared.store.client import answering
from shared.store.counting.counters import Counters
from shared.store.keys import Keys
from shared.store.operations.queues import (
    DOOR,
    EVENTS,
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
"""Keeps these events, and comes back when they are safe."""


class QueueRow(NamedTuple):
    """One queue of one site.

    `waiting` events, files, pages to tell of; `in_flight` of them are with a worker; the oldest
    waits for `oldest_ms`. `rate` is how many a minute left it in the last RATE_MINUTES whole ones
    (of DOOR: came in; of PUBLISH: publishes; of NOTIFY: None, not known), `minutes` how many in
    each of the last SHOWN_MINUTES. `paused` by whom and
    since when, None if it is not.
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
        """What its being paused means."""
        return PAUSABLE[self.queue]


class QueueActions:
    """The queues of one site."""

    def __init__(self, client: redis.Redis, site: str, engines: Sequence[str] = ()) -> None:
        """`engines` are the names of the search engines that are told of changes."""
        self._client, self._site, self._keys = client, site, Keys(site)
        self._queues, self._stats = Queues(client, site), Counters(client, site)
        self._engines = engines

    def rows(self) -> list[QueueRow]:
        """Every queue, in the order in which an event goes through them."""
        waiting, paused = self._queues.waiting(), self._queues.paused()
        *minutes, _now = self._stats.minutes(SHOWN_MINUTES + 1)
        notices, telling, first = self._notices()
        now = waiting.now_ms

        def row(
            queue: str, waits: int, in_flight: int, since: int | None, *counts: str
        ) -> QueueRow:
            age = None if since is None else max(0, now - since)
            went = [sum(minute.counts.get(name, 0) for name in counts) for minute in minutes]
            rate = round(sum(went[-RATE_MINUTES:]) / RATE_MINUTES, 2) if counts else None
            return QueueRow(self._site, queue, waits, in_flight, age, rate, paused.get(queue), went)

        return [
            row(DOOR, 0, 0, None, "accepted"),
            row(
                EVENTS, waiting.events, waiting.in_flight, waiting.oldest_ms,
                "changed", "unchanged", "failed",
            ),
            row(PUBLISH, waiting.files, 0, waiting.files_since_ms, "publishes"),
            row(NOTIFY, notices + telling, telling, first),
        ]  # fmt: skip

    def _notices(self) -> tuple[int, int, int | None]:
        """How many pages search engines are to be told of, of how many they are being told, and
        since when the first waits; a page counts for each engine.
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
        """Stop `queue` until somebody resumes it, whatever is started anew meanwhile.

        InvalidError if there is no such queue.
        """
        new = self._queues.pause(queue, by)
        said = f"paused: {PAUSABLE[queue]}" if new else "was paused already"
        line = command("queue", "pause", queue, site=self._site)
        return ActionOutcome("queue pause", self._site, queue, said, line, int(new))

    def resume(self, queue: str) -> ActionOutcome:
        """Let `queue` go on. InvalidError if there is no such queue."""
        resumed = self._queues.resume(queue)
        said = "goes on" if resumed else "was not paused"
        line = command("queue", "resume", queue, site=self._site)
        return ActionOutcome("queue resume", self._site, queue, said, line, int(resumed))

    def drain(self, by: str) -> ActionOutcome:
        """Close the door, so that everything can be worked off; `waiting` says how far that is.

        InvalidError if that could never come to an end, because it is paused.
        """
        stopped = [queue for queue in (EVENTS, PUBLISH) if queue in self._queues.paused()]
        if stopped:
            lines = "; ".join(command("queue", "resume", q, site=self._site) for q in stopped)
            detail = f"is paused, so nothing would ever be done; run first: {lines}"
            raise InvalidError(Fault(", ".join(stopped), "queue", detail))
        self._queues.pause(DOOR, by)
        reopen = command("queue", "resume", DOOR, site=self._site)
        said = f"door closed; it stays so until: {reopen}"
        return ActionOutcome(
            "queue drain", self._site, DOOR, said, command("queue", "drain", site=self._site)
        )

    def waiting(self) -> QueueDepth:
        """What waits."""
        return self._queues.waiting()

    def paused(self) -> dict[str, Pause]:
        """What is stopped, by whom and since when."""
        return self._queues.paused()

    def purge(self, save: Save | None = None) -> ActionOutcome:
        """Take out every event that waits. They are handed to `save`, and kept for a week besides.

        What a worker is just deciding may still count. Whatever `save` raises comes out, and the
        events are still kept then: `purges` names them.
        """
        name, total = self._queues.purge()
        if save is not None:
            save(self._queues.kept(name) if name else ())
        said = f"{counted(total, 'event')} taken out"
        said += f", kept for a week as {name}" if total else ""
        line = command("queue", "purge", site=self._site)
        return ActionOutcome("queue purge", self._site, name, said, line, total)

    def oldest(self, most: int, after: str = "") -> list[QueuedEvent]:
        """The `most` events that wait longest, oldest first, from the id `after` on (exclusive)."""
        return self._queues.oldest(most, after)

    def purges(self) -> dict[str, int]:
        """The purges that are still kept: name (ms since 1970) -> how many events."""
        return self._queues.purges()

    def kept(self, name: str) -> Iterator[bytes]:
        """The events of a purge, each a line of JSON; InvalidError if it is not kept."""
        known = self.purges()
        if name not in known:
            detail = f"not kept; kept are: {', '.join(known) or 'none'}"
            raise InvalidError(Fault(name, "purge", detail))
        return self._queues.kept(name)


def messages(client: redis.Redis) -> dict[str, int]:
    """How many messages wait in each queue of Celery, of all sites: mostly none."""
    queues = (QUEUE, RECONCILE_QUEUE, NOTIFY_QUEUE)
    with answering():
        pipe = client.pipeline(transaction=False)
        for queue in queues:
            pipe.llen(queue)
        return dict(zip(queues, pipe.execute(), strict=True))


def members(payload: bytes) -> dict[str, Any]:
    """The members of a stored event, for people; none of one that cannot be read."""
    try:
        found = json.loads(payload)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
