"""How long an endpoint is left alone after what it answered, and when pages are given up."""

from __future__ import annotations

from typing import NamedTuple

from shared.store.notify.notification_queue import Breaker
from worker.notify.engine import AnswerVerdict, NotificationOutcome

FIRST_S = 60.0
LONGEST_S = 4 * 3600.0
MOST_TRIES = 10
"""For one page: about twelve hours of an engine that fails."""

MOST_REFUSALS = 3
"""In a row: what is refused each time is wrong on our side, and is not repeated with new pages."""

HELD_S = 600.0


class Backoff(NamedTuple):
    """`breaker` of the endpoint, None if it works; `bury` the pages, else try them `at` (ms)."""

    breaker: Breaker | None
    bury: bool = False
    at: int = 0


def rest_after(
    outcome: NotificationOutcome, before: Breaker | None, now: int, jitter: float
) -> Backoff:
    """What follows from an `outcome` that is not `told`.

    `jitter` in 0..1 spreads what failed together; `before` is what the endpoint had on record. Of a
    paused endpoint `until` is when it may be looked at whether the reason is gone.
    """
    failures, refusals = (before.failures, before.refusals) if before else (0, 0)
    why, jitter = outcome.detail, 1 + jitter / 2
    if outcome.verdict is AnswerVerdict.REFUSED:
        paused = refusals + 1 >= MOST_REFUSALS
        return Backoff(Breaker(failures, 0, why, paused, refusals + 1), bury=True)
    if outcome.verdict is AnswerVerdict.HELD:
        until = now + int(HELD_S * jitter * 1000)
        return Backoff(Breaker(failures, until, why, refusals=refusals), at=until)
    own = min(FIRST_S * 2 ** min(failures, 20), LONGEST_S)
    # Never sooner than the engine asked for.
    until = now + int(max(own, outcome.wait or 0.0) * jitter * 1000)
    if outcome.verdict is AnswerVerdict.FORBIDDEN:
        return Backoff(Breaker(failures + 1, until, why, paused=True), bury=True)
    return Backoff(Breaker(failures + 1, until, why), at=until)
