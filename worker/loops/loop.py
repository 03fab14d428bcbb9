"""Supervised background loop of a worker.

A loop catches every exception of its work, logs it once per kind, retries after a back-off and
continues with the rest; `watchdog.py` reports every loop that fails, hangs or has ended. The work
of a loop is divided into duties, a site or a part of one, that fail and back off separately.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from shared.errors import SitemapdError, StoreDownError
from shared.store.operations.loop_health import LoopTrouble
from shared.telemetry.logs import logger

HANG_S = 45.0
"""Seconds without progress after which work counts as hanging: reported within 5 s, displayed
within a minute.
"""

FIRST_S = 2.0
LONGEST_S = 300.0
DOWN_S = 2.0
"""Longest back-off in seconds while Redis is down, so that work resumes as soon as it is back."""

_log = logger("loops")


class Duty:
    """One part of a loop's work; times without a comment are of the monotonic clock (s)."""

    def __init__(self, site: str, part: str) -> None:
        self.site, self.part = site, part
        self.failures, self.reason = 0, ""
        self.since = 0.0  # s since 1970
        self.not_before = 0.0
        self.at: dict[int, float] = {}  # thread -> time of its last progress


class Loop:
    """One supervised loop. Duties may run in any thread, several at once."""

    def __init__(
        self, name: str, *, first_s: float = FIRST_S, longest_s: float = LONGEST_S,
        hang_s: float = HANG_S, rests: Mapping[Any, float] | None = None,
        clock: Callable[[], float] = time.monotonic, jitter: Callable[[], float] = random.random,
    ) -> None:  # fmt: skip
        """Set the back-off: `first_s`, doubled after each failure up to `longest_s`.

        `rests` gives the back-off for errors of a class. `hang_s` is the longest time without
        progress. All are in seconds; `jitter` returns numbers in 0..1.
        """
        self.name, self.succeeded = name, time.time()
        self._first_s, self._longest_s, self._hang_s = first_s, longest_s, hang_s
        self._rests = rests or {}
        self._clock, self._jitter = clock, jitter
        self._duties: dict[tuple[str, str], Duty] = {}
        self._at_work: dict[int, list[Duty]] = {}  # by thread, outermost first
        self._lock = threading.Lock()
        self._asked, self._stopping = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def due(self, site: str = "", part: str = "") -> bool:
        """Return True unless the duty is backing off after a failure."""
        duty = self._duties.get((site, part))
        return duty is None or self._clock() >= duty.not_before

    @contextmanager
    def at(self, site: str = "", part: str = "") -> Iterator[None]:
        """Run a duty: an exception raised within is recorded and not raised further."""
        me = threading.get_ident()
        with self._lock:
            duty = self._duties.setdefault((site, part), Duty(site, part))
            duty.at[me] = self._clock()
            self._at_work.setdefault(me, []).append(duty)
        try:
            yield
        except Exception as error:  # noqa: BLE001  # a loop survives any error of its work
            self._failed(duty, error)
        else:
            self._succeeded(duty)
        finally:
            with self._lock:
                duty.at.pop(me, None)
                self._at_work[me].pop()
                if not duty.failures and not duty.at:  # of thousands of sites few are at work
                    self._duties.pop((site, part), None)
            self.progress()

    def progress(self) -> None:
        """Record that the calling thread makes progress."""
        me, now = threading.get_ident(), self._clock()
        with self._lock:
            for duty in self._at_work.get(me, ()):
                duty.at[me] = now

    def start(
        self, step: Callable[[], object], pause_s: float, *, first_s: float = 0.0,
        farewell: bool = False,
    ) -> None:  # fmt: skip
        """Run `step` after `first_s` seconds, then every `pause_s` seconds.

        The next step follows at once if `step` returns True or `ask` is called. With `farewell` one
        more step runs after `stop`.
        """

        def run() -> None:
            self._stopping.wait(first_s)
            while True:
                self._asked.clear()
                if self._stopping.is_set():
                    break
                again = self._step(step)
                self._asked.wait(0.0 if again is True else self._pause_s(pause_s))
                if not self.due():  # `ask` does not shorten the back-off
                    self._stopping.wait(self._duties["", ""].not_before - self._clock())
            if farewell:
                self._step(step)

        self._thread = threading.Thread(target=run, name=self.name, daemon=True)
        self._thread.start()

    def _step(self, step: Callable[[], object]) -> object:
        with self.at():
            return step()
        return None

    @property
    def failing(self) -> set[str]:
        """The sites of which a duty has failed, and not succeeded since."""
        with self._lock:
            return {duty.site for duty in self._duties.values() if duty.failures}

    def forget(self, site: str) -> None:
        """Drop the failed duties of a site that is not worked on any more."""
        with self._lock:
            for duty in [duty for duty in self._duties.values() if duty.site == site]:
                if not duty.at:
                    del self._duties[duty.site, duty.part]

    def ask(self) -> None:
        """Run the next step now."""
        self._asked.set()

    def stop(self) -> None:
        """Start no further step."""
        self._stopping.set()
        self._asked.set()

    def wait(self, seconds: float) -> None:
        """Wait so long, or until `stop`."""
        self._stopping.wait(seconds)

    def join(self, seconds: float) -> None:
        """Wait up to `seconds` for the thread to end."""
        if self._thread is not None:
            self._thread.join(seconds)

    @property
    def started(self) -> bool:
        """True if the loop has a thread."""
        return self._thread is not None

    @property
    def stopping(self) -> bool:
        """True after `stop`."""
        return self._stopping.is_set()

    def troubles(self) -> list[LoopTrouble]:
        """Return the duties that fail or hang, and the loop itself if its thread has ended."""
        found, now = [], self._clock()
        thread = self._thread
        if thread is not None and not thread.is_alive() and not self._stopping.is_set():
            ended = "its thread has ended"
            found.append(self._trouble(Duty("", ""), "hanging", self.succeeded, ended))
        with self._lock:
            duties = [(duty, dict(duty.at)) for duty in self._duties.values()]
        for duty, at in duties:
            if late := {thread: now - then for thread, then in at.items()}:
                stuck, silent = max(late.items(), key=lambda item: item[1])
                if silent > self._hang_s:
                    reason = f"no progress for {silent:.0f} s, {_where(stuck)}"
                    found.append(self._trouble(duty, "hanging", time.time() - silent, reason))
                    continue
            if duty.failures:
                found.append(self._trouble(duty, "failing", duty.since, duty.reason))
        return found

    def _trouble(self, duty: Duty, state: str, since: float, reason: str) -> LoopTrouble:
        return LoopTrouble.model_validate({
            "loop": self.name, "site": duty.site, "part": duty.part, "state": state,
            "since": since, "times": duty.failures, "reason": reason,
        })  # fmt: skip

    def _pause_s(self, pause_s: float) -> float:
        """Return the seconds until the next step: less than `pause_s` if a back-off ends sooner."""
        now = self._clock()
        with self._lock:
            rests = [duty.not_before - now for duty in self._duties.values() if duty.failures]
        return min([pause_s, *(rest for rest in rests if rest > 0)])

    def _failed(self, duty: Duty, error: Exception) -> None:
        reason = str(error) if isinstance(error, SitemapdError) else ""
        reason = reason or f"{type(error).__name__}: {error}"
        known, duty.reason = reason == duty.reason, reason
        duty.failures += 1
        duty.since = duty.since or time.time()
        rest = min(self._first_s * 2 ** min(duty.failures - 1, 20), self._longest_s)
        rest = next((s for kind, s in self._rests.items() if isinstance(error, kind)), rest)
        rest = min(DOWN_S, rest) if isinstance(error, StoreDownError) else rest
        duty.not_before = self._clock() + rest * (1 + self._jitter() / 4)
        if known and duty.failures & (duty.failures - 1):
            return  # logged before; again at 2, 4, 8 times
        said = {"site": duty.site, "part_of_it": duty.part, "times": duty.failures}
        said = {name: value for name, value in said.items() if value}
        if isinstance(error, SitemapdError):
            _log.error("loop failed", loop=self.name, reason=reason, again_s=round(rest, 1), **said)
        else:
            _log.exception(
                "loop failed", loop=self.name, reason=reason, again_s=round(rest, 1), **said
            )

    def _succeeded(self, duty: Duty) -> None:
        if duty.failures:
            _log.info("loop recovered", loop=self.name, site=duty.site, times=duty.failures)
        duty.failures, duty.reason, duty.since, duty.not_before = 0, "", 0.0, 0.0
        if not duty.site:
            self.succeeded = time.time()


def _where(thread: int) -> str:
    """Return the source line at which a thread is."""
    frame = sys._current_frames().get(thread)
    if frame is None:
        return "in a thread that has ended"
    code = frame.f_code
    name = "/".join(code.co_filename.rsplit("/", 2)[-2:])
    return f"at {name}:{frame.f_lineno} in {code.co_name}"
