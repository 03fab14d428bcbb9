"""Write log lines from a separate thread, so that failed output neither delays nor fails work.

A full log disk, a closed pipe and a reader that does not read are the same to the caller: the line
is queued, and dropped once MOST_LINES wait (RELIABILITY F29).
"""

from __future__ import annotations

import atexit
import io
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

MOST_LINES = 10_000
"""Maximum number of queued lines; further ones are dropped and counted."""

_BATCH_BYTES = 65_536
_LINGER_S, _LINGER_LINES = 0.005, 100  # under load one write takes many lines
_RETRY_S = 1.0
_LAST_S = 1.0


class LogWriter(io.TextIOBase):
    """A text stream over a descriptor whose `write` neither waits nor raises.

    Lines of one process keep their order. A forked process begins with an empty queue and its own
    thread.
    """

    def __init__(self, descriptor: int, lost: Callable[[int], None] = lambda _lines: None) -> None:
        """Call `lost` with the number of dropped lines, once lines can be written again."""
        self._descriptor, self._lost = descriptor, lost
        self._clear()
        os.register_at_fork(after_in_child=self._clear)

    def _clear(self) -> None:
        # Both are reentrant: the garbage collector may log in the middle of a write.
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._lock = threading.RLock()
        self._rest, self._dropped = b"", 0
        self._failing = False
        self._owner = 0
        self._thread = 0

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """UTF-8; characters that cannot be encoded are escaped."""
        return "utf-8"

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """None: a caller with the descriptor would write to it and block, as Celery on SIGTERM."""
        return None  # type: ignore[return-value]

    def isatty(self) -> bool:
        """Return True if the descriptor is a terminal."""
        return os.isatty(self._descriptor)

    def write(self, text: str, /) -> int:
        """Queue `text` to be written."""
        own = self._thread == threading.get_ident()  # the report of lost lines itself
        if self._lines.qsize() >= MOST_LINES and not own:
            with self._lock:
                self._dropped += text.count("\n")
        else:
            self._lines.put(text.encode("utf-8", "backslashreplace"))
        if self._owner != os.getpid():
            self._start()
        return len(text)

    def drain(self, seconds: float = _LAST_S) -> None:
        """Wait until all lines are written, at most `seconds`; return at once if writing fails."""
        until = time.monotonic() + seconds
        while (self._rest or not self._lines.empty()) and not self._failing:
            if time.monotonic() > until:
                return
            time.sleep(_LINGER_S / 5)

    def _start(self) -> None:
        with self._lock:
            if self._owner == os.getpid():
                return
            self._owner = os.getpid()
        threading.Thread(target=self._run, name="log", daemon=True).start()
        from multiprocessing import util

        # Processes of multiprocessing, such as granian's, end without atexit.
        atexit.register(self.drain)
        util.Finalize(None, self.drain, exitpriority=0)

    def _run(self) -> None:
        self._thread = threading.get_ident()
        while True:
            self._rest = self._lines.get()
            while len(self._rest) < _BATCH_BYTES:
                try:
                    self._rest += self._lines.get_nowait()
                except Empty:
                    break
            while self._rest:
                self._attempt()
            if self._dropped:
                with self._lock:
                    lines, self._dropped = self._dropped, 0
                self._lost(lines)
            if self._lines.qsize() < _LINGER_LINES:
                time.sleep(_LINGER_S)

    def _attempt(self) -> None:
        """Write as many bytes as possible; the next attempt continues after them."""
        try:
            written = os.write(self._descriptor, self._rest)
        except BlockingIOError:
            room = select.poll()
            room.register(self._descriptor, select.POLLOUT)
            room.poll(_RETRY_S * 1000)
        except OSError:
            self._failing = True
            time.sleep(_RETRY_S)
        else:
            self._rest, self._failing = self._rest[written:], False


def have_streams() -> None:
    """Open /dev/null for each closed standard stream, before a file or a connection takes its
    number and receives its output.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
        if getattr(sys, name) is None:
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
