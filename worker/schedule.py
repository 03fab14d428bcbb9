"""The schedule: Celery's own in memory, as its tasks may run at any time and by several at once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from celery.beat import ScheduleEntry, Scheduler

from worker import broker

MOST_WAITING = 20
"""Messages of a queue at which nothing more is sent to it. Where no worker takes any, two schedules
would put 90,000 a day, 50 MB, into the Redis that keeps the events; with this many, workers have
enough to be woken by.
"""


class PatientScheduler(Scheduler):
    """Sends what is due, unless the messages before it still wait."""

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send the message of `entry`."""
        with suppress(Exception):  # whatever kombu raises: sending raises it as well, and logs it
            queue = self.app.amqp.router.route({}, entry.task or "")["queue"].name
            if broker.waiting(self.app, queue) >= MOST_WAITING:
                return
        super().apply_entry(entry, producer)
