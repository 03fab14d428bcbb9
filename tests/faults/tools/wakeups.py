"""Celery's messages lost, doubled or late, on their way through Redis (RELIABILITY F17).

A message for the queue Q is pushed to the list Q, where workers wait by BRPOP on that list and on
those of three lower priorities, which nobody uses. Redis serves those who wait in the order in
which they came; a worker comes anew each second, so who waits for ever on several connections is
before it. What the worker is to have is pushed to the list of the lowest priority.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import Any, Literal, Self

import redis

Mode = Literal["drop", "double", "delay"]

QUEUE = "sitemapd"
_OTHER_WAY = "\x06\x169"  # kombu: <separator><priority step>
_CONNECTIONS = 8
_AGAIN_S = 0.05


class Wakeups:
    """While it is entered, a `share` of the messages to `queue` has the fate `mode`.

    `url` is a URL of Redis or the path of its socket. `seen` counts all messages, `changed` those
    that had the fate; a message that comes within the moment in which Redis has been restarted can
    pass unseen. Late ones are `seconds` late, or come when this ends.
    """

    def __init__(
        self,
        url: str,
        mode: Mode,
        share: float = 1.0,
        seed: int = 1,
        *,
        queue: str = QUEUE,
        seconds: float = 3.0,
    ) -> None:
        self._url = f"unix://{url}" if url.startswith("/") else url
        self._mode, self._share, self._queue, self._seconds = mode, share, queue, seconds
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._late: dict[threading.Timer, bytes] = {}
        self._waiting: dict[int, int] = {}
        self._push = redis.Redis.from_url(self._url)
        self.seen = self.changed = 0

    def _connect(self) -> redis.Redis:
        return redis.Redis.from_url(self._url, single_connection_client=True)

    def __enter__(self) -> Self:
        self._threads = [
            threading.Thread(target=self._catch, args=(n,), daemon=True)
            for n in range(_CONNECTIONS)
        ]
        for thread in self._threads:
            thread.start()
        deadline = time.monotonic() + 10
        while len(self._waiting) < _CONNECTIONS and time.monotonic() < deadline:
            time.sleep(_AGAIN_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        while any(thread.is_alive() for thread in self._threads):
            for ident in list(self._waiting.values()):
                with contextlib.suppress(redis.RedisError):
                    self._push.client_unblock(ident)
            for thread in self._threads:
                thread.join(_AGAIN_S)
        for timer in list(self._late):
            timer.cancel()
            self._deliver(timer)
        self._push.close()

    def _catch(self, number: int) -> None:
        while not self._over.is_set():
            try:
                with contextlib.closing(self._connect()) as client:
                    self._waiting[number] = int(client.client_id())
                    while not self._over.is_set():
                        found: Any = client.brpop([self._queue], timeout=0)
                        if found:
                            self._decide(found[1])
            except redis.RedisError:
                time.sleep(_AGAIN_S)

    def _decide(self, message: bytes) -> None:
        with self._lock:
            self.seen += 1
            hit = self._chance.random() < self._share
            self.changed += hit
        if hit and self._mode == "delay":
            timer = threading.Timer(self._seconds, lambda: self._deliver(timer))
            self._late[timer] = message
            timer.start()
        elif not (hit and self._mode == "drop"):
            self._pass_on(*[message] * (2 if hit else 1))

    def _deliver(self, timer: threading.Timer) -> None:
        message = self._late.pop(timer, None)
        if message is not None:
            with contextlib.suppress(redis.RedisError):
                self._pass_on(message)

    def _pass_on(self, *messages: bytes) -> None:
        self._push.lpush(self._queue + _OTHER_WAY, *messages)
