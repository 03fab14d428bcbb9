"""Back-off of an endpoint after an answer, and the limits of retries."""

from __future__ import annotations

from typing import NamedTuple

from shared.store.notify.notification_queue import Breaker
from worker.notify.engine import AnswerVerdict, NotificationOutcome

FIRST_S = 60.0
LONGEST_S = 4 * 3600.0
MOST_TRIES = 10
"""Maximum attempts for one page: about twelve hours of a failing engine."""

MOST_REFUSALS = 3
"""Refusals in a row after which the endpoint is paused: the fault is on this side."""

HELD_S = 600.0


class Backoff(NamedTuple):
    """The `breaker` of the endpoint, None if it works; `give_up` discards the pages as dead
    notifications, else they are retried `at` (ms since 1970).
    """

    breaker: Breaker | None
    give_up: bool = False
    at: int = 0


def rest_after(
    outcome: NotificationOutcome, before: Breaker | None, now: int, jitter: float
) -> Backoff:
    """Return the back-off after an `outcome` that is not `told`.

    `before` is the endpoint's breaker, `now` in milliseconds since 1970; `jitter` in 0..1 spreads
    simultaneous failures. `until` of a paused endpoint is when its cause may be checked again.
    """
    failures, refusals = (before.failures, before.refusals) if before else (0, 0)
    why, jitter = outcome.detail, 1 + jitter / 2
    if outcome.verdict is AnswerVerdict.REFUSED:
        paused = refusals + 1 >= MOST_REFUSALS
        return Backoff(Breaker(failures, 0, why, paused, refusals + 1), give_up=True)
    if outcome.verdict is AnswerVerdict.HELD:
        until = now + int(HELD_S * jitter * 1000)
        return Backoff(Breaker(failures, until, why, refusals=refusals), at=until)
    own = min(FIRST_S * 2 ** min(failures, 20), LONGEST_S)
    # Never sooner than the engine asked for.
    until = now + int(max(own, outcome.wait or 0.0) * jitter * 1000)
    if outcome.verdict is AnswerVerdict.FORBIDDEN:
        return Backoff(Breaker(failures + 1, until, why, paused=True), give_up=True)
    return Backoff(Breaker(failures + 1, until, why), at=until)
