"""Silence of a sender against its own habit. Pure.

A sender is silent against its habit if the same hours of the week, in each of the weeks before, had
events in at least BUSY of them. So one that never sent, sends rarely, or rests at night and on
Sundays is never missed too early; a steady one is missed after BUSY hours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

WEEK = 168
BUSY = 4
WEEKS = 4
"""Weeks that are compared at most; two at least."""


def silent_hours(hours: Sequence[int]) -> int | None:
    """Return the number of whole hours without an event, if that is against the habit; else None.

    `hours` are the numbers of events by the hour, oldest first; the last hour is still running.
    """
    if not hours or hours[-1]:
        return None
    whole = hours[:-1]
    last = next((at for at in range(len(whole) - 1, -1, -1) if whole[at]), None)
    if last is None or last == len(whole) - 1:
        return None
    silent = len(whole) - 1 - last
    busy = list(_busy(whole, last + 1, min(silent, WEEK)))
    return silent if len(busy) > 1 and min(busy) >= BUSY else None


def _busy(whole: Sequence[int], begin: int, length: int) -> Iterator[int]:
    """Yield the busy hours among the same ones of each week before, as far as events are known."""
    first = next(at for at, events in enumerate(whole) if events)
    for weeks in range(1, WEEKS + 1):
        if (at := begin - weeks * WEEK) < first:
            return
        yield sum(1 for events in whole[at : at + length] if events)
