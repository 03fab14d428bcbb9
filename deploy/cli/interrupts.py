"""Ctrl-C before any work has begun: it ends the process silently at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""


@contextmanager
def leaving() -> Iterator[None]:
    """Let Ctrl-C end the process at once within the block, unless SIGINT is handled otherwise."""
    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


def leave(_number: int, _frame: FrameType | None) -> None:
    """End the process at once, before any work has begun."""
    # An exception within an import leaves partly initialized modules.
    os._exit(INTERRUPTED)
